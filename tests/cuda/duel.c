/* SPDX-License-Identifier: BSD-3-Clause */
/* duel.c - see duel.h. */
#include "tests/cuda/duel.h"

#include "base/fail.h"
#include "kernels/table.h"
#include "tests/kernels/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, MOST = CUDA_OPERANDS_MAX };

/* One piece of memory: as it was, as the host leaves it, and as the device does. */
struct arena {
    size_t bytes;
    unsigned char *host, *before, *after;
    CUdeviceptr device;
    size_t at[MOST]; /* of each operand: sources, then destinations */
};

static size_t place_of(const struct duel *duel, int index, size_t element)
{
    switch (duel->place) {
    case DUEL_TOGETHER:
        return (duel->random % 15 + 1) * element % 16;
    case DUEL_APART:
        return (duel->random + (size_t)index * 3) * element % 16;
    case DUEL_ODD:
        return (duel->random + (size_t)index * 5) % 16;
    default:
        return 0;
    }
}

static bool arena_open(struct gpu *gpu, const struct duel *duel, struct arena *arena)
{
    size_t element = kernel_type_bytes[duel->op.type];
    size_t stride = (duel->count * element + 2 * GUARD + 31) / 16 * 16;
    int operands = duel->sources + duel->destinations;
    uint64_t random = duel->random;

    arena->bytes = stride * (size_t)operands;
    arena->host = malloc(arena->bytes);
    arena->before = malloc(arena->bytes);
    arena->after = malloc(arena->bytes);
    arena->device = gpu_alloc(gpu, arena->bytes);
    if (!arena->host || !arena->before || !arena->after || !arena->device)
        return false;
    memset(arena->host, 0xa5, arena->bytes);
    for (int i = 0; i < operands; i++) {
        arena->at[i] = stride * (size_t)i + GUARD + place_of(duel, i, element);
        reference_fill(duel->op.type, arena->host + arena->at[i], duel->count, &random);
    }
    if (duel->in_place)
        arena->at[duel->sources] = arena->at[duel->sources - 1];
    memcpy(arena->before, arena->host, arena->bytes);
    return true;
}

static void arena_close(struct gpu *gpu, struct arena *arena)
{
    gpu_free(gpu, arena->device);
    free(arena->host);
    free(arena->before);
    free(arena->after);
}

static void on_host(const struct duel *duel, struct arena *arena)
{
    const void *sources[MOST];
    void *destinations[MOST];
    struct kernel_call call = {.sources = sources,
                               .destinations = destinations,
                               .source_count = duel->sources,
                               .destination_count = duel->destinations,
                               .count = duel->count,
                               .order = duel->order,
                               .scaled = duel->scaled,
                               .finish = duel->finish};

    for (int i = 0; i < duel->sources; i++)
        sources[i] = arena->host + arena->at[i];
    for (int i = 0; i < duel->destinations; i++)
        destinations[i] = arena->host + arena->at[duel->sources + i];
    kernel_reduce(&duel->op, &call);
}

static bool on_device(struct gpu *gpu, const struct duel *duel, struct arena *arena)
{
    struct cuda_operand operands[MOST];
    struct cuda_reduce_call call = {.sources = operands,
                                    .destinations = operands + duel->sources,
                                    .source_count = duel->sources,
                                    .destination_count = duel->destinations,
                                    .count = duel->count,
                                    .order = duel->order,
                                    .scaled = duel->scaled,
                                    .finish = duel->finish,
                                    .blocks = duel->blocks};

    for (int i = 0; i < duel->sources + duel->destinations; i++)
        operands[i] = cuda_operand_at(arena->device + arena->at[i]);
    return gpu_upload(gpu, arena->device, arena->before, arena->bytes) &&
           !cuda_reduce(gpu->launcher, &duel->op, &call, gpu->stream) &&
           gpu_download(gpu, arena->after, arena->device, arena->bytes);
}

static void complain(const struct duel *duel, const struct arena *arena, char *text, size_t size)
{
    static const char *functions[] = {"sum", "prod", "min", "max", "band", "bor", "bxor"};
    static const char *places[] = {"aligned", "together", "apart", "odd"};
    size_t byte = 0;

    while (byte < arena->bytes && arena->after[byte] == arena->host[byte])
        byte++;
    snprintf(text, size,
             "byte %zu of %zu is %02x instead of %02x: %s of %s, %d sources, %d destinations, %s, "
             "count %zu, %s%s, scaled %d, finish %d by %u",
             byte, arena->bytes, arena->after[byte], arena->host[byte],
             functions[duel->op.function], reference_name(duel->op.type), duel->sources,
             duel->destinations, duel->order == KERNEL_FOLD ? "fold" : "balanced", duel->count,
             places[duel->place], duel->in_place ? ", in place" : "", duel->scaled, duel->finish,
             duel->op.divisor);
}

bool duel_run(struct gpu *gpu, const struct duel *duel, char *complaint, size_t size)
{
    struct arena arena = {.bytes = 0};
    bool good = false;

    if (arena_open(gpu, duel, &arena)) {
        on_host(duel, &arena);
        if (!on_device(gpu, duel, &arena))
            snprintf(complaint, size, "%s", fail_sentence());
        else if (memcmp(arena.host, arena.after, arena.bytes) != 0)
            complain(duel, &arena, complaint, size);
        else
            good = true;
    }
    arena_close(gpu, &arena);
    return good;
}
