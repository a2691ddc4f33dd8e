/* SPDX-License-Identifier: BSD-3-Clause */
/* rehearsal_host.c - all ranks on one thread of the host, over rings in plain memory. */
#include "base/collective.h"
#include "kernels/table.h"
#include "tests/cuda/rehearsal.h"

#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 1000000, OPERANDS = CUDA_OPERANDS_MAX };

struct cast {
    int size;
    char *rings; /* [to][lane][from] */
    size_t ring;
    struct exec_world worlds[REHEARSAL_RANKS];
    struct execution executions[REHEARSAL_RANKS];
};

/* All are in this process: addresses are plain. */
static void resolve(struct exec_world *world, int peer, const struct link_addresses *said,
                    const size_t bytes[2], struct exec_peer *ret_peer)
{
    (void)world, (void)peer, (void)bytes;
    ret_peer->input = (char *)(uintptr_t)said->input;
    ret_peer->output = (char *)(uintptr_t)said->output;
    ret_peer->remote_input = 0;
}

static rondo_result no_read(struct exec_world *world, int peer, void *to, uint64_t from,
                            size_t bytes)
{
    (void)world, (void)peer, (void)to, (void)from, (void)bytes;
    return RONDO_ERROR_INTERNAL;
}

static const struct exec_world_ops ops = {.resolve = resolve, .read = no_read};

static void connect(struct cast *cast, const struct cuda_devcomm_shape *shape, int rank)
{
    for (int channel = 0; channel < PLAN_CHANNELS; channel++)
        for (int peer = 0; peer < cast->size; peer++) {
            int at = channel * cast->size + peer;
            char *theirs =
                cast->rings +
                cast->ring * (size_t)((peer * PLAN_CHANNELS + channel) * cast->size + rank);
            char *ours =
                cast->rings +
                cast->ring * (size_t)((rank * PLAN_CHANNELS + channel) * cast->size + peer);

            cast->worlds[rank].out[at] =
                (struct link_out){.credit = (struct link_credit *)(void *)theirs,
                                  .slots = theirs + sizeof(struct link_credit),
                                  .stride = link_stride(shape->slot_bytes),
                                  .slot_count = (uint32_t)shape->slots};
            cast->worlds[rank].in[at] =
                (struct link_in){.credit = (struct link_credit *)(void *)ours,
                                 .slots = ours + sizeof(struct link_credit),
                                 .stride = link_stride(shape->slot_bytes),
                                 .slot_count = (uint32_t)shape->slots};
        }
}

static bool cast_open(struct cast *cast, const struct cuda_devcomm_shape *shape)
{
    size_t links = (size_t)cast->size * PLAN_CHANNELS;
    bool made;

    cast->ring = link_ring_bytes(shape->slots, shape->slot_bytes);
    cast->rings = aligned_alloc(LINK_LINE, cast->ring * links * (size_t)cast->size);
    made = cast->rings != NULL;
    if (made)
        memset(cast->rings, 0, cast->ring * links * (size_t)cast->size);
    for (int r = 0; r < cast->size; r++) {
        struct exec_world *world = &cast->worlds[r];

        *world = (struct exec_world){.ops = &ops,
                                     .rank = r,
                                     .size = cast->size,
                                     .slot_bytes = shape->slot_bytes,
                                     .out = calloc(links, sizeof(*world->out)),
                                     .in = calloc(links, sizeof(*world->in)),
                                     .peers = calloc((size_t)cast->size, sizeof(*world->peers)),
                                     .sources = calloc(OPERANDS, sizeof(*world->sources)),
                                     .destinations = calloc(OPERANDS, sizeof(void *))};
        made = made && world->out && world->in && world->peers && world->sources &&
               world->destinations;
        if (made)
            connect(cast, shape, r);
    }
    return made;
}

static void cast_close(struct cast *cast)
{
    for (int r = 0; r < cast->size; r++) {
        free(cast->worlds[r].out);
        free(cast->worlds[r].in);
        free(cast->worlds[r].peers);
        free(cast->worlds[r].sources);
        free(cast->worlds[r].destinations);
        free(cast->worlds[r].scratch);
    }
    free(cast->rings);
}

static bool start(struct cast *cast, int rank, const struct plan *plan,
                  const struct rehearsal *rehearsal, char *input, char *output)
{
    struct exec_world *world = &cast->worlds[rank];
    struct execution *x = &cast->executions[rank];

    *x = (struct execution){.plan = plan,
                            .world = world,
                            .op = collective_reduces(plan->collective) ? &rehearsal->op : NULL,
                            .input = input,
                            .output = output,
                            .own = {(uint64_t)(uintptr_t)input, (uint64_t)(uintptr_t)output, 1, 1},
                            .fingerprint = 77};
    if (exec_shape_plan(plan, rehearsal->count, kernel_type_bytes[rehearsal->op.type],
                        world->slot_bytes, &x->shape))
        return false;
    world->scratch_bytes = exec_scratch_bytes(plan, &x->shape);
    world->scratch = calloc(1, world->scratch_bytes + 1);
    exec_start(x);
    return world->scratch != NULL;
}

bool rehearse_on_host(struct plan *const *plans, const struct cuda_devcomm_shape *shape,
                      const struct rehearsal *rehearsal, char *const *inputs, char *const *outputs)
{
    struct cast cast = {.size = plans[0]->size};
    bool good = cast_open(&cast, shape);
    int left = cast.size;

    for (int r = 0; r < cast.size && good; r++)
        good = start(&cast, r, plans[r], rehearsal, inputs[r], outputs[r]);
    for (int round = 0; round < ROUNDS && left && good; round++) {
        left = 0;
        for (int r = 0; r < cast.size; r++) {
            enum exec_state state = exec_advance(&cast.executions[r]);

            left += state != EXEC_DONE;
            good = good && state <= EXEC_BLOCKED;
        }
    }
    cast_close(&cast);
    return good && !left;
}
