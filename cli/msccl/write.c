/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * write.c - plans as an algorithm of MSCCL.
 *
 * Each end of a link becomes a thread block that sends or receives; what moves within the rank is
 * done by one block more. Steps of a program depend on each other in a row, as a step of MSCCL has
 * one dependency. A step that combines a message and passes it on without keeping it goes through a
 * chunk of scratch of its own.
 */
#include "cli/msccl/write.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS = 4 * 64 * PLAN_CHANNELS, LOCAL = -1 };

/* A spot is where data are: a buffer, i, o or s, and the chunk in it. */
struct spot {
    char buffer;
    uint32_t at;
};

struct line {
    int block, number; /* in its block */
    const char *type;
    struct spot from, to;
    uint32_t count;
    int after;   /* line that it depends on; -1: none */
    bool waited; /* some other depends on it */
};

struct block {
    int send, receive, channel, program, count;
};

struct writing {
    const struct plan *plan;
    int program;
    uint32_t step;
    struct block blocks[BLOCKS];
    int block_count;
    struct line *lines;
    size_t count, room;
    int last;         /* line of this program; -1: none */
    uint32_t scratch; /* chunks in use */
};

static rondo_result refuse(const struct writing *writing, const char *why)
{
    char words[200];

    plan_describe_step(writing->plan, &writing->plan->steps[writing->step], words, sizeof(words));
    return rondo_fail(RONDO_ERROR_UNSUPPORTED, "MSCCL has no form of rank %d's step %u (%s): %s.",
                      writing->plan->rank, writing->step, words, why);
}

/* The block of an end of a link, LOCAL for the other end; both: what moves within the rank. */
static int block_of(struct writing *writing, int send, int receive, int channel)
{
    int i = 0;

    while (i < writing->block_count &&
           (writing->blocks[i].send != send || writing->blocks[i].receive != receive ||
            writing->blocks[i].channel != channel ||
            (send == LOCAL && receive == LOCAL && writing->blocks[i].program != writing->program)))
        i++;
    if (i == writing->block_count)
        writing->blocks[writing->block_count++] =
            (struct block){send, receive, channel, writing->program, 0};
    return i;
}

static rondo_result add(struct writing *writing, int block, const char *type, struct spot from,
                        struct spot to)
{
    struct line *line;

    if (writing->count == writing->room) {
        size_t room = writing->room ? 2 * writing->room : 64;
        struct line *moved = realloc(writing->lines, room * sizeof(*moved));

        if (!moved)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for an algorithm of MSCCL.");
        writing->lines = moved;
        writing->room = room;
    }
    line = &writing->lines[writing->count];
    *line = (struct line){.block = block,
                          .number = writing->blocks[block].count++,
                          .type = type,
                          .from = from,
                          .to = to,
                          .count = writing->plan->steps[writing->step].atoms,
                          .after = -1};
    if (writing->last >= 0 && writing->lines[writing->last].block != block) {
        line->after = writing->last;
        writing->lines[writing->last].waited = true;
    }
    writing->last = (int)writing->count++;
    return RONDO_OK;
}

static struct spot spot_of(const struct plan *plan, const struct plan_operand *operand)
{
    return (struct spot){"ios"[operand->buffer],
                         operand -> block * plan -> parts + operand -> first};
}

/* Finds the only slot and the only place in memory among operands; false: there are more. */
static bool sort(const struct plan_operand *operands, int count, const struct plan_operand **slot,
                 const struct plan_operand **place)
{
    *slot = *place = NULL;
    for (int i = 0; i < count; i++) {
        const struct plan_operand **kind = operands[i].buffer == PLAN_SLOT ? slot : place;

        if (*kind)
            return false;
        *kind = &operands[i];
    }
    return true;
}

static rondo_result write_move(struct writing *writing, const struct plan_step *step)
{
    const struct plan *plan = writing->plan;
    const struct plan_operand *sources = plan_sources(plan, step), *in, *local, *kept = NULL;
    const struct plan_operand *places = plan_destinations(plan, step);
    struct spot from = {'i', 0}, to;
    rondo_result result = RONDO_OK;

    if (!sort(sources, step->sources, &in, &local))
        return refuse(writing, "it takes more than one message and one place in memory");
    for (int i = 0; i < step->destinations && !kept; i++)
        if (places[i].buffer != PLAN_SLOT)
            kept = &places[i];
    if (local)
        from = spot_of(plan, local);
    to = kept ? spot_of(plan, kept) : from;
    if (in) {
        if (!kept)
            to = (struct spot){'s', writing->scratch};
        writing->scratch += kept ? 0 : step->atoms;
        result = add(writing, block_of(writing, LOCAL, in->rank, in->channel), local ? "rrc" : "r",
                     local ? from : to, to);
    } else if (kept) {
        result = add(writing, block_of(writing, LOCAL, LOCAL, 0), "cpy", from, to);
    }
    for (int i = 0; i < step->destinations && !result; i++) {
        if (&places[i] == kept)
            continue;
        if (places[i].buffer == PLAN_SLOT)
            result = add(writing, block_of(writing, places[i].rank, LOCAL, places[i].channel), "s",
                         to, to);
        else
            result = add(writing, block_of(writing, LOCAL, LOCAL, 0), "cpy", to,
                         spot_of(plan, &places[i]));
    }
    return result;
}

/* Counts the moves between a wait and the signal that the writer is at which use the same slot. */
static int moves_of_message(const struct writing *writing, uint32_t begin)
{
    const struct plan *plan = writing->plan;
    const struct plan_step *signal = &plan->steps[writing->step];
    int moves = 0;

    for (uint32_t s = writing->step; s-- > begin;) {
        const struct plan_step *step = &plan->steps[s];
        bool same = step->peer == signal->peer && step->channel == signal->channel;
        int from = signal->event == PLAN_DATA ? step->sources : 0;
        int to = signal->event == PLAN_DATA ? step->sources + step->destinations : step->sources;

        if (step->verb == PLAN_WAIT && same && step->event != signal->event)
            break;
        if (step->verb == PLAN_WAIT || step->verb == PLAN_SIGNAL)
            continue;
        for (int i = from; i < to; i++) {
            const struct plan_operand *operand = &plan_sources(plan, step)[i];

            moves += operand->buffer == PLAN_SLOT && operand->rank == signal->peer &&
                     operand->channel == signal->channel;
        }
    }
    return moves;
}

/* A step of MSCCL is a message, so every message has to be one piece. */
static rondo_result write_program(struct writing *writing, const struct plan_program *program)
{
    const struct plan *plan = writing->plan;
    rondo_result result = RONDO_OK;

    writing->last = -1;
    for (writing->step = program->begin; writing->step < program->end && !result; writing->step++) {
        const struct plan_step *step = &plan->steps[writing->step];
        bool moves = step->verb == PLAN_COPY || step->verb == PLAN_REDUCE;

        if (step->verb == PLAN_SIGNAL && moves_of_message(writing, program->begin) != 1)
            return refuse(writing, "its message has several pieces, or none");
        if (!moves && (step->peer == plan->rank || (step->flags & PLAN_ADDRESSES)))
            return refuse(writing, "it is a message to the rank itself, or one with addresses");
        for (uint32_t i = 0; moves && i < (uint32_t)(step->sources + step->destinations); i++)
            if (plan_sources(plan, step)[i].rank != plan->rank &&
                plan_sources(plan, step)[i].buffer != PLAN_SLOT)
                return refuse(writing, "it touches memory of a peer");
        if (moves)
            result = write_move(writing, step);
    }
    return result;
}

/* ---- The text -------------------------------------------------------------------------------- */

static void print_line(const struct writing *writing, const struct line *line, FILE *to)
{
    const struct line *after = line->after < 0 ? NULL : &writing->lines[line->after];

    fprintf(to,
            "      <step s=\"%d\" type=\"%s\" srcbuf=\"%c\" srcoff=\"%u\" dstbuf=\"%c\" "
            "dstoff=\"%u\" cnt=\"%u\" depid=\"%d\" deps=\"%d\" hasdep=\"%d\"/>\n",
            line->number, line->type, line->from.buffer, line->from.at, line->to.buffer,
            line->to.at, line->count, after ? after->block : -1, after ? after->number : -1,
            line->waited);
}

static void print_rank(const struct writing *writing, uint32_t scratch, FILE *to)
{
    const struct plan *plan = writing->plan;
    int in = plan_input_blocks(plan->collective, plan->size, plan->rank, plan->root);
    int out = plan_output_blocks(plan->collective, plan->size, plan->rank, plan->root);

    fprintf(to, "  <gpu id=\"%d\" i_chunks=\"%u\" o_chunks=\"%u\" s_chunks=\"%u\">\n", plan->rank,
            (unsigned)in * plan->parts, (unsigned)out * plan->parts, scratch);
    for (int b = 0; b < writing->block_count; b++) {
        const struct block *block = &writing->blocks[b];

        fprintf(to, "    <tb id=\"%d\" send=\"%d\" recv=\"%d\" chan=\"%d\">\n", b, block->send,
                block->receive, block->channel);
        for (size_t i = 0; i < writing->count; i++)
            if (writing->lines[i].block == b)
                print_line(writing, &writing->lines[i], to);
        fputs("    </tb>\n", to);
    }
    fputs("  </gpu>\n", to);
}

static rondo_result write_rank(struct writing *writing)
{
    rondo_result result = RONDO_OK;

    writing->scratch = writing->plan->scratch_blocks * writing->plan->parts;
    for (writing->program = 0; writing->program < writing->plan->programs && !result;
         writing->program++)
        result = write_program(writing, &writing->plan->program[writing->program]);
    return result;
}

static const char *name_of(rondo_collective collective)
{
    switch (collective) {
    case RONDO_ALL_REDUCE:
        return "allreduce";
    case RONDO_ALL_GATHER:
        return "allgather";
    case RONDO_REDUCE_SCATTER:
        return "reduce_scatter";
    case RONDO_ALL_TO_ALL:
        return "alltoall";
    default:
        return NULL;
    }
}

static void print_all(const struct writing *ranks, int size, FILE *to)
{
    const struct plan *first = ranks[0].plan;
    uint32_t scratch = 0;
    int channels = 1;

    for (int r = 0; r < size; r++) {
        scratch = ranks[r].scratch > scratch ? ranks[r].scratch : scratch;
        for (int b = 0; b < ranks[r].block_count; b++)
            if (ranks[r].blocks[b].channel >= channels)
                channels = ranks[r].blocks[b].channel + 1;
    }
    fprintf(
        to,
        "<algo name=\"%s\" proto=\"Simple\" nchannels=\"%d\" nchunksperloop=\"%u\" ngpus=\"%d\" "
        "coll=\"%s\" inplace=\"0\" outofplace=\"1\" minBytes=\"0\" maxBytes=\"0\">\n",
        first->algorithm, channels, first->parts, size, name_of(first->collective));
    for (int r = 0; r < size; r++)
        print_rank(&ranks[r], scratch, to);
    fputs("</algo>\n", to);
}

rondo_result msccl_write(struct plan *const *plans, int size, FILE *to)
{
    struct writing *ranks = calloc((size_t)size, sizeof(*ranks));
    rondo_result result = RONDO_OK;

    if (!ranks)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for an algorithm of MSCCL.");
    if (!name_of(plans[0]->collective) || plans[0]->size > 64)
        result = rondo_fail(RONDO_ERROR_UNSUPPORTED, "MSCCL has no %s of %d ranks.",
                            rondo_collective_name(plans[0]->collective), plans[0]->size);
    for (int r = 0; r < size && !result; r++) {
        ranks[r].plan = plans[r];
        result = write_rank(&ranks[r]);
    }
    if (!result)
        print_all(ranks, size, to);
    for (int r = 0; r < size; r++)
        free(ranks[r].lines);
    free(ranks);
    return result;
}
