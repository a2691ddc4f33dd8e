/* SPDX-License-Identifier: BSD-3-Clause */
/* legal.c - steps that are right, with checks of every result. */
#include "tests/api/bodies.h"
#include "tests/api/sequences/sequence.h"
#include "tests/api/values/matrix.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, SOME = 1000 };

static rondo_result say(struct player *player, rondo_result result, rondo_comm *comm)
{
    return result ? world_say(player->sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

/* ---- One call -------------------------------------------------------------------------------- */

static rondo_result call(struct player *player)
{
    rondo_comm *comm = sequence_comm(player);
    rondo_type type = (rondo_type)sequence_draw(player, 1, RONDO_TYPES);
    struct test_case test = {
        .form = {(rondo_collective)sequence_draw(player, 2, RONDO_BARRIER + 1), "auto"},
        .size = rondo_comm_size(comm),
        .type = type,
        .op = (int)sequence_draw(player, 3, world_is_float(type) ? RONDO_BAND : RONDO_OPS),
        .count = (enum case_count)sequence_draw(player, 4, CASE_COUNTS),
        .in_place = sequence_draw(player, 5, 2),
        .unaligned = sequence_draw(player, 6, 4) == 0,
        .memory = (enum case_memory)sequence_draw(player, 7, CASE_MEMORIES),
        .root = (enum case_root)sequence_draw(player, 8, CASE_ROOTS),
        .way = (enum case_way)sequence_draw(player, 9, CASE_WAYS),
        .small_slots = true, /* the longest count is a shorter one then */
    };

    return matrix_call(&test, comm, player->sentence);
}

static rondo_result call_again(struct player *player)
{
    rondo_comm *comm = sequence_comm(player);
    size_t count = 1 + sequence_draw(player, 1, 3 * SOME);
    rondo_result result = RONDO_OK;

    for (int i = 0; i < 10 && !result; i++)
        result = bodies_all_reduce(comm, count, player->sentence);
    return result;
}

/* ---- Bodies of other tests ------------------------------------------------------------------- */

static rondo_result run_body(struct player *player)
{
    static const world_body bodies[] = {
        groups_fuse_many_calls,
        groups_exchange_with_all,
        groups_nest,
        groups_send_recv_chain,
        groups_repeat,
        streams_keep_order,
        streams_wait_for_events,
        streams_call_functions_in_order,
        splits_odd_and_even,
        splits_reverse_and_leave_out,
        splits_nest,
        splits_dup_has_its_own_order,
        operations_premul_sum,
        operations_affine_maps_in_rank_order,
        operations_commutative,
        operations_differ_in_number,

        estimates_run_nothing,
    };
    unsigned which = sequence_draw(player, 1, sizeof(bodies) / sizeof(bodies[0]));

    return bodies[which](player->comms[0], NULL, player->sentence);
}

/* ---- On a stream ----------------------------------------------------------------------------- */

static rondo_result queue(struct player *player)
{
    enum { CALLS = 4 };
    rondo_comm *comm = sequence_comm(player);
    const struct world_data data = {.type = RONDO_INT32,
                                    .op = RONDO_SUM,
                                    .size = rondo_comm_size(comm),
                                    .seed = player->sequence->seed};
    int32_t *input = malloc(SOME * sizeof(*input));
    int32_t *outputs = malloc(CALLS * SOME * sizeof(*outputs));
    rondo_event *event = NULL;
    rondo_result result = input && outputs ? rondo_event_open(&event) : RONDO_ERROR_MEMORY;

    if (!result)
        world_fill(&data, rondo_comm_rank(comm), SOME, input);
    for (int i = 0; i < CALLS && !result; i++)
        result = rondo_all_reduce(input, outputs + i * SOME, SOME, RONDO_INT32, RONDO_SUM, comm,
                                  player->stream);
    if (!result && sequence_draw(player, 1, 2)) {
        result = rondo_event_record(event, player->stream);
        if (!result)
            result = rondo_event_wait(event);
    }
    if (!result)
        result = rondo_stream_synchronize(player->stream);
    result = say(player, result, comm);
    for (int i = 0; i < CALLS && !result; i++)
        if (!world_check_reduced(&data, 0, SOME, outputs + i * SOME, player->sentence))
            result = RONDO_ERROR_INTERNAL;
    rondo_event_close(event);
    free(input);
    free(outputs);
    return result;
}

/* ---- Two threads ----------------------------------------------------------------------------- */

struct beside {
    rondo_comm *comm;
    rondo_result result;
    char sentence[WORLD_SENTENCE];
};

static void *call_beside(void *argument)
{
    struct beside *beside = argument;

    for (int i = 0; i < 5 && !beside->result; i++)
        beside->result = bodies_all_reduce(beside->comm, SOME, beside->sentence);
    return NULL;
}

/* On two communicators at once; of one alone, the thread makes all calls. */
static rondo_result call_by_two_threads(struct player *player)
{
    unsigned count = (unsigned)player->comm_count, one = sequence_draw(player, 1, count);
    unsigned other = (one + 1) % count;
    struct beside beside = {.comm = player->comms[one]};
    rondo_result result = RONDO_OK;
    pthread_t thread;

    if (pthread_create(&thread, NULL, call_beside, &beside))
        return RONDO_ERROR_SYSTEM;
    for (int i = 0; i < 5 && other != one && !result; i++)
        result = bodies_all_reduce(player->comms[other], 2 * SOME, player->sentence);
    pthread_join(thread, NULL);
    return beside.result ? world_say(player->sentence, beside.result, "%s", beside.sentence)
                         : result;
}

/* ---- Communicators --------------------------------------------------------------------------- */

static rondo_result copy(struct player *player)
{
    rondo_comm *comm = sequence_comm(player), *made = NULL;
    rondo_result result = RONDO_OK;

    if (player->comm_count < SEQUENCE_COMMS)
        result = rondo_comm_dup(comm, &made);
    if (made)
        player->comms[player->comm_count++] = made;
    return say(player, result, comm);
}

static rondo_result split(struct player *player)
{
    rondo_comm *comm = sequence_comm(player), *made = NULL;
    int rank = rondo_comm_rank(comm);
    int color = sequence_draw(player, 1, 2) ? rank % 2 : 0;
    int key = sequence_draw(player, 2, 2) ? -rank : rank;
    rondo_result result = RONDO_OK;

    if (player->comm_count < SEQUENCE_COMMS)
        result = rondo_comm_split(comm, color, key, NULL, &made);
    if (made)
        player->comms[player->comm_count++] = made;
    return say(player, result, comm);
}

static rondo_result close_one(struct player *player)
{
    unsigned place;

    if (player->comm_count == 1)
        return RONDO_OK;
    place = 1 + sequence_draw(player, 1, (unsigned)player->comm_count - 1);
    rondo_comm_close(player->comms[place]);
    player->comms[place] = player->comms[--player->comm_count];
    return RONDO_OK;
}

/* A copy is aborted by one rank, while the others call or are about to. */
static rondo_result abort_copy(struct player *player)
{
    rondo_comm *comm = sequence_comm(player), *made = NULL;
    int culprit = (int)sequence_draw(player, 1, (unsigned)rondo_comm_size(comm));
    rondo_result result = rondo_comm_dup(comm, &made), ended = RONDO_OK;

    if (!result)
        result = rondo_barrier(comm, NULL);
    if (result)
        return say(player, result, comm);
    if (rondo_comm_rank(comm) == culprit)
        rondo_comm_abort(made);
    while (!ended)
        ended = bodies_all_reduce(made, SOME, (char[WORLD_SENTENCE]){""});
    if (ended != RONDO_ERROR_ABORTED)
        result = world_say(player->sentence, RONDO_ERROR_INTERNAL, "%d in place of ABORTED: %s",
                           (int)ended, rondo_last_error(made));
    rondo_comm_close(made);
    return result;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Some ranks have registered memory; it is the same as any. */
static rondo_result register_some(struct player *player)
{
    rondo_comm *comm = sequence_comm(player);
    bool registers = (sequence_draw(player, 1, 16) >> rondo_comm_rank(comm) & 1) != 0;
    const struct world_data data = {.type = RONDO_INT32,
                                    .op = RONDO_SUM,
                                    .size = rondo_comm_size(comm),
                                    .seed = player->sequence->seed};
    int32_t *memory = aligned_alloc(PAGE, 2 * PAGE);
    const size_t count = PAGE / sizeof(*memory);
    int32_t *output = memory + count;
    rondo_registration *registration = NULL;
    rondo_result result = memory ? RONDO_OK : RONDO_ERROR_MEMORY;

    if (!result && registers)
        result = rondo_comm_register(comm, memory, 2 * PAGE, &registration);
    if (!result) {
        world_fill(&data, rondo_comm_rank(comm), count, memory);
        result = rondo_all_reduce(memory, output, count, RONDO_INT32, RONDO_SUM, comm, NULL);
    }
    if (!result && registers)
        result = rondo_comm_deregister(comm, registration);
    result = say(player, result, comm);
    if (!result && !world_check_reduced(&data, 0, count, output, player->sentence))
        result = RONDO_ERROR_INTERNAL;
    free(memory);
    return result;
}

static rondo_result take_and_give_memory(struct player *player)
{
    void *memory[6] = {NULL};
    rondo_result result = RONDO_OK;

    for (unsigned i = 0; i < 6 && !result; i++) {
        size_t bytes = 1 + sequence_draw(player, 1 + i, 1 << (4 * i));

        result = rondo_mem_alloc(bytes, &memory[i]);
        if (!result)
            memset(memory[i], 0x5a, bytes);
    }
    for (unsigned i = 0; i < 6; i++) {
        rondo_result freed = rondo_mem_free(memory[(5 * i + 2) % 6]);

        result = result ? result : freed;
    }
    return say(player, result, NULL);
}

const struct step legal_steps[] = {
    {"a call", call},
    {"another call", call},
    {"one more call", call},
    {"the same call again and again", call_again},
    {"a body of another test", run_body},
    {"calls on a stream", queue},
    {"calls by two threads", call_by_two_threads},
    {"a copy", copy},
    {"a split", split},
    {"a close", close_one},
    {"an abort of a copy", abort_copy},
    {"registered memory", register_some},
    {"memory taken and given", take_and_give_memory},
    {NULL, NULL},
};
