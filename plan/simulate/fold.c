/* SPDX-License-Identifier: BSD-3-Clause */
/* fold.c - looks for a symmetry of a machine and its plans. */
#include "plan/simulate/fold.h"

#include "plan/simulate/route.h"

#include <string.h>

enum { COMPARED = 8000000 }; /* steps */

/* ---- Of the machine -------------------------------------------------------------------------- */

static bool is_power(int number)
{
    return number > 0 && !(number & (number - 1));
}

/* Returns how far ranks of a circle move until the machine looks the same; 0: it never does. */
static int circle_period(const struct machine *machine, int ranks)
{
    int period = machine->host_ranks;

    if (ranks <= machine->host_ranks)
        return machine->inside == INSIDE_PCIE ? 0 : 1;
    if (machine->fabric == FABRIC_TREE || machine->fabric == FABRIC_RAILS)
        period *= machine->leaf_hosts;
    else if (machine->fabric == FABRIC_TORUS)
        period *= machine->z > 1 ? machine->x * machine->y : machine->x;
    else if (machine->fabric == FABRIC_DRAGONFLY)
        period *= machine->leaf_hosts * machine->spines;
    if (machine->fabric == FABRIC_TORUS &&
        ranks != period * (machine->z > 1 ? machine->z : machine->y))
        return 0;
    return ranks % period ? 0 : period;
}

static int bits_period(const struct machine *machine, int ranks)
{
    bool one = ranks <= machine->host_ranks;
    bool tree = machine->fabric == FABRIC_TREE || machine->fabric == FABRIC_RAILS;

    if (!is_power(ranks))
        return 0;
    if (one)
        return machine->inside == INSIDE_PCIE ? 0 : 1;
    if (!is_power(machine->host_ranks) || !is_power(machine->nics))
        return 0;
    if (machine->fabric != FABRIC_FLAT && !(tree && is_power(machine->leaf_hosts)))
        return 0;
    /* Rails have numbers, which a move within hosts would mix up. */
    return machine->fabric == FABRIC_RAILS ? machine->host_ranks : 1;
}

/* ---- Of the plans ---------------------------------------------------------------------------- */

struct digest {
    struct plan_reader reader; /* first: it is what plans know of this */
    const struct fold *fold;
    const struct machine *machine;
    int rank;
    uint64_t sum, steps;
    uint64_t kind, run; /* of the steps before that may stand in any order, and their sum */
};

static inline void mix(struct digest *digest, uint64_t word)
{
    digest->sum = (digest->sum ^ word) * 0x9e3779b97f4a7c15u;
    digest->sum ^= digest->sum >> 29;
}

static inline uint64_t moved(const struct digest *digest, int peer)
{
    return (uint64_t)fold_move(digest->fold, peer, digest->rank);
}

static uint64_t scramble(uint64_t word)
{
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    return word ^ word >> 31;
}

/* Waits that follow each other are over when the last of them is, and what costs no time can be
 * told to peers in any order: what stands in such a run is summed up. */
static void end_run(struct digest *digest)
{
    mix(digest, digest->kind);
    mix(digest, digest->run);
    digest->kind = digest->run = 0;
}

static bool has_order(const struct digest *digest, const struct plan_step *step)
{
    const struct machine *machine = digest->machine;

    return step->verb == PLAN_SIGNAL && step->event == PLAN_DATA && machine->message > 0 &&
           step->peer / machine->host_ranks != digest->rank / machine->host_ranks;
}

static void read_step(struct plan_reader *reader, const struct plan *plan,
                      const struct plan_step *step)
{
    struct digest *digest = (struct digest *)reader;
    bool event = step->verb == PLAN_SIGNAL || step->verb == PLAN_WAIT;
    uint64_t kind = (uint64_t)plan->programs << 32 | (uint64_t)step->verb << 16 |
                    (uint64_t)step->event << 8 | step->flags;

    digest->steps++;
    if (!event || kind != digest->kind || has_order(digest, step))
        end_run(digest);
    digest->kind = kind;
    if (event) {
        digest->run += scramble(moved(digest, step->peer) << 8 | step->channel);
        return;
    }
    mix(digest, (uint64_t)step->atoms << 32 | (uint64_t)step->sources);
    for (int i = 0; i < step->sources + step->destinations; i++) {
        const struct plan_operand *operand = &plan_sources(plan, step)[i];
        bool slot = operand->buffer == PLAN_SLOT, source = i < step->sources;

        digest->run += scramble(moved(digest, operand->rank) << 16 | (uint64_t)slot << 9 |
                                (uint64_t)source << 8 | (slot ? operand->channel : 0));
    }
}

static rondo_result digest_rank(const struct simulate_plans *plans, const struct machine *machine,
                                const struct fold *fold, int rank, struct digest *ret_digest)
{
    struct digest digest = {
        .reader = {read_step}, .fold = fold, .machine = machine, .rank = rank, .sum = 1};
    struct plan *shape = NULL;
    rondo_result result = plans->read(plans, rank, &digest.reader, &shape);

    if (result)
        return result;
    end_run(&digest);
    mix(&digest, (uint64_t)shape->parts << 32 | shape->message_atoms);
    plan_close(shape);
    *ret_digest = digest;
    return RONDO_OK;
}

/* Compares a kind's plan with those of `images` of its images, spread over all of them. */
static rondo_result compare(const struct simulate_plans *plans, const struct machine *machine,
                            struct fold *fold, int kind, bool *ret_same)
{
    int all = fold->ranks / fold->period - 1, images = all;
    struct digest own, other;
    rondo_result result = digest_rank(plans, machine, fold, kind, &own);

    *ret_same = true;
    if (!result && own.steps * (uint64_t)fold->ranks > COMPARED)
        images = (int)(COMPARED / (own.steps * (uint64_t)fold->period));
    images = images < 1 ? 1 : images > all ? all : images;
    for (int i = 1; i <= images && *ret_same && !result; i++) {
        int image = kind + fold->period * (int)((long long)all * i / images);

        result = digest_rank(plans, machine, fold, image, &other);
        *ret_same = !result && other.sum == own.sum;
        fold->compared++;
    }
    return result;
}

static rondo_result try_symmetry(const struct simulate_plans *plans, const struct machine *machine,
                                 int period, bool by_bits, struct fold *fold)
{
    struct fold tried = {.ranks = plans->ranks, .period = period, .by_bits = by_bits};
    rondo_result result = RONDO_OK;
    bool same = period > 0 && period < plans->ranks && period < fold->period;

    for (int kind = 0; same && !result && kind < period; kind++)
        result = compare(plans, machine, &tried, kind, &same);
    if (!result && same)
        *fold = tried;
    return result;
}

rondo_result fold_find(const struct simulate_plans *plans, const struct machine *machine,
                       struct fold *ret_fold)
{
    int ranks = plans->ranks;
    struct fold fold = {.ranks = ranks, .period = ranks};
    int bits = machine->routes == ROUTES_FIXED && machine->fabric != FABRIC_FLAT
                   ? 0
                   : bits_period(machine, ranks);
    int circle = bits || machine->routes != ROUTES_FIXED || machine->fabric == FABRIC_FLAT
                     ? circle_period(machine, ranks)
                     : 0;
    rondo_result result = try_symmetry(plans, machine, bits, true, &fold);

    /* A move within hosts may be too much, and one of whole hosts not. */
    if (!result && bits && bits < machine->host_ranks)
        result = try_symmetry(plans, machine, machine->host_ranks, true, &fold);
    if (!result)
        result = try_symmetry(plans, machine, circle, false, &fold);
    if (!result)
        *ret_fold = fold;
    return result;
}
