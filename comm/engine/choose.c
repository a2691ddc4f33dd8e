/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose.c - from a call to a plan.
 *
 * Two memories: decisions, by everything that they depend on, in a small table where a newer one
 * replaces an older one; and plans, by (collective, algorithm, root), kept until the communicator
 * closes. Plans know no counts, so there are few of them.
 */
#include "comm/engine/choose.h"

#include "base/collective.h"
#include "base/fail.h"
#include "collectives/levels/grouping.h"
#include "comm/state/comm.h"

#include <stdlib.h>
#include <string.h>

struct plan_entry {
    struct plan_entry *next;
    const struct algorithm *algorithm;
    int cut; /* struct grouping's */
    struct plan *plan;
};

/* Murmur's finalizer: every bit of the input moves every bit of the output. */
static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 33) * 0xff51afd7ed558ccdu;
    value = (value ^ value >> 33) * 0xc4ceb9fe1a85ec53u;
    return value ^ value >> 33;
}

/* A hash of what ranks must agree on. The two ends of a message between two ranks hash alike. */
static uint64_t key_hash(const struct choice_key *key)
{
    bool pair = collective_is_pair(key->collective);
    uint64_t small = (uint64_t)(pair ? RONDO_SEND : key->collective) << 56 |
                     (uint64_t)key->type << 48 | (uint64_t)(uint16_t)key->op << 32 |
                     (pair ? 0 : (uint32_t)key->root);

    return mix(small + mix(key->count + 0x9e3779b97f4a7c15u));
}

uint32_t choice_fingerprint(const struct choice_key *key)
{
    return (uint32_t)key_hash(key);
}

static bool key_equal(const struct choice_key *a, const struct choice_key *b)
{
    return a->collective == b->collective && a->count == b->count && a->type == b->type &&
           a->op == b->op && a->root == b->root && a->no_peer_memory == b->no_peer_memory &&
           (a->algorithm == b->algorithm ||
            (a->algorithm && b->algorithm && strcmp(a->algorithm, b->algorithm) == 0));
}

static uint32_t name_hash(const char *name)
{
    uint64_t hash = 0;

    for (; *name; name++)
        hash = mix(hash + (unsigned char)*name);
    return (uint32_t)hash;
}

/* The executor has room for so many operands; no algorithm needs more. */
static bool steps_fit(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->step_count; i++)
        if (plan->steps[i].sources > plan->size + 2 || plan->steps[i].destinations > plan->size + 2)
            return false;
    return true;
}

static rondo_result write_plan(rondo_comm *comm, const struct choice_key *key,
                               struct plan_entry *entry)
{
    struct grouping groups = {0};
    struct plan_seat seat = {
        .collective = key->collective, .size = comm->size, .rank = comm->rank, .root = key->root};

    if (comm->groups) {
        groups = *comm->groups;
        groups.cut = entry->cut;
        seat.groups = &groups;
    }
    return algorithm_write(entry->algorithm, &seat, &entry->plan);
}

static rondo_result compile(rondo_comm *comm, const struct choice_key *key,
                            const struct algorithm *algorithm, int cut,
                            const struct plan **ret_plan)
{
    struct plan_entry *entry;
    rondo_result result;

    for (entry = comm->choices.plans; entry; entry = entry->next)
        if (entry->algorithm == algorithm && entry->cut == cut &&
            entry->plan->collective == key->collective && entry->plan->root == key->root) {
            *ret_plan = entry->plan;
            return RONDO_OK;
        }
    entry = calloc(1, sizeof(*entry));
    if (!entry)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a plan.");
    entry->algorithm = algorithm;
    entry->cut = cut;
    result = write_plan(comm, key, entry);
    if (!result && !steps_fit(entry->plan)) {
        plan_close(entry->plan);
        result = rondo_fail(RONDO_ERROR_INTERNAL, "A step of %s has too many operands.",
                            algorithm->name);
    }
    if (result) {
        free(entry);
        return result;
    }
    entry->next = comm->choices.plans;
    comm->choices.plans = entry;
    *ret_plan = entry->plan;
    return RONDO_OK;
}

/*
 * The name that selection has to honour. A setting for the whole communicator is a wish: a
 * collective that the algorithm has no form of, or memory that it can't reach, gets the best of the
 * others. A name in a call is an order, except that unreachable memory is nobody's fault: the kind
 * of memory decides the path, never the result.
 */
static const char *wanted_name(rondo_comm *comm, const struct choice_key *key)
{
    const char *name = key->algorithm ? key->algorithm : comm->settings.algorithm;
    const struct algorithm *algorithm = algorithm_find(name);

    if (!algorithm)
        return name;
    if (!key->algorithm && !algorithm->forms[key->collective].write)
        return "auto";
    if (key->no_peer_memory && algorithm->forms[key->collective].promises & PROMISE_PEER_MEMORY)
        return "auto";
    return name;
}

static bool is_narrow_float(rondo_type type)
{
    return type == RONDO_FLOAT16 || type == RONDO_BFLOAT16 || type == RONDO_FLOAT8_E4M3 ||
           type == RONDO_FLOAT8_E5M2;
}

/*
 * Promises that the plan has to keep for this operation. On one node the kind of memory may decide
 * between an algorithm that reaches into peers' memory and one that does not; unless the caller
 * named one, both have to associate sums alike, so that the bits are the same.
 */
unsigned choice_needs(const rondo_comm *comm, const struct choice_key *key,
                      const struct operation *operation, const char *wanted)
{
    rondo_collective collective = key->collective;
    bool one_order = comm->settings.deterministic ||
                     (comm->local_size == comm->size && strcmp(wanted, "auto") == 0);
    unsigned need = PROMISE_IN_PLACE;

    /* An all_to_all that reaches into peers' memory can't
     * work in place; it is told so as unreachable memory. */
    if (collective == RONDO_ALL_TO_ALL || collective >= RONDO_BARRIER)
        need = 0;
    if (!collective_reduces(collective))
        return need;
    if (!operation->commutative)
        need |= PROMISE_RANK_ORDER;
    if (one_order && operation_order_matters(operation)) {
        need |= PROMISE_BALANCED;
        if (is_narrow_float(key->type))
            need |= PROMISE_ONE_ROUND;
    }
    return need;
}

static rondo_result make_scratch(struct exec_world *world, size_t bytes)
{
    if (bytes <= world->scratch_bytes)
        return RONDO_OK;
    free(world->scratch);
    world->scratch = aligned_alloc(64, (bytes + 63) / 64 * 64);
    world->scratch_bytes = world->scratch ? bytes : 0;
    if (!world->scratch)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %zu bytes of scratch.", bytes);
    return RONDO_OK;
}

enum { LONG_OUTPUT = 4 << 20 }; /* bytes */

/*
 * Ways to store that may differ: long messages, and outputs that caches have no use for. All ranks
 * find the same, whatever their part in the collective.
 */
static unsigned ways_to_store(const rondo_comm *comm, const struct choice *choice)
{
    const struct plan *plan = choice->plan;
    size_t element = choice->shape.element;
    size_t longest = choice->shape.window / plan->parts * plan->message_atoms;
    unsigned ways = 1;

    if (comm->settings.streams >= 0)
        return 1u << (comm->settings.streams ? PAST_CACHE_SLOTS : 0);
    if (longest >= PAST_CACHE_FROM / element)
        ways |= ways << PAST_CACHE_SLOTS;
    if (choice->shape.count >= LONG_OUTPUT / element)
        ways |= ways << PAST_CACHE_OUTPUTS;
    return ways;
}

static void begin_stores(const rondo_comm *comm, struct choice *choice)
{
    bool is_long = choice->shape.count >= LONG_OUTPUT / choice->shape.element;

    stores_open(&choice->stores, ways_to_store(comm, choice), comm->past_cache, is_long);
}

/*
 * Where ranks share cores, what one of them writes is read after a change of process, by when it
 * has left the first cache in any case. Short windows that lie in the same place again and again
 * stay in the second one; shallow lanes are the other half of it.
 */
static rondo_result shape_small(const rondo_comm *comm, const struct choice_key *key,
                                size_t element, struct choice *choice)
{
    enum { SMALL_SLOT = 64 << 10 };
    size_t slot = comm->world.slot_bytes < SMALL_SLOT ? comm->world.slot_bytes : SMALL_SLOT;
    rondo_result result = exec_shape_plan(choice->plan, key->count, element, slot, &choice->shape);

    choice->shape.last_place = 0;
    return result;
}

static rondo_result plan_in_pieces(rondo_comm *comm, const struct algorithm *algorithm, int cut,
                                   size_t element, struct choice *choice)
{
    const struct choice_key *key = &choice->key;
    rondo_result result = compile(comm, key, algorithm, cut, &choice->plan);

    /* In one window, if a longer slot makes it one. */
    if (!result && key->collective == RONDO_ALL_REDUCE &&
        comm->long_slot_bytes > comm->world.slot_bytes) {
        result = exec_shape_plan(choice->plan, key->count, element, comm->long_slot_bytes,
                                 &choice->shape);
        if (!result && choice->shape.window == key->count)
            return RONDO_OK;
    }
    if (!result && key->collective == RONDO_ALL_REDUCE && comm->shares_cores)
        return shape_small(comm, key, element, choice);
    return result ? result
                  : exec_shape_plan(choice->plan, key->count, element, comm->world.slot_bytes,
                                    &choice->shape);
}

/*
 * Between hosts every message has a cost of its own. So messages there shall have 32 KiB, and 128
 * KiB where there are many windows: see struct grouping. Longer messages mean longer windows, of
 * which fewer are under way at once (docs/performance_networks.md).
 */
enum { CUT_MOST = 16, FEW_WINDOWS = 8, GOOD_MESSAGE = 32 << 10, GOOD_MESSAGE_OF_MANY = 128 << 10 };

static int find_cut(const struct choice *choice)
{
    const struct exec_shape *shape = &choice->shape;
    size_t windows = shape->window ? (shape->count - 1) / shape->window + 1 : 0;
    size_t message = shape->window / choice->plan->parts * shape->element; /* between hosts */
    size_t good = windows > FEW_WINDOWS ? GOOD_MESSAGE_OF_MANY : GOOD_MESSAGE;
    int cut = 1;

    while (cut < CUT_MOST && (size_t)cut < windows && (size_t)cut * message < good)
        cut *= 2;
    return cut;
}

static rondo_result plan_for(rondo_comm *comm, const struct algorithm *algorithm, size_t element,
                             struct choice *choice)
{
    rondo_result result = plan_in_pieces(comm, algorithm, 1, element, choice);
    int cut;

    if (result || choice->key.collective != RONDO_ALL_REDUCE || !algorithm->levels ||
        !comm->groups || comm->local_size == comm->size)
        return result;
    cut = find_cut(choice);
    return cut > 1 ? plan_in_pieces(comm, algorithm, cut, element, choice) : RONDO_OK;
}

static struct call_record record_of(const struct choice_key *key)
{
    return (struct call_record){
        .collective = (uint8_t)key->collective,
        .type = (uint8_t)key->type,
        .op = (int16_t)key->op,
        .root = key->root,
        .count = key->count,
        .fingerprint = (uint32_t)key_hash(key) ^ name_hash(key->algorithm ? key->algorithm : ""),
    };
}

static rondo_result decide(rondo_comm *comm, const struct choice_key *key, struct choice *choice)
{
    size_t element = key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type);
    struct selection selection = {.collective = key->collective,
                                  .size = comm->size,
                                  .groups = comm->groups,
                                  .counts = &comm->choices.counts,
                                  .bytes = (double)key->count * (double)element};
    const struct algorithm *algorithm;
    struct operation operation = {0};
    rondo_result result = RONDO_OK;

    comm->choices.made++;
    *choice = (struct choice){.key = *key};
    choice->key.made = NULL;
    choice->reduces = collective_reduces(key->collective);
    if (choice->reduces && key->made)
        operation = *key->made;
    else if (choice->reduces)
        result = operations_resolve(&comm->operations, key->op, key->type, comm->size, &operation);
    if (result)
        return result;
    choice->op = operation.kernel;
    selection.wanted = wanted_name(comm, key);
    selection.need = choice_needs(comm, key, &operation, selection.wanted);
    if (key->no_peer_memory || comm->local_size < comm->size || operation.kernel.has_scale)
        selection.forbid = PROMISE_PEER_MEMORY;
    result = select_algorithm(&selection, &comm->costs, &algorithm);
    if (!result)
        result = plan_for(comm, algorithm, element, choice);
    if (!result)
        result = make_scratch(&comm->world, exec_scratch_bytes(choice->plan, &choice->shape));
    if (result)
        return result;
    choice->record = record_of(key);
    choice->hash = choice->record.fingerprint ^ name_hash(algorithm->name);
    choice->deaf_lanes = collective_is_pair(key->collective) ? 0 : exec_deaf_lanes(choice->plan);
    choice->valid = true;
    begin_stores(comm, choice);
    return RONDO_OK;
}

rondo_result choose(rondo_comm *comm, const struct choice_key *key, struct choice **ret_choice)
{
    /* A send and a receive hash alike, and so do the two
     * ways of a call that tries peers' memory first. */
    struct choice *choice = comm->choices.last;
    uint64_t place;
    rondo_result result;

    if (choice && choice->valid && key_equal(&choice->key, key)) {
        *ret_choice = choice;
        return RONDO_OK;
    }
    place = key_hash(key) + 2 * key->collective + key->no_peer_memory;
    choice = &comm->choices.slots[place % CHOICES];

    if (!choice->valid || !key_equal(&choice->key, key)) {
        choice->valid = false;
        result = decide(comm, key, choice);
        if (result)
            return result;
    }
    comm->choices.last = *ret_choice = choice;
    return RONDO_OK;
}

void choices_done(struct choices *choices)
{
    counts_done(&choices->counts);
    while (choices->plans) {
        struct plan_entry *entry = choices->plans;

        choices->plans = entry->next;
        plan_close(entry->plan);
        free(entry);
    }
}
