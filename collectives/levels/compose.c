/* SPDX-License-Identifier: BSD-3-Clause */
/* compose.c - copies an inner plan's steps under their outer names: see compose.h. */
#include "collectives/levels/compose.h"

#include <stdlib.h>
#include <string.h>

/* ---- Places ---------------------------------------------------------------------------------- */

static void places_close(struct places *places)
{
    free(places->items);
    free(places->ends);
    *places = (struct places){0};
}

/* Room for one more; false, with the plan spoilt: out of memory. */
static bool grow(struct plan *plan, void **array, size_t size, int count, int *room)
{
    int wanted = *room ? 2 * *room : 16;
    void *moved;

    if (count < *room)
        return true;
    moved = realloc(*array, size * (size_t)wanted);
    if (!moved) {
        plan->out_of_memory = true;
        return false;
    }
    *array = moved;
    *room = wanted;
    return true;
}

void places_next(struct plan *plan, struct places *places)
{
    if (grow(plan, (void **)&places->ends, sizeof(*places->ends), places->blocks,
             &places->block_room))
        places->ends[places->blocks++] = places->count;
}

void places_add(struct plan *plan, struct places *places, struct place place)
{
    if (plan->out_of_memory ||
        !grow(plan, (void **)&places->items, sizeof(*places->items), places->count, &places->room))
        return;
    places->items[places->count++] = place;
    places->ends[places->blocks - 1] = places->count;
}

/* ---- Names ----------------------------------------------------------------------------------- */

struct composition {
    struct plan *plan;
    const struct plan *from;
    const struct inner *inner;
    struct plan_operand *operands; /* of the step being copied */
    struct place scratch;          /* of its last operand in scratch */
};

static int outer_rank(const struct inner *inner, int rank)
{
    return inner->ranks ? inner->ranks[rank] : grouping_on_rail(inner->groups, rank, inner->rail);
}

/* The buffer's blocks are told apart by the rank that has them. */
static bool is_by_rank(rondo_collective collective, uint8_t buffer)
{
    switch (collective) {
    case RONDO_ALL_GATHER:
    case RONDO_GATHER:
        return buffer == PLAN_INPUT;
    case RONDO_REDUCE_SCATTER:
    case RONDO_SCATTER:
        return buffer == PLAN_OUTPUT;
    default:
        return false;
    }
}

/* Returns the places that an operand stands for; NULL for slots, which hold what the others say. A
 * block of scratch stands for itself. */
static const struct place *places_of(struct composition *c, const struct plan_operand *operand,
                                     int *ret_count)
{
    const struct places *places =
        operand->buffer == PLAN_INPUT ? &c->inner->input : &c->inner->output;
    bool by_rank = is_by_rank(c->inner->collective, operand->buffer);
    int block = by_rank ? operand->rank : (int)operand->block;
    int begin;

    *ret_count = operand->buffer == PLAN_SCRATCH;
    if (operand->buffer == PLAN_SCRATCH) {
        c->scratch = (struct place){PLAN_SCRATCH, (int)operand->block, 0, 1};
        return &c->scratch;
    }
    if (operand->buffer > PLAN_OUTPUT || block >= places->blocks)
        return NULL;
    begin = block ? places->ends[block - 1] : 0;
    *ret_count = places->ends[block] - begin;
    return places->items + begin;
}

/* Counts the pieces that the range of a step becomes: those of any operand that is no slot. */
static int pieces_of(struct composition *c, const struct plan_step *step)
{
    const struct plan_operand *operands = plan_sources(c->from, step);
    int count = 0;

    for (int i = 0; i < step->sources + step->destinations; i++)
        if (operands[i].buffer != PLAN_SLOT) {
            places_of(c, &operands[i], &count);
            return count;
        }
    return count;
}

/* ---- Messages that have become empty --------------------------------------------------------- */

static bool touches(struct composition *c, const struct plan_step *step,
                    const struct plan_step *wait)
{
    const struct plan_operand *operands = plan_sources(c->from, step);
    int first = wait->event == PLAN_DATA ? 0 : step->sources;
    int end = wait->event == PLAN_DATA ? step->sources : step->sources + step->destinations;

    for (int i = first; i < end; i++)
        if (operands[i].buffer == PLAN_SLOT && operands[i].rank == wait->peer &&
            operands[i].channel == wait->channel)
            return true;
    return false;
}

/*
 * The message that the wait at `at` opens: where it is signalled or given back, and whether nothing
 * is left of what it carried. A message that carried nothing before stays: it is a flag.
 */
static bool is_emptied(struct composition *c, uint32_t at, uint32_t end, uint32_t *ret_close)
{
    const struct plan_step *wait = &c->from->steps[at];
    bool carried = false, carries = false;

    for (uint32_t i = at + 1; i < end; i++) {
        const struct plan_step *step = &c->from->steps[i];

        if (step->verb == PLAN_SIGNAL && step->event != wait->event && step->peer == wait->peer &&
            step->channel == wait->channel) {
            *ret_close = i;
            return carried && !carries;
        }
        if ((step->verb == PLAN_COPY || step->verb == PLAN_REDUCE) && touches(c, step, wait)) {
            carried = true;
            carries = carries || pieces_of(c, step) > 0;
        }
    }
    return false;
}

/* Mark the two ends of each message that has become empty. */
static void mark_emptied(struct composition *c, bool *emptied)
{
    for (int p = 0; p < c->from->programs; p++)
        for (uint32_t i = c->from->program[p].begin; i < c->from->program[p].end; i++) {
            uint32_t close = i;

            if (c->from->steps[i].verb == PLAN_WAIT &&
                is_emptied(c, i, c->from->program[p].end, &close))
                emptied[i] = emptied[close] = true;
        }
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void copy_event(struct composition *c, const struct plan_step *step)
{
    int peer = outer_rank(c->inner, step->peer), channel = c->inner->channel + step->channel;
    unsigned flags = c->inner->introduced ? step->flags & ~(unsigned)PLAN_ADDRESSES : step->flags;

    if (step->verb == PLAN_WAIT && step->event == PLAN_CREDIT)
        plan_acquire(c->plan, peer, channel);
    else if (step->verb == PLAN_WAIT)
        plan_wait(c->plan, peer, channel, flags);
    else if (step->event == PLAN_DATA)
        plan_signal(c->plan, peer, channel, flags);
    else
        plan_release(c->plan, peer, channel);
}

static bool same(const struct plan_operand *a, const struct plan_operand *b)
{
    return a->buffer == b->buffer && a->buffer != PLAN_SLOT && a->rank == b->rank &&
           a->block == b->block && a->first == b->first;
}

/* The outer name of piece `piece` of an operand; *ret_atoms: its length, for all but slots. */
static struct plan_operand outer_name(struct composition *c, const struct plan_step *step,
                                      const struct plan_operand *operand, int piece,
                                      unsigned *ret_atoms)
{
    struct plan_operand name = *operand;
    int count;
    const struct place *place = places_of(c, operand, &count);

    name.rank = outer_rank(c->inner, operand->rank);
    if (operand->buffer == PLAN_SLOT) {
        name.channel = (uint8_t)(c->inner->channel + operand->channel);
        return name;
    }
    if (piece >= count) {
        c->plan->out_of_memory = true; /* the lists were cut short by it */
        return name;
    }
    place += piece;
    name.buffer = (uint8_t)place->buffer;
    name.block = (uint32_t)place->block;
    name.first = (uint32_t)place->first + operand->first * (uint32_t)place->atoms;
    *ret_atoms = step->atoms * (unsigned)place->atoms;
    return name;
}

/* A copy onto itself is left out, unless it finishes what is there. */
static void copy_piece(struct composition *c, const struct plan_step *step, int piece)
{
    unsigned flags = c->inner->finish ? step->flags : step->flags & ~(unsigned)PLAN_FINISH;
    const struct plan_operand *from = plan_sources(c->from, step);
    struct plan_operand *to = c->operands;
    int destinations = 0;
    unsigned atoms = 0;

    for (int i = 0; i < step->sources; i++)
        *to++ = outer_name(c, step, from++, piece, &atoms);
    for (int i = 0; i < step->destinations; i++) {
        to[destinations] = outer_name(c, step, from++, piece, &atoms);
        destinations +=
            step->sources > 1 || (flags & PLAN_FINISH) || !same(&to[destinations], c->operands);
    }
    if (destinations)
        plan_move(c->plan, atoms, flags, (struct plan_list){step->sources, c->operands},
                  (struct plan_list){destinations, to});
}

static void copy_program(struct composition *c, const struct plan_program *program,
                         const bool *emptied)
{
    for (uint32_t i = program->begin; i < program->end; i++) {
        const struct plan_step *step = &c->from->steps[i];
        int pieces = 0;

        if (step->verb == PLAN_WAIT || step->verb == PLAN_SIGNAL) {
            if (!emptied[i])
                copy_event(c, step);
            continue;
        }
        pieces = pieces_of(c, step);
        for (int piece = 0; piece < pieces; piece++)
            copy_piece(c, step, piece);
    }
}

/* Programs first .. last of the inner plan, or as many as there are. */
static void compose_programs(struct plan *plan, struct inner *inner, int first, int last)
{
    struct composition c = {.plan = plan, .inner = inner};
    struct plan *from = NULL;
    bool *emptied = NULL;

    if (!plan->out_of_memory && !algorithm_plan(inner->algorithm, inner->collective, inner->size,
                                                inner->rank, inner->root, &from)) {
        c.from = from;
        c.operands = calloc(2 * (size_t)inner->size + 4, sizeof(*c.operands));
        emptied = calloc((size_t)from->step_count + 1, sizeof(*emptied));
    }
    if (c.operands && emptied) {
        mark_emptied(&c, emptied);
        for (int p = first; p < from->programs && p <= last; p++) {
            if (p && inner->side_by_side)
                plan_next_program(plan);
            copy_program(&c, &from->program[p], emptied);
        }
    } else {
        plan->out_of_memory = true;
    }
    free(emptied);
    free(c.operands);
    plan_close(from);
    places_close(&inner->input);
    places_close(&inner->output);
}

void compose(struct plan *plan, struct inner *inner)
{
    compose_programs(plan, inner, 0, PLAN_PROGRAMS_MAX);
}

void compose_part(struct plan *plan, struct inner *inner, int part)
{
    compose_programs(plan, inner, part, part);
}

void compose_next_program(struct plan *plan, int channel)
{
    plan_notify(plan, plan->rank, channel, 0);
    plan_next_program(plan);
    plan_await(plan, plan->rank, channel, 0);
}
