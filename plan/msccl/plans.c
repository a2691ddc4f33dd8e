/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plans.c - lets the blocks of all GPUs run against each other, and writes down what each does.
 *
 * A block goes on when the step that it depends on is over, its message is there, and one of two
 * slots is free. What it does is appended to the plan of its rank, so each rank's steps stand in an
 * order in which they have run.
 *
 * What every chunk holds is followed: which atom of a block it is, for in scratch that is not where
 * it lies; and the shares of which ranks, for the step that completes a sum is marked as such.
 */
#include "plan/msccl/msccl.h"

#include "base/collective.h"
#include "base/fail.h"
#include "plan/msccl/algo.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 };

/* A chunk of a buffer, or of a message. */
struct chunk {
    uint64_t ranks; /* shares in it */
    uint32_t atom;
    bool written;
};

struct pipe {
    struct chunk *chunks[SLOTS]; /* of the messages under way */
    int count[SLOTS];
    uint32_t sent, received;
};

struct weaving {
    const char *path;
    const struct msccl_algo *algo;
    struct plan_file *file;
    struct chunk *chunks[MSCCL_RANKS][3]; /* of i, o, s */
    struct pipe *pipes;                   /* [from][to][channel] */
    size_t *at;                           /* [block]: steps that are over */
    uint32_t parts;
    bool in_place; /* there is no o: results come to where the inputs are */
    const struct msccl_block *block;
    const struct msccl_step *step;
};

static bool refuse(const struct weaving *weaving, const char *why)
{
    rondo_fail(RONDO_ERROR_INVALID,
               "The algorithm in %s is wrong: line %u, GPU %d, block %d, step %zu: %s.",
               weaving->path, weaving->step->line, weaving->block->rank, weaving->block->id,
               weaving->at[weaving->block - weaving->algo->blocks], why);
    return false;
}

static struct pipe *pipe_of(const struct weaving *weaving, bool sends)
{
    const struct msccl_block *block = weaving->block;
    int from = sends ? block->rank : block->receive, to = sends ? block->send : block->rank;

    return &weaving->pipes[(from * MSCCL_RANKS + to) * MSCCL_CHANNELS + block->channel];
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

static int kind_of(char buffer)
{
    return buffer == 'i' ? 0 : buffer == 'o' ? 1 : 2;
}

/* The chunk `index` behind the place of a step; NULL: it lies outside. */
static struct chunk *chunk_at(const struct weaving *weaving, char buffer, int at, int index)
{
    int kind = kind_of(buffer), rank = weaving->block->rank;

    if (at < 0 || at + index >= weaving->algo->chunks[rank][kind])
        return NULL;
    return &weaving->chunks[rank][kind][at + index];
}

/* The operand where a chunk is: in scratch it has a block of its own. */
static struct plan_operand operand_of(const struct weaving *weaving, const struct plan *plan,
                                      const struct chunk *chunk, char buffer, int at, bool writes)
{
    int block = at / (int)weaving->parts, atom = at % (int)weaving->parts;
    bool gathers = plan->collective == RONDO_ALL_GATHER;

    if (buffer == 's')
        return plan_scratch(plan, at, (int)chunk->atom);
    if (buffer == 'i' && (!weaving->in_place || (!writes && !chunk->written)))
        return plan_input(plan, block, atom);
    if (buffer == 'o' && gathers && !writes && !chunk->written)
        return plan_input(plan, 0, atom); /* in place: the rank's own block */
    return plan_output(plan, block, atom);
}

static struct chunk *make_chunks(struct weaving *weaving, int rank, int kind)
{
    int count = weaving->algo->chunks[rank][kind], parts = (int)weaving->parts;
    struct chunk *chunks = calloc((size_t)count + 1, sizeof(*chunks));
    bool gathers = weaving->algo->collective == RONDO_ALL_GATHER;

    for (int i = 0; chunks && i < count; i++) {
        bool own = gathers && kind == 1 && i / parts == rank;

        chunks[i].atom = (uint32_t)(i % parts);
        chunks[i].ranks = kind == 0 || own ? 1ull << rank : 0;
    }
    return chunks;
}

/* ---- A step ---------------------------------------------------------------------------------- */

/* Atoms that one step moves: of one chunk, as chunks that follow each other need not in scratch. */
static bool weave_chunk(struct weaving *weaving, int index)
{
    const struct msccl_step *step = weaving->step;
    const struct msccl_block *block = weaving->block;
    struct plan *plan = weaving->file->plans[block->rank];
    struct plan_operand from[2], to[2];
    struct chunk value = {0}, *source = NULL, *place = NULL;
    unsigned does = step->does;
    int sources = 0, places = 0;
    bool finishes;
    uint64_t all = weaving->algo->ranks == 64 ? ~0ull : (1ull << weaving->algo->ranks) - 1;

    if (does & MSCCL_STORES) {
        place = chunk_at(weaving, step->to, step->to_at, index);
        if (!place)
            return refuse(weaving, "its destination lies outside of the buffer");
    }
    if (!(does & MSCCL_RECEIVES) || (does & MSCCL_ADDS)) {
        source = chunk_at(weaving, step->from, step->from_at, index);
        if (!source || !source->ranks)
            return refuse(weaving, "its source lies outside of the buffer, or nobody wrote it");
        value = *source;
        from[sources++] =
            operand_of(weaving, plan, source, step->from, step->from_at + index, false);
    }
    if ((does & MSCCL_ADDS) && !(does & MSCCL_RECEIVES)) { /* re: what is at the destination */
        if (!place->ranks || place->atom != value.atom)
            return refuse(weaving, "it adds what nobody wrote, or another element");
        from[sources++] = operand_of(weaving, plan, place, step->to, step->to_at + index, false);
        value.ranks |= place->ranks;
    }
    if (does & MSCCL_RECEIVES) {
        struct pipe *pipe = pipe_of(weaving, false);
        struct chunk came = pipe->chunks[pipe->received % SLOTS][index];

        if (sources && came.atom != value.atom)
            return refuse(weaving, "it adds different elements of the vector");
        came.ranks |= value.ranks;
        value = came;
        from[sources++] = plan_slot(block->receive, block->channel);
    }
    if (place) {
        *place = (struct chunk){value.ranks, value.atom, true};
        to[places++] = operand_of(weaving, plan, place, step->to, step->to_at + index, true);
    }
    if (does & MSCCL_SENDS) {
        struct pipe *pipe = pipe_of(weaving, true);

        pipe->chunks[pipe->sent % SLOTS][index] = value;
        to[places++] = plan_slot(block->send, block->channel);
    }
    /* A sum over one rank is complete as it leaves the input. */
    finishes = collective_reduces(plan->collective) && value.ranks == all &&
               (sources > 1 || from[0].buffer == PLAN_INPUT);
    plan_move(plan, 1, finishes ? PLAN_FINISH : 0, (struct plan_list){sources, from},
              (struct plan_list){places, to});
    return true;
}

static bool weave_step(struct weaving *weaving)
{
    const struct msccl_step *step = weaving->step;
    const struct msccl_block *block = weaving->block;
    struct plan *plan = weaving->file->plans[block->rank];

    if (!step->does)
        return true;
    if (step->does & MSCCL_RECEIVES) {
        struct pipe *pipe = pipe_of(weaving, false);

        if (pipe->count[pipe->received % SLOTS] != step->count)
            return refuse(weaving, "the message that comes has another length");
        plan_wait(plan, block->receive, block->channel, 0);
    }
    if (step->does & MSCCL_SENDS) {
        struct pipe *pipe = pipe_of(weaving, true);
        size_t slot = pipe->sent % SLOTS;

        free(pipe->chunks[slot]);
        pipe->chunks[slot] = calloc((size_t)step->count + 1, sizeof(struct chunk));
        if (!pipe->chunks[slot])
            return refuse(weaving, "out of memory");
        pipe->count[slot] = step->count;
        plan_acquire(plan, block->send, block->channel);
    }
    for (int i = 0; i < step->count; i++)
        if (!weave_chunk(weaving, i))
            return false;
    if (step->does & MSCCL_SENDS) {
        pipe_of(weaving, true)->sent++;
        plan_signal(plan, block->send, block->channel, 0);
    }
    if (step->does & MSCCL_RECEIVES) {
        pipe_of(weaving, false)->received++;
        plan_release(plan, block->receive, block->channel);
    }
    return true;
}

/* ---- All of them ----------------------------------------------------------------------------- */

static bool is_ready(const struct weaving *weaving)
{
    const struct msccl_algo *algo = weaving->algo;
    const struct msccl_step *step = weaving->step;

    for (size_t i = 0; i < algo->block_count && step->block >= 0 && step->behind >= 0; i++)
        if (algo->blocks[i].rank == weaving->block->rank && algo->blocks[i].id == step->block &&
            weaving->at[i] <= (size_t)step->behind)
            return false;
    if (step->does & MSCCL_RECEIVES) {
        const struct pipe *pipe = pipe_of(weaving, false);

        if (pipe->sent == pipe->received)
            return false;
    }
    if (step->does & MSCCL_SENDS) {
        const struct pipe *pipe = pipe_of(weaving, true);

        if (pipe->sent - pipe->received == SLOTS)
            return false;
    }
    return true;
}

/* Goes round all blocks until none can go on. */
static bool weave(struct weaving *weaving)
{
    const struct msccl_algo *algo = weaving->algo;
    const struct msccl_block *stuck = NULL;
    bool moved = true;

    while (moved) {
        moved = false;
        stuck = NULL;
        for (size_t i = 0; i < algo->block_count; i++) {
            weaving->block = &algo->blocks[i];
            for (; weaving->at[i] < weaving->block->count; weaving->at[i]++) {
                weaving->step = &algo->steps[weaving->block->first + weaving->at[i]];
                if (!is_ready(weaving))
                    break;
                if (!weave_step(weaving))
                    return false;
                moved = true;
            }
            if (!stuck && weaving->at[i] < weaving->block->count)
                stuck = weaving->block;
        }
    }
    if (!stuck)
        return true;
    weaving->block = stuck;
    weaving->step = &algo->steps[stuck->first + weaving->at[stuck - algo->blocks]];
    return refuse(weaving, "deadlock: it waits for a step, a message or a slot that never comes");
}

/* Atoms of a block, by the sizes of the first GPU's buffers; 0: they do not fit the collective. */
static uint32_t parts_of(const struct msccl_algo *algo)
{
    int in = algo->chunks[0][0], out = algo->chunks[0][1];
    int whole = algo->collective == RONDO_ALL_GATHER ? out : in;

    if (algo->collective == RONDO_ALL_REDUCE)
        return (uint32_t)in;
    return whole % algo->ranks ? 0 : (uint32_t)(whole / algo->ranks);
}

/* Copies what never moved, because in a call in place it is where it belongs. */
static void keep_own(struct weaving *weaving, struct plan *plan)
{
    int parts = (int)weaving->parts, own = plan->rank * parts;
    const struct chunk *chunks = weaving->chunks[plan->rank][1];

    if (plan->collective != RONDO_ALL_GATHER)
        return;
    for (int i = 0; i < parts; i++)
        if (!chunks[own + i].written)
            plan_move(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, i)),
                      PLAN_LIST(plan_output(plan, plan->rank, i)));
}

static bool open_plans(struct weaving *weaving)
{
    const struct msccl_algo *algo = weaving->algo;
    struct plan_file *file = weaving->file;
    uint32_t longest = 1;

    for (size_t i = 0; i < algo->step_count; i++)
        if ((uint32_t)algo->steps[i].count > longest)
            longest = (uint32_t)algo->steps[i].count;
    snprintf(file->name, sizeof(file->name), "%.*s", MSCCL_NAME - 1, algo->name);
    file->collective = algo->collective;
    file->size = algo->ranks;
    file->plans = calloc((size_t)algo->ranks, sizeof(*file->plans));
    for (int r = 0; file->plans && r < algo->ranks; r++) {
        if (plan_open(algo->collective, file->name, algo->ranks, r, 0, &file->plans[r]))
            return false;
        plan_shape(file->plans[r], weaving->parts, longest, (unsigned)algo->chunks[0][2]);
        for (int kind = 0; kind < 3; kind++)
            weaving->chunks[r][kind] = make_chunks(weaving, r, kind);
        if (!weaving->chunks[r][0] || !weaving->chunks[r][1] || !weaving->chunks[r][2])
            return false;
    }
    return file->plans;
}

static rondo_result convert(struct weaving *weaving)
{
    const struct msccl_algo *algo = weaving->algo;
    bool uses_output = false;

    for (int r = 0; r < algo->ranks; r++)
        if (memcmp(algo->chunks[r], algo->chunks[0], sizeof(algo->chunks[0])) != 0)
            weaving->parts = 0;
    for (size_t i = 0; i < algo->step_count; i++)
        uses_output |= (algo->steps[i].does & MSCCL_STORES) && algo->steps[i].to == 'o';
    weaving->in_place = algo->collective == RONDO_ALL_REDUCE && !uses_output;
    if ((uint64_t)weaving->parts * (uint64_t)algo->ranks *
            (uint64_t)(algo->ranks + algo->chunks[0][2]) >
        PLAN_FILE_ATOMS)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "The algorithm in %s has too many GPUs, chunks and chunks of scratch.",
                          weaving->path);
    if (!weaving->parts)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "The algorithm in %s is wrong: i_chunks, o_chunks and s_chunks are not "
                          "the same on every GPU, or not those of the collective.",
                          weaving->path);
    if (!open_plans(weaving))
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the algorithm in %s.",
                          weaving->path);
    if (!weave(weaving))
        return RONDO_ERROR_INVALID;
    for (int r = 0; r < algo->ranks; r++)
        keep_own(weaving, weaving->file->plans[r]);
    return RONDO_OK;
}

bool msccl_is_xml(const char *text, size_t length)
{
    while (length && strchr(" \n\t\r", *text) && *text) {
        text++;
        length--;
    }
    return length && *text == '<';
}

rondo_result msccl_parse(const char *path, const char *text, size_t length,
                         struct plan_file **ret_file)
{
    const size_t pipes = (size_t)MSCCL_RANKS * MSCCL_RANKS * MSCCL_CHANNELS;
    struct msccl_algo algo;
    struct weaving weaving = {.path = path, .algo = &algo};
    rondo_result result = msccl_algo_open(path, text, length, &algo);

    if (!result) {
        weaving.parts = parts_of(&algo);
        weaving.file = calloc(1, sizeof(*weaving.file));
        weaving.pipes = calloc(pipes, sizeof(*weaving.pipes));
        weaving.at = calloc(algo.block_count + 1, sizeof(*weaving.at));
        result =
            weaving.file && weaving.pipes && weaving.at
                ? convert(&weaving)
                : rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the algorithm in %s.", path);
    }
    for (size_t i = 0; weaving.pipes && i < pipes; i++)
        for (int slot = 0; slot < SLOTS; slot++)
            free(weaving.pipes[i].chunks[slot]);
    for (int r = 0; r < MSCCL_RANKS; r++)
        for (int kind = 0; kind < 3; kind++)
            free(weaving.chunks[r][kind]);
    free(weaving.pipes);
    free(weaving.at);
    msccl_algo_close(&algo);
    if (result)
        plan_file_close(weaving.file);
    else
        (*ret_file = weaving.file)->hash = plan_file_hash(text, length);
    return result;
}
