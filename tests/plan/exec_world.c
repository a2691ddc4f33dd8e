/* SPDX-License-Identifier: BSD-3-Clause */
/* exec_world.c - threads and rings for hand-made plans. */
#include "exec_world.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE = 2000000 }; /* rounds without a move: more than any test needs */

struct member {
    struct trial *trial;
    int rank;
    struct exec_world world;
    struct execution execution;
};

static char *rings; /* [to][channel][from] */

static size_t ring_bytes(const struct trial *trial)
{
    return (sizeof(struct link_ll) + link_ring_bytes(trial->slots, trial->slot_bytes) + LINK_LINE -
            1) /
           LINK_LINE * LINK_LINE;
}

static char *ring(const struct trial *trial, int from, int to, int channel)
{
    return rings +
           (size_t)((to * PLAN_CHANNELS + channel) * trial->size + from) * ring_bytes(trial);
}

/* Links whose counters begin anywhere, as after many messages. */
static void make_links(struct member *member)
{
    const struct trial *trial = member->trial;
    uint32_t index = trial->start % (uint32_t)trial->slots;

    for (int channel = 0; channel < PLAN_CHANNELS; channel++)
        for (int peer = 0; peer < trial->size; peer++) {
            int at = channel * trial->size + peer;
            char *theirs = ring(trial, member->rank, peer, channel);
            char *ours = ring(trial, peer, member->rank, channel);
            char *packed = member->world.packed + (size_t)at * 2 * LINK_PACKED;

            member->world.out[at] = (struct link_out){
                .credit = (struct link_credit *)(void *)theirs,
                .ll = (struct link_ll *)(void *)(theirs + sizeof(struct link_credit)),
                .slots = theirs + sizeof(struct link_credit) + sizeof(struct link_ll),
                .stride = link_stride(trial->slot_bytes),
                .slot_count = (uint32_t)trial->slots,
                .packed = packed,
                .sent = trial->start,
                .consumed = trial->start,
                .plain = trial->start,
                .index = index};
            member->world.in[at] = (struct link_in){
                .credit = (struct link_credit *)(void *)ours,
                .ll = (struct link_ll *)(void *)(ours + sizeof(struct link_credit)),
                .slots = ours + sizeof(struct link_credit) + sizeof(struct link_ll),
                .stride = link_stride(trial->slot_bytes),
                .slot_count = (uint32_t)trial->slots,
                .packed = packed + LINK_PACKED,
                .received = trial->start,
                .index = index};
            atomic_store_explicit(&member->world.in[at].credit->consumed, trial->start,
                                  memory_order_release);
        }
}

/* Messages before this one left their numbers in the slots, the oldest where the next one goes. */
static void age_slots(const struct member *member)
{
    const struct trial *trial = member->trial;
    uint32_t slots = (uint32_t)trial->slots;
    uint32_t room = member->world.ll_depths.inlined;

    for (int at = 0; at < trial->size * PLAN_CHANNELS && trial->start; at++) {
        const struct link_in *in = &member->world.in[at];

        for (uint32_t number = trial->start - room + 1; number != trial->start + 1; number++)
            atomic_store_explicit(&in->ll->inlined[(number - 1) % room].flag,
                                  (uint64_t)7 << 32 | number, memory_order_release);
        for (uint32_t i = 0; i < slots; i++) {
            size_t slot = (in->index + i) % slots;
            uint32_t number = trial->start - slots + 1 + i;

            atomic_store_explicit(
                &((struct link_slot *)(void *)(in->slots + slot * in->stride))->head.flag,
                (uint64_t)7 << 32 | number, memory_order_release);
        }
    }
}

enum { AHEAD = 1000 }; /* messages until the number of an old flag comes */

static uint64_t stale_flag(const struct trial *trial)
{
    return (uint64_t)trial->fingerprint[0] << 32 | (trial->start + AHEAD);
}

/* Lines of the short forms into a rank: all of one array. */
static struct link_line *short_line(struct link_ll *ll, size_t i)
{
    return i < LINK_INLINED_MOST
               ? &ll->inlined[i]
               : &ll->packed[(i - LINK_INLINED_MOST) / LINK_LINES][i % LINK_LINES];
}

static void plant_stale(const struct member *member)
{
    const struct exec_world *world = &member->world;

    for (int at = 0; at < world->size * PLAN_CHANNELS && member->trial->stale; at++)
        for (size_t i = 0; i < sizeof(struct link_ll) / sizeof(struct link_line); i++)
            atomic_store_explicit(&short_line(world->in[at].ll, i)->flag, stale_flag(member->trial),
                                  memory_order_release);
}

static uint32_t count_stale(const struct member *member)
{
    const struct exec_world *world = &member->world;
    uint32_t left = 0;

    for (int at = 0; at < world->size * PLAN_CHANNELS; at++)
        for (size_t i = 0; i < sizeof(struct link_ll) / sizeof(struct link_line); i++)
            left += world->in[at].received != member->trial->start &&
                    atomic_load_explicit(&short_line(world->in[at].ll, i)->flag,
                                         memory_order_acquire) == stale_flag(member->trial);
    return left;
}

static bool make_member(struct member *member, struct trial *trial, int rank)
{
    struct exec_world *world = &member->world;
    size_t links = (size_t)trial->size * PLAN_CHANNELS;
    /* Both extremes: few short messages under way on fresh links, many on old ones. */
    const struct link_depths few = {4, 2}, many = {LINK_INLINED_MOST, LINK_PACKED_MOST};

    member->trial = trial;
    member->rank = rank;
    *world = (struct exec_world){.ops = trial->ops,
                                 .rank = rank,
                                 .size = trial->size,
                                 .slot_bytes = trial->slot_bytes,
                                 .ll_depths = trial->start ? many : few,
                                 .out = calloc(links, sizeof(*world->out)),
                                 .in = calloc(links, sizeof(*world->in)),
                                 .peers = calloc(2 * (size_t)trial->size, sizeof(*world->peers)),
                                 .sources = calloc(16, sizeof(*world->sources)),
                                 .destinations = calloc(16, sizeof(*world->destinations))};
    world->scratch_bytes = exec_scratch_bytes(trial->plans[rank], &trial->shape);
    world->scratch = calloc(1, world->scratch_bytes + 1);
    world->packed = calloc(2 * links, LINK_PACKED);
    if (!world->out || !world->in || !world->packed || !world->peers || !world->sources ||
        !world->destinations || !world->scratch)
        return false;
    make_links(member);
    age_slots(member);
    plant_stale(member);
    member->execution = (struct execution){.plan = trial->plans[rank],
                                           .world = world,
                                           .op = trial->op,
                                           .shape = trial->shape,
                                           .input = trial->input[rank],
                                           .output = trial->output[rank],
                                           .own = {.input = (uint64_t)rank, .output = 77},
                                           .fingerprint = trial->fingerprint[rank],
                                           .unreachable = trial->unreachable[rank]};
    return true;
}

static void free_member(struct member *member)
{
    free(member->world.out);
    free(member->world.in);
    free(member->world.packed);
    free(member->world.peers);
    free(member->world.sources);
    free(member->world.destinations);
    free(member->world.scratch);
}

static void *run(void *argument)
{
    struct member *member = argument;
    struct trial *trial = member->trial;
    enum exec_state state = EXEC_BLOCKED;
    int rounds = 0;

    exec_start(&member->execution);
    while (rounds++ < PATIENCE && state <= EXEC_BLOCKED && state != EXEC_DONE) {
        state = exec_advance(&member->execution);
        if (state == EXEC_MOVED)
            rounds = 0;
        else if (state == EXEC_BLOCKED)
            sched_yield();
    }
    trial->state[member->rank] = state;
    trial->foreign[member->rank] = member->execution.foreign;
    trial->blamed[member->rank] = member->execution.blamed;
    trial->credit_given[member->rank] = true;
    for (int at = 0; at < trial->size * PLAN_CHANNELS; at++)
        if (atomic_load_explicit(&member->world.in[at].credit->consumed, memory_order_acquire) !=
            member->world.in[at].received)
            trial->credit_given[member->rank] = false;
    return NULL;
}

bool trial_run(struct trial *trial)
{
    struct member members[TRIAL_RANKS] = {0};
    pthread_t threads[TRIAL_RANKS];
    size_t bytes = (size_t)trial->size * (size_t)trial->size * PLAN_CHANNELS * ring_bytes(trial);
    bool right = true;
    int started = 0;

    if (exec_shape_plan(trial->plans[0], trial->count, trial->element, trial->slot_bytes,
                        &trial->shape))
        return false;
    exec_shape_in_parts(&trial->shape, trial->slot_bytes, 2);
    rings = aligned_alloc(LINK_LINE, bytes);
    if (!rings)
        return false;
    memset(rings, 0, bytes);
    for (int r = 0; r < trial->size; r++)
        right = make_member(&members[r], trial, r) && right;
    for (; started < trial->size && right; started++)
        right = pthread_create(&threads[started], NULL, run, &members[started]) == 0;
    for (int r = 0; r < started; r++)
        pthread_join(threads[r], NULL);
    trial->stale_left = 0;
    for (int r = 0; r < trial->size && right; r++)
        trial->stale_left += count_stale(&members[r]);
    for (int r = 0; r < trial->size; r++)
        free_member(&members[r]);
    free(rings);
    return right;
}

bool trial_open(struct trial *trial, rondo_collective collective, int size)
{
    *trial = (struct trial){.size = size, .slots = 2, .slot_bytes = 1024, .element = 4};
    for (int r = 0; r < size; r++) {
        trial->fingerprint[r] = 0x1234abcd;
        if (plan_open(collective, "trial", size, r, 0, &trial->plans[r]))
            return false;
    }
    return true;
}

void trial_close(struct trial *trial)
{
    for (int r = 0; r < trial->size; r++)
        plan_close(trial->plans[r]);
}

/* ---- Two plans ------------------------------------------------------------------------------- */

/* Two messages: the first atom alone, then the others in one
 * message. Ranks between pass slots on and keep a copy. */
void trial_plan_relay(struct trial *trial, unsigned parts)
{
    for (int r = 0; r < trial->size; r++) {
        struct plan *plan = trial->plans[r];

        plan_shape(plan, parts, parts, 0);
        for (int first = 0; first < 2; first++) {
            unsigned atoms = first ? parts - 1 : 1;
            struct plan_operand from = plan_slot_piece(r - 1, 1, first);
            struct plan_operand to = plan_slot_piece(r + 1, 1, first);

            if (r == 0)
                plan_combine(plan, atoms, 0, PLAN_LIST(plan_input(plan, 0, first)),
                             PLAN_LIST(to, plan_output(plan, 0, first)));
            else if (r == trial->size - 1)
                plan_combine(plan, atoms, 0, PLAN_LIST(from),
                             PLAN_LIST(plan_output(plan, 0, first)));
            else
                plan_combine(plan, atoms, 0, PLAN_LIST(from), PLAN_LIST(to));
        }
    }
}

void trial_plan_two_programs(struct trial *trial)
{
    for (int r = 0; r < trial->size; r++) {
        struct plan *plan = trial->plans[r];

        plan_shape(plan, 2, 1, 0);
        for (int half = 0; half < 2; half++) {
            if (half)
                plan_next_program(plan);
            if (r > 0) {
                plan_combine(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, half)),
                             PLAN_LIST(plan_slot(0, half)));
                continue;
            }
            for (int from = 1; from < trial->size; from++)
                plan_combine(
                    plan, 1, from == trial->size - 1 ? PLAN_FINISH : 0,
                    PLAN_LIST(from == 1 ? plan_input(plan, 0, half) : plan_output(plan, 0, half),
                              plan_slot(from, half)),
                    PLAN_LIST(plan_output(plan, 0, half)));
        }
    }
}

struct vectors {
    int32_t *input[TRIAL_RANKS], *output[TRIAL_RANKS];
};

static bool vectors_open(struct vectors *vectors, struct trial *trial)
{
    bool right = true;

    for (int r = 0; r < trial->size; r++) {
        vectors->input[r] = calloc(trial->count + 1, sizeof(int32_t));
        vectors->output[r] = calloc(trial->count + 1, sizeof(int32_t));
        right = right && vectors->input[r] && vectors->output[r];
        for (size_t i = 0; right && i < trial->count; i++)
            vectors->input[r][i] = (int32_t)(i * 7 + (size_t)r * 1000 + 1);
        trial->input[r] = vectors->input[r];
        trial->output[r] = vectors->output[r];
    }
    return right;
}

static void vectors_close(struct vectors *vectors)
{
    for (int r = 0; r < TRIAL_RANKS; r++) {
        free(vectors->input[r]);
        free(vectors->output[r]);
    }
}

static const char *check_ends(const struct trial *trial)
{
    for (int r = 0; r < trial->size; r++)
        if (trial->state[r] != EXEC_DONE || !trial->credit_given[r])
            return trial->credit_given[r] ? "a rank did not end" : "a slot was not given back";
    return NULL;
}

static const char *check_relay(const struct trial *trial, const struct vectors *vectors)
{
    int last = trial->size - 1;

    for (size_t i = 0; i < trial->count; i++)
        if (vectors->output[0][i] != vectors->input[0][i] ||
            vectors->output[last][i] != vectors->input[0][i])
            return "an element did not arrive";
    return vectors->output[last][trial->count] ? "something was written behind the end" : NULL;
}

static const char *check_two_programs(const struct trial *trial, const struct vectors *vectors)
{
    for (size_t i = 0; i < trial->count; i++)
        if (vectors->output[0][i] != (int32_t)(4 * (i * 7 + 1) + 6000))
            return "a sum is wrong";
    return vectors->output[0][trial->count] ? "something was written behind the end" : NULL;
}

/* Run it with vectors, look at the results, close it. */
static const char *trial_check(struct trial *trial,
                               const char *(*check)(const struct trial *, const struct vectors *))
{
    struct vectors vectors = {0};
    const char *wrong = "it could not be run";

    if (vectors_open(&vectors, trial) && trial_run(trial))
        wrong = check_ends(trial);
    if (!wrong)
        wrong = check(trial, &vectors);
    vectors_close(&vectors);
    trial_close(trial);
    return wrong;
}

const char *trial_check_relay(size_t count, unsigned parts, size_t slot_bytes, uint32_t start)
{
    struct trial trial;

    if (!trial_open(&trial, RONDO_BROADCAST, 4))
        return "no memory for plans";
    trial.count = count;
    trial.slot_bytes = slot_bytes;
    trial.start = start;
    trial_plan_relay(&trial, parts);
    return trial_check(&trial, check_relay);
}

const char *trial_check_two_programs(size_t count, size_t slot_bytes, uint32_t start)
{
    static const struct kernel_op sum = {.type = RONDO_INT32, .function = KERNEL_SUM};
    struct trial trial;

    if (!trial_open(&trial, RONDO_REDUCE, 4))
        return "no memory for plans";
    trial.count = count;
    trial.slot_bytes = slot_bytes;
    trial.start = start;
    trial.op = &sum;
    trial_plan_two_programs(&trial);
    return trial_check(&trial, check_two_programs);
}

int trial_count_stale(uint32_t start)
{
    enum { LINKS = 3 }; /* of a relay over four ranks */
    struct trial trial;
    const char *wrong;

    if (!trial_open(&trial, RONDO_BROADCAST, LINKS + 1))
        return -1;
    trial.count = 5000;
    trial.start = start;
    trial.stale = true;
    trial_plan_relay(&trial, 2);
    wrong = trial_check(&trial, check_relay);
    return wrong ? -1 : (int)trial.stale_left / LINKS;
}
