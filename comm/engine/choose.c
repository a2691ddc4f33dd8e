/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * choose.c - from a call to a plan.
 *
 * Decisions are remembered by everything that they depend on, in a small table where a newer one
 * replaces an older one; plans (plans.h) until the communicator closes.
 */
#include "comm/engine/choose.h"

#include "base/caller/float_mode.h"
#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"
#include "collectives/levels/grouping.h"
#include "comm/state/comm.h"
#include "comm/state/plans.h"

#include <stdlib.h>
#include <string.h>

static bool key_equal(const struct choice_key *a, const struct choice_key *b)
{
    return a->collective == b->collective && a->count == b->count && a->type == b->type &&
           a->op == b->op && a->root == b->root && a->no_peer_memory == b->no_peer_memory &&
           (a->algorithm == b->algorithm ||
            (a->algorithm && b->algorithm && strcmp(a->algorithm, b->algorithm) == 0));
}

static rondo_result compile(rondo_comm *comm, const struct choice_key *key,
                            const struct algorithm *algorithm, int cut,
                            const struct plan **ret_plan)
{
    struct grouping groups = {0};
    struct plan_request request = {.collective = key->collective,
                                   .size = comm->size,
                                   .rank = comm->rank,
                                   .root = key->root,
                                   .order = comm->order};
    struct plan_entry *entry;
    rondo_result result;

    if (comm->groups) {
        groups = *comm->groups;
        groups.cut = cut;
        request.groups = &groups;
    }
    result = plans_find(&comm->choices.plans, algorithm, &request, &entry);
    if (!result)
        *ret_plan = entry->plan;
    return result;
}

/*
 * The name that selection has to honour. A setting for the whole communicator is a wish: a
 * collective that the algorithm has no form of, or memory that it can't reach, gets the best of the
 * others, and so do messages, of which short ones shall not wait for their receivers. A name in a
 * call is an order: by that algorithm, or not at all.
 */
const char *choice_wanted(const rondo_comm *comm, const struct choice_key *key)
{
    const char *name = key->algorithm ? key->algorithm : comm->settings.algorithm;
    const struct algorithm *algorithm = algorithm_find(name);

    if (!algorithm || key->algorithm)
        return name;
    if (!algorithm_has(algorithm, key->collective, comm->size, key->root))
        return "auto";
    if ((key->no_peer_memory || comm->local_size < comm->size ||
         collective_is_pair(key->collective)) &&
        algorithm->forms[key->collective].promises & PROMISE_PEER_MEMORY)
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

/* Ways to store that may differ: long messages, and outputs that caches have no use for. All ranks
 * find the same, whatever their part in the collective. */
static unsigned ways_to_store(const struct tuning *tuning, const struct choice *choice,
                              bool is_long)
{
    const struct plan *plan = choice->plan;
    size_t longest = choice->shape.segment / plan->parts * plan->message_atoms;
    unsigned ways = 1;

    if (tuning->streams >= 0)
        return 1u << (tuning->streams ? PAST_CACHE_SLOTS : 0);
    /* Parted messages are read after a change of process, from the second cache. */
    if (longest >= PAST_CACHE_FROM / choice->shape.element && !choice->shape.parted)
        ways |= ways << PAST_CACHE_SLOTS;
    if (is_long)
        ways |= ways << PAST_CACHE_OUTPUTS;
    return ways;
}

static void open_trials(const struct tuning *tuning, struct choice *choice)
{
    bool is_long = choice->shape.count >= tuning->long_output / choice->shape.element;
    const struct trial_rules *rules = is_long ? &tuning->long_stores : &tuning->stores;

    if (collective_is_pair(choice->key.collective))
        rules = &tuning->pair_stores;
    trial_init(&choice->stores, rules, ways_to_store(tuning, choice, is_long), tuning->past_cache);
    trial_init(&choice->reads, &tuning->reads, 1u << READS_ACROSS | 1u << READS_STAGED,
               READS_ACROSS);
}

static rondo_result plan_in_pieces(rondo_comm *comm, const struct algorithm *algorithm, int cut,
                                   size_t element, struct choice *choice)
{
    const struct choice_key *key = &choice->key;
    const struct tuning_segments *segments = &comm->tuning.segments[key->collective];
    rondo_result result = compile(comm, key, algorithm, cut, &choice->plan);

    if (!result && segments->alone) {
        result =
            exec_shape_plan(choice->plan, key->count, element, segments->alone, &choice->shape);
        if (!result && choice->shape.segment == key->count)
            return RONDO_OK;
    }
    if (!result)
        result = exec_shape_plan(choice->plan, key->count, element, segments->slot_bytes,
                                 &choice->shape);
    if (segments->in_one_place)
        choice->shape.last_place = 0;
    else if (!result)
        exec_shape_in_parts(&choice->shape, segments->slot_bytes, segments->parts);
    return result;
}

/* Into how many slices a segment between groups is cut, so that messages get long enough. */
static int find_cut(const struct tuning *tuning, const struct choice *choice)
{
    const struct exec_shape *shape = &choice->shape;
    size_t segments = shape->segment ? (shape->count - 1) / shape->segment + 1 : 0;
    size_t message = shape->segment / choice->plan->parts * shape->element; /* between hosts */
    size_t good = segments > tuning->messages.few_segments ? tuning->messages.good_of_many
                                                           : tuning->messages.good;
    int most = tuning->segments[choice->key.collective].slices_most;
    int cut = 1;

    while (cut < most && (size_t)cut < segments && (size_t)cut * message < good)
        cut *= 2;
    return cut;
}

static rondo_result plan_for(rondo_comm *comm, const struct algorithm *algorithm, size_t element,
                             struct choice *choice)
{
    rondo_result result = plan_in_pieces(comm, algorithm, 1, element, choice);
    int cut;

    if (result || !algorithm->levels || !comm->groups)
        return result;
    cut = find_cut(&comm->tuning, choice);
    return cut > 1 ? plan_in_pieces(comm, algorithm, cut, element, choice) : RONDO_OK;
}

struct call_record choice_record(const struct choice_key *key)
{
    return (struct call_record){
        .collective = (uint8_t)key->collective,
        .type = (uint8_t)key->type,
        .op = (int16_t)choice_op(key),
        .root = key->root,
        .count = key->count,
        .fingerprint =
            choice_fingerprint(key) ^ choice_name_hash(key->algorithm ? key->algorithm : ""),
    };
}

/* Finds what a call asks of its plan, and the operation that it reduces with, if it does. */
static rondo_result describe(rondo_comm *comm, const struct choice_key *key, struct counts *counts,
                             struct selection *ret_selection, struct operation *ret_operation)
{
    size_t element = key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type);
    struct selection selection = {.collective = key->collective,
                                  .size = comm->size,
                                  .groups = comm->groups,
                                  .counts = counts,
                                  .bytes = (double)key->count * (double)element};
    rondo_result result = RONDO_OK;

    *ret_operation = (struct operation){0};
    if (collective_reduces(key->collective) && key->made)
        *ret_operation = *key->made;
    else if (collective_reduces(key->collective))
        result =
            operations_resolve(&comm->operations, key->op, key->type, comm->size, ret_operation);
    if (result)
        return result;
    selection.wanted = choice_wanted(comm, key);
    /* Relaxed, with split.c. */
    selection.quiet = comm->rank != 0 || !comm_is_assembled(comm) ||
                      atomic_load_explicit(&comm->own_call, memory_order_relaxed);
    if (!selection.quiet && !key->algorithm && !comm->settings.automatic &&
        strcmp(selection.wanted, "auto") == 0)
        log_info("%s is not taken for this call of %s, but the best there is for it "
                 "(RONDO_ALGORITHM or the configuration)",
                 comm->settings.algorithm, rondo_collective_name(key->collective));
    selection.need = choice_needs(comm, key, ret_operation, selection.wanted);
    if (key->no_peer_memory || comm->local_size < comm->size || ret_operation->kernel.has_scale)
        selection.forbid = PROMISE_PEER_MEMORY;
    *ret_selection = selection;
    return RONDO_OK;
}

/*
 * The algorithm of a call. An average that it would round on the way is scaled, and then peers
 * can't read inputs as they are: such an algorithm is refused if the call has named it, and gives
 * way if a setting has.
 */
static rondo_result pick(rondo_comm *comm, const struct choice_key *key,
                         struct selection *selection, struct operation *operation,
                         const struct algorithm **ret_algorithm)
{
    const struct link_costs *costs = &comm->tuning.costs;
    rondo_result result = select_algorithm(selection, costs, ret_algorithm);
    unsigned promises =
        result ? 0 : algorithm_promises(*ret_algorithm, selection->collective, selection->groups);

    if (result || promises & PROMISE_ONE_ROUND || !operation_scale_average(operation) ||
        !(promises & PROMISE_PEER_MEMORY))
        return result;
    if (key->algorithm && strcmp(key->algorithm, "auto") != 0)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "The algorithm %s reads inputs as they are and rounds partial sums, "
                          "which in an average of %s may overflow: take another algorithm or type.",
                          key->algorithm, rondo_type_name(key->type));
    selection->wanted = "auto";
    selection->forbid |= PROMISE_PEER_MEMORY;
    return select_algorithm(selection, costs, ret_algorithm);
}

static rondo_result decide(rondo_comm *comm, const struct choice_key *key, struct choice *choice)
{
    size_t element = key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type);
    const struct algorithm *algorithm;
    struct selection selection;
    struct operation operation;
    rondo_result result;

    comm->choices.made++;
    *choice = (struct choice){.key = *key};
    choice->key.made = NULL;
    choice->reduces = collective_reduces(key->collective);
    result = describe(comm, key, &comm->choices.counts, &selection, &operation);
    if (result)
        return result;
    result = pick(comm, key, &selection, &operation, &algorithm);
    choice->op = operation.kernel;
    if (!result)
        result = plan_for(comm, algorithm, element, choice);
    if (!result)
        result = make_scratch(&comm->world, exec_scratch_bytes(choice->plan, &choice->shape));
    if (result)
        return result;
    choice->kind = (struct recorder_kind){
        .record = choice_record(key),
        .algorithm = choice->plan->algorithm,
        .is_long = key->collective != RONDO_BARRIER &&
                   key->count >= RECORDER_LONG / rondo_type_size(key->type),
    };
    choice->hash = choice->kind.record.fingerprint ^ choice_name_hash(algorithm->name);
    choice->deaf_channels =
        collective_is_pair(key->collective) ? 0 : exec_deaf_channels(choice->plan);
    choice->valid = true;
    open_trials(&comm->tuning, choice);
    return RONDO_OK;
}

bool choice_fits(const struct choice *choice, const struct choice_key *key)
{
    return choice->valid && key_equal(&choice->key, key);
}

rondo_result choose(rondo_comm *comm, const struct choice_key *key, struct choice **ret_choice)
{
    /* A send and a receive hash alike, and so do the two ways of a call that tries peers' memory
     * first, and own operations of one kind. */
    struct choice *choice = comm->choices.last;
    uint64_t place;
    rondo_result result;

    if (choice && choice_fits(choice, key)) {
        *ret_choice = choice;
        return RONDO_OK;
    }
    place = choice_hash(key) + 2 * key->collective + key->no_peer_memory;
    if (key->own)
        place += 4 * (uint64_t)key->op;
    choice = &comm->choices.slots[place % CHOICES];

    if (!choice_fits(choice, key)) {
        uint64_t callers = float_mode_enter(); /* all ranks decide alike */

        choice->valid = false;
        result = decide(comm, key, choice);
        float_mode_leave(callers);
        if (result)
            return result;
    }
    comm->choices.last = *ret_choice = choice;
    return RONDO_OK;
}

rondo_result choice_predict(rondo_comm *comm, const struct choice_key *key,
                            const struct algorithm *algorithm, struct counts *counts,
                            double *ret_seconds)
{
    struct selection selection;
    struct operation operation;
    rondo_result result = describe(comm, key, counts, &selection, &operation);

    if (!result && !algorithm)
        result = pick(comm, key, &selection, &operation, &algorithm);
    return result ? result
                  : select_predict(algorithm, &selection, &comm->tuning.costs, ret_seconds);
}

void choices_done(struct choices *choices)
{
    counts_done(&choices->counts);
    plans_done(&choices->plans, NULL);
}
