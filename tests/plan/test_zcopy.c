/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_zcopy.c - plans of all algorithms over a network that takes every liberty that zcopy.h gives
 * it: results are those of plain slots, also in place and one call behind the other.
 *
 * One thread advances ranks and messages in an order by chance.
 */
#include "base/collective.h"
#include "collectives/algorithm.h"
#include "collectives/levels/grouping.h"
#include "late_network.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS = 2, ROUNDS = 2, PATIENCE = 1000000, POOL = 128 << 20 };

static long all_zcopy, all_delivered;

static unsigned by_chance(struct job *job, unsigned below)
{
    job->chance = job->chance * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(job->chance >> 33) % below;
}

/* ---- Ranks ----------------------------------------------------------------------------------- */

static size_t ring_bytes(const struct job *job)
{
    return (link_ring_bytes(SLOTS, job->slot_bytes) + 63) / 64 * 64;
}

static bool apart(const struct job *job, int a, int b)
{
    return job->zcopies && a != b &&
           (!job->groups || job->groups->group_of[a] != job->groups->group_of[b]);
}

/* From memory that is used again by the next job, as fresh pages take longer than all else. */
static char *new_ring(struct job *job)
{
    static char *pool;
    char *ring;

    if (!pool)
        pool = aligned_alloc(64, POOL);
    cr_assert(pool && job->pool_used + ring_bytes(job) <= POOL);
    ring = pool + job->pool_used;
    job->pool_used += ring_bytes(job);
    memset(ring, 0, sizeof(struct link_credit));
    for (size_t i = 0; i < SLOTS; i++)
        memset(ring + sizeof(struct link_credit) + i * link_stride(job->slot_bytes), 0,
               sizeof(struct link_slot));
    return ring;
}

static void connect_pair(struct job *job, int from, int to, int channel)
{
    struct half *writer = &job->members[from].halves[channel * job->size + to];
    struct half *reader = &job->members[to].halves[channel * job->size + from];
    bool network = apart(job, from, to);
    char *out = new_ring(job), *in = network ? new_ring(job) : out;

    writer->credit = (struct link_credit *)(void *)out;
    reader->given = (struct link_credit *)(void *)in;
    reader->inbox = in + sizeof(struct link_credit);
    job->members[from].world.out[channel * job->size + to] =
        (struct link_out){.slots = out + sizeof(struct link_credit),
                          .credit = writer->credit,
                          .connection = network ? &writer->base : NULL,
                          .stride = link_stride(job->slot_bytes),
                          .slot_count = SLOTS};
    job->members[to].world.in[channel * job->size + from] =
        (struct link_in){.slots = reader->inbox,
                         .credit = reader->given,
                         .connection = network ? &reader->base : NULL,
                         .stride = link_stride(job->slot_bytes),
                         .slot_count = SLOTS};
}

static size_t blocks(const struct job *job, int rank, bool output)
{
    return (size_t)(output ? plan_output_blocks(job->collective, job->size, rank, job->root)
                           : plan_input_blocks(job->collective, job->size, rank, job->root));
}

static void place_buffers(struct member *member)
{
    struct job *job = member->job;
    size_t block = job->count * 4, in = blocks(job, member->rank, false) * block;
    size_t out = blocks(job, member->rank, true) * block;
    size_t mine = (size_t)member->rank * block;

    member->bytes = in + out;
    member->memory = malloc(member->bytes + 1);
    cr_assert(member->memory != NULL);
    member->input = member->memory;
    member->output = member->memory + in;
    if (job->in_place && in && out) {
        member->bytes = in > out ? in : out;
        member->input = member->memory + (in < out ? mine : 0);
        member->output = member->memory + (out < in ? mine : 0);
    }
    memset(member->memory, 0xff, member->bytes);
    for (size_t i = 0; i < in / 4; i++)
        ((int32_t *)(void *)member->input)[i] =
            (int32_t)(i * 31 + (size_t)member->rank * 70001 + 5);
}

static const struct kernel_op sum = {.type = RONDO_INT32, .function = KERNEL_SUM};

static void start(struct member *member)
{
    struct job *job = member->job;
    struct execution *x = &member->execution;

    x->plan = job->plans[member->rank];
    x->world = &member->world;
    x->op = collective_reduces(job->collective) ? &sum : NULL;
    x->input = member->input;
    x->output = member->output;
    x->fingerprint = 100 + (uint32_t)member->calls++;
    cr_assert_eq(exec_shape_plan(job->plans[0], job->count, 4, job->slot_bytes, &x->shape),
                 RONDO_OK);
    exec_start(x);
}

static void open_member(struct job *job, int rank)
{
    struct member *member = &job->members[rank];
    size_t links = (size_t)job->size * PLAN_CHANNELS;

    *member = (struct member){.job = job, .rank = rank};
    member->halves = calloc(links, sizeof(*member->halves));
    member->queues = calloc((size_t)job->size, sizeof(*member->queues));
    member->world =
        (struct exec_world){.rank = rank,
                            .size = job->size,
                            .slot_bytes = job->slot_bytes,
                            .ll_depths = {4, 2},
                            .zcopies = job->zcopies,
                            .out = calloc(links, sizeof(struct link_out)),
                            .in = calloc(links, sizeof(struct link_in)),
                            .peers = calloc((size_t)job->size, sizeof(struct exec_peer)),
                            .sources = calloc(64, sizeof(void *)),
                            .destinations = calloc(64, sizeof(void *))};
    for (size_t i = 0; i < links; i++) {
        int peer = (int)i % job->size;

        member->halves[i].member = member;
        member->halves[i].base = (struct connection){
            .ops = &late_ops[peer % job->networks], .peer = peer, .channel = (int)i / job->size};
    }
    place_buffers(member);
}

static void close_member(struct job *job, int rank)
{
    struct member *member = &job->members[rank];

    free(member->halves);
    free(member->queues);
    free(member->world.out);
    free(member->world.in);
    free(member->world.peers);
    free(member->world.sources);
    free(member->world.destinations);
    free(member->world.scratch);
    free(member->memory);
}

static bool play(struct job *job)
{
    int left = job->size;

    for (int rounds = 0; left && rounds < PATIENCE; rounds++) {
        struct member *member = &job->members[by_chance(job, (unsigned)job->size)];
        enum exec_state state;

        if (by_chance(job, 3)) {
            late_deliver(job, (int)by_chance(job, (unsigned)job->size),
                         (int)by_chance(job, (unsigned)job->size));
            continue;
        }
        if (member->calls > CALLS)
            continue;
        state = exec_advance(&member->execution);
        if (state == EXEC_MOVED)
            rounds = 0;
        if (state > EXEC_BLOCKED)
            return false;
        if (state != EXEC_DONE)
            continue;
        if (member->calls < CALLS) {
            member->world.zcopy_connection = NULL;
            late_reclaim(member, NULL, NULL, SIZE_MAX);
            start(member);
        } else {
            member->calls++;
            left--;
        }
    }
    return !left;
}

/* Run it; memory of all ranks one behind the other, NULL: it did not end. */
static char *run(struct job *job, size_t *ret_bytes)
{
    size_t bytes = 0;
    char *all = NULL;
    bool ended;

    job->pool_used = 0;
    for (int r = 0; r < job->size; r++)
        open_member(job, r);
    for (int from = 0; from < job->size; from++)
        for (int to = 0; to < job->size; to++)
            for (int channel = 0; channel < PLAN_CHANNELS; channel++)
                connect_pair(job, from, to, channel);
    for (int r = 0; r < job->size; r++) {
        start(&job->members[r]);
        job->members[r].world.scratch =
            malloc(exec_scratch_bytes(job->plans[r], &job->members[r].execution.shape) + 1);
        bytes += job->members[r].bytes;
    }
    ended = play(job);
    all = ended ? malloc(bytes + 1) : NULL;
    *ret_bytes = 0;
    for (int r = 0; r < job->size; r++) {
        if (all)
            memcpy(all + *ret_bytes, job->members[r].memory, job->members[r].bytes);
        *ret_bytes += job->members[r].bytes;
        close_member(job, r);
    }
    return all;
}

static void compare(struct job *job, const char *name)
{
    size_t bytes, length;
    char *right, *got;

    job->zcopies = false;
    job->networks = 1;
    right = run(job, &bytes);
    cr_assert(right, "%s did not end", name);
    job->zcopies = true;
    for (int round = 0; round < ROUNDS; round++) {
        job->networks = 1 + round % 2;
        got = run(job, &length);
        cr_assert(got, "%s over a network did not end", name);
        if (length != bytes || memcmp(got, right, bytes) != 0)
            cr_expect_fail(
                "%s collective %d, %d ranks, root %d, %zu elements, slots of %zu, in place %d, "
                "groups %d",
                name, job->collective, job->size, job->root, job->count, job->slot_bytes,
                job->in_place, job->groups ? job->groups->groups : 0);
        free(got);
    }
    free(right);
    all_zcopy += job->zcopy;
    all_delivered += job->delivered;
}

static void try_form(const struct algorithm *algorithm, rondo_collective collective, int size,
                     int shape)
{
    struct grouping *groups = NULL;
    unsigned promises;
    static uint64_t seed;

    if (!algorithm->forms[collective].write || collective >= RONDO_BARRIER)
        return;
    cr_assert_eq(grouping_shape(size, shape, &groups), RONDO_OK);
    promises = algorithm_promises(algorithm, collective, groups);
    for (int k = 0; k < 4 && !(promises & PROMISE_PEER_MEMORY); k++) {
        struct job job = {.collective = collective,
                          .groups = k & 2 ? groups : NULL,
                          .size = size,
                          .root = collective_has_root(collective) ? size / 2 : 0,
                          .in_place = k & 1,
                          .chance = ++seed};

        if (job.in_place && !(promises & PROMISE_IN_PLACE))
            continue;
        job.slot_bytes = by_chance(&job, 2) ? 8192 : 4096 * (size_t)size;
        job.count = 500 + by_chance(&job, 16000);
        for (int r = 0; r < size; r++) {
            struct plan_request member = {collective, size, r, job.root, groups, NULL};

            cr_assert_eq(algorithm_write(algorithm, &member, &job.plans[r]), RONDO_OK);
        }
        compare(&job, algorithm->name);
        for (int r = 0; r < size; r++)
            plan_close(job.plans[r]);
    }
    grouping_close(groups);
}

/* All ranks at the beginning of a call of one algorithm; nothing has moved. */
static void open_job(struct job *job, const char *algorithm)
{
    job->pool_used = 0;
    for (int r = 0; r < job->size; r++) {
        struct plan_request member = {job->collective, job->size, r, job->root, job->groups, NULL};

        cr_assert_eq(algorithm_write(algorithm_find(algorithm), &member, &job->plans[r]), RONDO_OK);
        open_member(job, r);
    }
    for (int from = 0; from < job->size; from++)
        for (int to = 0; to < job->size; to++)
            for (int channel = 0; channel < PLAN_CHANNELS; channel++)
                connect_pair(job, from, to, channel);
    for (int r = 0; r < job->size; r++)
        start(&job->members[r]);
}

static void close_job(struct job *job)
{
    for (int r = 0; r < job->size; r++) {
        close_member(job, r);
        plan_close(job->plans[r]);
    }
}

static void try_all(int size)
{
    for (int i = 0; algorithms[i]; i++)
        for (int collective = 0; collective < RONDO_BARRIER; collective++)
            for (int shape = 0; shape < (algorithms[i]->levels ? GROUPING_SHAPES : 1); shape++)
                try_form(algorithms[i], (rondo_collective)collective, size, shape);
    cr_expect(all_zcopy && all_delivered);
}

Test(zcopy, plans_of_2_ranks)
{
    try_all(2);
}
Test(zcopy, plans_of_3_ranks)
{
    try_all(3);
}
Test(zcopy, plans_of_4_ranks)
{
    try_all(4);
}
Test(zcopy, plans_of_5_ranks)
{
    try_all(5);
}
Test(zcopy, plans_of_8_ranks)
{
    try_all(8);
}

Test(zcopy, whichever_peer_is_first_its_message_goes_where_it_belongs)
{
    static struct job job = {.collective = RONDO_ALL_GATHER,
                             .size = 4,
                             .count = 2000,
                             .slot_bytes = 8192,
                             .zcopies = true,
                             .networks = 1};

    open_job(&job, "direct");
    for (int r = 0; r < job.size; r++)
        while (exec_advance(&job.members[r].execution) == EXEC_MOVED)
            continue;
    for (int from = 0; from < job.size; from++)
        for (int to = 0; to < job.size; to++)
            late_deliver(&job, from, to);
    cr_expect_eq(job.delivered, 4 * 3, "%ld of 12 messages were expected", job.delivered);
    close_job(&job);
}

/* Ranks 0 and 1 are on one host, and nothing arrives from elsewhere. */
Test(zcopy, a_rank_of_two_levels_sends_segments_that_peers_have_not_asked_for_yet)
{
    static struct job job = {.collective = RONDO_ALL_REDUCE,
                             .size = 4,
                             .count = 16 * 4096,
                             .slot_bytes = 8192,
                             .zcopies = true,
                             .networks = 1};
    struct grouping *groups = NULL;
    bool moved = true;

    cr_assert_eq(grouping_parse("2x2", 4, &groups), RONDO_OK);
    job.groups = groups;
    open_job(&job, "hierarchy");
    while (moved) {
        moved = exec_advance(&job.members[0].execution) == EXEC_MOVED;
        moved |= exec_advance(&job.members[1].execution) == EXEC_MOVED;
    }
    cr_expect_eq(job.members[0].queues[2].count, SLOTS);
    cr_expect_eq(job.members[1].queues[3].count, SLOTS);
    close_job(&job);
    grouping_close(groups);
}
