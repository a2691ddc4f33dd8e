/* SPDX-License-Identifier: BSD-3-Clause */
/* trial.c - see trial.h. */
#include "tests/kernels/trial.h"

#include "tests/kernels/reference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 96, DESTINATIONS_MAX = 3, GUARD_BYTE = 0xa5 };

/*
 * Sources first, then destinations; each has GUARD bytes on both sides and starts at an offset of
 * its own.
 */
struct memory {
    size_t bytes; /* of one buffer without guards */
    int buffers;
    unsigned char *master, *used; /* what sources hold, and what calls work on */
    unsigned char *expected;
};

static size_t stride_of(const struct memory *memory)
{
    return memory->bytes + (size_t)2 * GUARD + 16;
}

static unsigned char *buffer_at(const struct memory *memory, unsigned char *block, int index)
{
    return block + (size_t)index * stride_of(memory) + GUARD + (size_t)(index * 7 + 1) % 16;
}

static void memory_init(struct memory *memory, const struct trial *trial, size_t count)
{
    uint64_t random = trial->random;
    size_t all;

    memory->bytes = count * 8;
    memory->buffers = trial->source_count + trial->destination_count;
    all = stride_of(memory) * (size_t)memory->buffers;
    memory->master = malloc(all);
    memory->used = malloc(all);
    memory->expected = malloc(memory->bytes + 8);
    memset(memory->master, GUARD_BYTE, all);
    for (int i = 0; i < trial->source_count; i++) {
        unsigned char *source = buffer_at(memory, memory->master, i);
        (trial->small ? reference_fill_small : reference_fill)(trial->op.type, source, count,
                                                               &random);
    }
}

static void memory_done(struct memory *memory)
{
    free(memory->master);
    free(memory->used);
    free(memory->expected);
}

static void expect(const struct memory *memory, const struct trial *trial, size_t count)
{
    struct kernel_call call = {.source_count = trial->source_count,
                               .order = trial->order,
                               .scaled = trial->scaled,
                               .finish = trial->finish};
    size_t size = reference_size(trial->op.type);

    for (size_t e = 0; e < count; e++) {
        const void *sources[REFERENCE_SOURCES_MAX];

        for (int i = 0; i < trial->source_count; i++)
            sources[i] = buffer_at(memory, memory->master, i) + e * size;
        reference_element(&trial->op, &call, sources, memory->expected + e * size);
    }
}

/* After the call the memory must be as before, but for the destinations. */
static const char *judge(const struct memory *memory, void *const *destinations, int n,
                         size_t bytes)
{
    size_t all = stride_of(memory) * (size_t)memory->buffers;

    for (int i = 0; i < n; i++) {
        unsigned char *destination = destinations[i];

        if (memcmp(destination, memory->expected, bytes) != 0)
            return "wrong result";
        memcpy(destination, memory->master + (destination - memory->used), bytes);
    }
    return memcmp(memory->used, memory->master, all) == 0 ? NULL : "writes outside of the result";
}

/* Every third time the first destination is a source, every fifth time the last one is another. */
static void place(const struct memory *memory, const struct trial *trial, size_t count,
                  void **destinations)
{
    for (int i = 0; i < trial->destination_count; i++)
        destinations[i] = buffer_at(memory, memory->used, trial->source_count + i);
    if (count % 3 == 0)
        destinations[0] = buffer_at(memory, memory->used, (int)count % trial->source_count);
    if (count % 5 == 0 && trial->destination_count > 1 && trial->source_count > 1)
        destinations[trial->destination_count - 1] =
            buffer_at(memory, memory->used, (int)(count + 1) % trial->source_count);
}

static struct kernel_call call_of(const struct trial *trial, const void **sources,
                                  void **destinations, size_t count)
{
    return (struct kernel_call){.sources = sources,
                                .destinations = destinations,
                                .source_count = trial->source_count,
                                .destination_count = trial->destination_count,
                                .count = count,
                                .order = trial->order,
                                .scaled = trial->scaled,
                                .finish = trial->finish};
}

static const char *attempt(const struct memory *memory, const struct trial *trial, size_t count)
{
    const void *sources[REFERENCE_SOURCES_MAX];
    void *destinations[DESTINATIONS_MAX];
    struct kernel_call call = call_of(trial, sources, destinations, count);

    memcpy(memory->used, memory->master, stride_of(memory) * (size_t)memory->buffers);
    for (int i = 0; i < trial->source_count; i++)
        sources[i] = buffer_at(memory, memory->used, i);
    place(memory, trial, count, destinations);
    kernel_reduce(&trial->op, &call);
    return judge(memory, destinations, trial->destination_count,
                 count * reference_size(trial->op.type));
}

/*
 * The end of a page that nothing may follow: there is one for each buffer, an access beyond it ends
 * the test. NULL: the system has no memory for them.
 */
static unsigned char *page_end(int index)
{
    static unsigned char *pages;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), buffers = REFERENCE_SOURCES_MAX + DESTINATIONS_MAX;

    if (pages == NULL) {
        unsigned char *place = mmap(NULL, 2 * buffers * page, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        if (place == MAP_FAILED)
            return NULL;
        for (size_t i = 0; i < buffers; i++) {
            if (mprotect(place + (2 * i + 1) * page, page, PROT_NONE) != 0)
                return NULL;
        }
        pages = place;
    }
    return pages + (2 * (size_t)index + 1) * page;
}

/* Makes the call of attempt() on buffers that end where a page does. */
static const char *attempt_at_ends(const struct memory *memory, const struct trial *trial,
                                   size_t count)
{
    const void *sources[REFERENCE_SOURCES_MAX];
    void *destinations[DESTINATIONS_MAX];
    struct kernel_call call = call_of(trial, sources, destinations, count);
    size_t bytes = count * reference_size(trial->op.type);

    if (page_end(0) == NULL)
        return "no memory for pages with an end";
    for (int i = 0; i < trial->source_count; i++)
        sources[i] = memcpy(page_end(i) - bytes, buffer_at(memory, memory->master, i), bytes);
    for (int i = 0; i < trial->destination_count; i++)
        destinations[i] = page_end(REFERENCE_SOURCES_MAX + i) - bytes;
    kernel_reduce(&trial->op, &call);
    for (int i = 0; i < trial->destination_count; i++) {
        if (memcmp(destinations[i], memory->expected, bytes) != 0)
            return "wrong result at the end of a page";
    }
    return NULL;
}

static int note(const struct trial *trial, size_t count, const char *what, char *complaint,
                size_t size)
{
    static const char *functions[] = {"sum", "prod", "min", "max", "band", "bor", "bxor", "user"};

    if (what == NULL)
        return 0;
    snprintf(
        complaint, size,
        "%s: level %s, %s of %s, %d sources, %d destinations, %s, count %zu, scaled %d, finish "
        "%d by %u",
        what, kernel_level(), functions[trial->op.function], reference_name(trial->op.type),
        trial->source_count, trial->destination_count,
        trial->order == KERNEL_FOLD ? "fold" : "balanced", count, trial->scaled, trial->finish,
        trial->op.divisor);
    return 1;
}

int trial_run(const struct trial *trial, size_t step, char *complaint, size_t size)
{
    struct memory memory;
    int wrong = 0;

    memory_init(&memory, trial, TRIAL_COUNT_MAX);
    expect(&memory, trial, TRIAL_COUNT_MAX);
    for (const char *const *level = kernel_levels(); *level != NULL; level++) {
        kernel_use_level(*level);
        for (size_t count = 0; count < TRIAL_COUNT_MAX; count += step) {
            const char *what = attempt(&memory, trial, count);

            if (what == NULL)
                what = attempt_at_ends(&memory, trial, count);
            wrong += note(trial, count, what, wrong ? NULL : complaint, wrong ? 0 : size);
        }
    }
    memory_done(&memory);
    return wrong;
}

int trial_run_long(const struct trial *trial, const char *level, size_t count, char *complaint,
                   size_t size)
{
    struct memory memory;
    int wrong;

    kernel_use_level(level);
    memory_init(&memory, trial, count);
    expect(&memory, trial, count);
    wrong = note(trial, count, attempt(&memory, trial, count), complaint, size);
    memory_done(&memory);
    return wrong;
}
