/* SPDX-License-Identifier: BSD-3-Clause */
/* test_invalid.c - wrong arguments: the right result, a
 * sentence with the words that matter, and life goes on. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

static struct world_report report;
static char in[4096], out[4096];

struct wrong_call {
    const char *what;
    rondo_call call;
    const char *words[3]; /* that the sentence must contain, NULL: no more */
    rondo_result wanted;  /* 0: RONDO_ERROR_INVALID */
};

#define CALL(c, t, o, r, i, u, n)                                 \
    {                                                             \
        sizeof(rondo_call), c, t, o, r, i, u, n, NULL, NULL, NULL \
    }

static const struct wrong_call wrong[] = {
    {"no input", CALL(RONDO_ALL_REDUCE, RONDO_INT32, RONDO_SUM, 0, NULL, out, 4), {"input"}, 0},
    {"no output", CALL(RONDO_ALL_REDUCE, RONDO_INT32, RONDO_SUM, 0, in, NULL, 4), {"output"}, 0},
    {"no output to gather", CALL(RONDO_ALL_GATHER, RONDO_INT8, 0, 0, in, NULL, 4), {"output"}, 0},
    {"count x size overflows",
     CALL(RONDO_ALL_REDUCE, RONDO_FLOAT64, RONDO_SUM, 0, in, out, SIZE_MAX / 4),
     {"4611686018427387903 float64"},
     0},
    {"count x size x ranks overflows",
     CALL(RONDO_ALL_GATHER, RONDO_INT8, 0, 0, in, out, SIZE_MAX / 2 + 1),
     {"elements"},
     0},
    {"unknown type", CALL(RONDO_ALL_REDUCE, RONDO_TYPES, RONDO_SUM, 0, in, out, 4), {"type"}, 0},
    {"negative type", CALL(RONDO_BROADCAST, (rondo_type)-1, RONDO_SUM, 0, in, out, 4), {"type"}, 0},
    {"unknown operation", CALL(RONDO_ALL_REDUCE, RONDO_INT32, 999, 0, in, out, 4), {"op"}, 0},
    {"negative operation", CALL(RONDO_REDUCE, RONDO_INT32, -1, 0, in, out, 4), {"op"}, 0},
    {"bits of floats",
     CALL(RONDO_ALL_REDUCE, RONDO_FLOAT32, RONDO_BXOR, 0, in, out, 4),
     {"bxor", "float32"},
     0},
    {"bits of narrow floats",
     CALL(RONDO_REDUCE_SCATTER, RONDO_FLOAT8_E4M3, RONDO_BAND, 0, in, out, 4),
     {"band"},
     0},
    {"partial overlap",
     CALL(RONDO_ALL_REDUCE, RONDO_INT32, RONDO_SUM, 0, in, in + 4, 4),
     {"overlap"},
     0},
    {"overlap of another block",
     CALL(RONDO_ALL_GATHER, RONDO_INT32, 0, 0, in + 2, in, 4),
     {"overlap"},
     0},
    {"root below 0", CALL(RONDO_BROADCAST, RONDO_INT32, 0, -1, in, out, 4), {"root", "-1"}, 0},
    {"root too large", CALL(RONDO_REDUCE, RONDO_INT32, 0, 3, in, out, 4), {"root", "3"}, 0},
    {"peer too large", CALL(RONDO_SEND, RONDO_INT32, 0, 3, in, NULL, 4), {"3"}, 0},
    {"peer below 0", CALL(RONDO_RECV, RONDO_INT32, 0, -2, NULL, out, 4), {"-2"}, 0},
    {"unknown collective",
     CALL(RONDO_COLLECTIVES, RONDO_INT32, 0, 0, in, out, 4),
     {"collective"},
     0},
};

static rondo_result try_wrong_call(const struct wrong_call *w, rondo_comm *comm, char *sentence)
{
    rondo_result wanted = w->wanted ? w->wanted : RONDO_ERROR_INVALID, result;
    rondo_call call = w->call;

    call.comm = comm;
    result = rondo_collective_call(&call);
    if (result != wanted)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%s: %s", w->what,
                         rondo_result_string(result));
    for (int i = 0; i < 3 && w->words[i]; i++)
        if (!strcasestr(rondo_last_error(comm), w->words[i]))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%s: \"%s\" does not say \"%s\"",
                             w->what, rondo_last_error(comm), w->words[i]);
    if (rondo_comm_query(comm) != RONDO_OK)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%s broke the communicator", w->what);
    return bodies_all_reduce(comm, 10, sentence);
}

static rondo_result wrong_calls(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]) && !result; i++)
        result = try_wrong_call(&wrong[i], comm, sentence);
    return result;
}

Test(invalid, wrong_calls_are_refused_in_a_sentence_and_the_next_one_works)
{
    cr_assert(world_run_processes(3, wrong_calls, NULL, &report) == 0, "%s", report.summary);
    cr_assert(world_run_threads(3, wrong_calls, NULL, &report) == 0, "%s", report.summary);
}

static rondo_result unknown_algorithm(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_call call = CALL(RONDO_ALL_REDUCE, RONDO_INT32, RONDO_SUM, 0, in, out, 4);
    rondo_result result;

    call.comm = comm;
    call.algorithm = "pigeon";
    result = rondo_collective_call(&call);
    if (result != RONDO_ERROR_INVALID && result != RONDO_ERROR_UNSUPPORTED)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%s", rondo_result_string(result));
    if (!strstr(rondo_last_error(comm), "pigeon"))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "\"%s\"", rondo_last_error(comm));
    return bodies_all_reduce(comm, 10, sentence);
}

Test(invalid, an_algorithm_that_does_not_exist_is_named)
{
    cr_assert(world_run_processes(2, unknown_algorithm, NULL, &report) == 0, "%s", report.summary);
}

static rondo_result wrong_call_in_group(rondo_comm *comm, void *argument, char *sentence)
{
    int32_t a[4] = {1, 2, 3, 4};
    rondo_result result = rondo_group_start(), inside;

    if (result)
        return result;
    inside = rondo_all_reduce(a, NULL, 4, RONDO_INT32, RONDO_SUM, comm, NULL);
    result = rondo_group_end();
    if (inside != RONDO_ERROR_INVALID && result != RONDO_ERROR_INVALID)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "call: %s, end: %s",
                         rondo_result_string(inside), rondo_result_string(result));
    return bodies_all_reduce(comm, 10, sentence);
}

Test(invalid, a_wrong_call_in_a_group_does_not_break_the_communicator)
{
    cr_assert(world_run_processes(2, wrong_call_in_group, NULL, &report) == 0, "%s",
              report.summary);
}

/* The group holds a call on both: they stay open, and the group's end says what was wrong. */
static void expect_held(bool closes_stream, const char *word)
{
    int32_t value = 1, sum = 0;
    rondo_comm *comm = NULL;
    rondo_stream *stream = NULL;

    cr_assert(rondo_comm_open_all(1, NULL, &comm) == RONDO_OK);
    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    cr_assert(rondo_group_start() == RONDO_OK);
    cr_assert(rondo_all_reduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, stream) == RONDO_OK);
    if (closes_stream)
        rondo_stream_close(stream);
    else
        rondo_comm_close(comm);
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), word), "\"%s\"", rondo_last_error(NULL));
    cr_expect(rondo_all_reduce(&value, &sum, 1, RONDO_INT32, RONDO_SUM, comm, stream) == RONDO_OK);
    cr_expect(rondo_stream_synchronize(stream) == RONDO_OK && sum == 1);
    rondo_stream_close(stream);
    rondo_comm_close(comm);
}

Test(invalid, a_stream_or_communicator_that_an_open_group_needs_is_not_closed)
{
    expect_held(true, "rondo_stream_close: the open group holds a call on the stream");
    expect_held(false, "rondo_comm_close: the open group holds a call on the communicator");
}

Test(invalid, missing_handles_and_places_for_results_are_refused)
{
    rondo_comm *comm = NULL;
    rondo_unique_id id = {{0}};

    cr_expect(rondo_all_reduce(in, out, 1, RONDO_INT8, RONDO_SUM, NULL, NULL) ==
              RONDO_ERROR_INVALID);
    cr_expect(strlen(rondo_last_error(NULL)) > 10, "\"%s\"", rondo_last_error(NULL));
    cr_expect(rondo_barrier(NULL, NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_collective_call(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open(NULL, NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open_all(2, NULL, NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open_all(0, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open_all(-3, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(rondo_unique_id_create(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open_id(NULL, 1, 0, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open_id(&id, 2, 0, NULL, &comm) != RONDO_OK, "an empty id was taken");
    cr_expect(rondo_mem_alloc(1, NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_mem_free(in) == RONDO_ERROR_INVALID, "freed what was never allocated");
    cr_expect(rondo_stream_open(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_event_open(NULL) == RONDO_ERROR_INVALID);
    cr_expect(rondo_group_end() == RONDO_ERROR_INVALID, "ended a group that was never begun");
    cr_expect(comm == NULL, "an output was written although the call failed");
    rondo_comm_close(NULL);
    rondo_stream_close(NULL);
    rondo_event_close(NULL);
    cr_expect(rondo_mem_free(NULL) == RONDO_OK);
}

Test(invalid, ranks_outside_the_world_are_refused)
{
    rondo_comm *comm = NULL;
    rondo_unique_id id;

    cr_assert(rondo_unique_id_create(&id) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_expect(rondo_comm_open_id(&id, 2, 2, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_last_error(NULL), "2"), "\"%s\"", rondo_last_error(NULL));
    cr_expect(rondo_comm_open_id(&id, 2, -1, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open_id(&id, 0, 0, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(comm == NULL);
}

Test(invalid, lists_of_ranks_that_go_on_are_checked)
{
    const int lists[][2] = {{0, 2}, {-1, 0}, {0, 0}, {1, 1}, {1, 0}};
    const int counts[] = {2, 2, 2, 1, 0};
    const char *words[] = {"rank 2", "rank -1", "twice", "not among", "not among"};
    rondo_comm *comms[2], *comm = NULL;

    cr_assert(rondo_comm_open_all(2, NULL, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int i = 0; i < 5; i++) {
        cr_expect(rondo_comm_open_among(comms[0], lists[i], counts[i], NULL, &comm) ==
                  RONDO_ERROR_INVALID);
        cr_expect(strstr(rondo_last_error(comms[0]), words[i]), "\"%s\" in \"%s\"", words[i],
                  rondo_last_error(comms[0]));
    }
    cr_expect(rondo_comm_open_among(comms[0], NULL, 1, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(rondo_comm_open_among(NULL, lists[0], 1, NULL, &comm) == RONDO_ERROR_INVALID);
    cr_expect(comm == NULL);
    cr_expect(rondo_comm_open_among(comms[0], lists[0], 1, NULL, &comm) == RONDO_OK, "%s",
              rondo_last_error(NULL));
    cr_expect(rondo_comm_size(comm) == 1);
    rondo_comm_close(comm);
    for (int rank = 0; rank < 2; rank++)
        rondo_comm_close(comms[rank]);
}

Test(invalid, settings_that_make_no_sense_are_refused)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *comm = NULL;

    config.struct_size = 3;
    cr_expect(rondo_comm_open_all(1, &config, &comm) == RONDO_ERROR_INVALID);
    config = (rondo_config)RONDO_CONFIG_INIT;
    config.algorithm = "pigeon";
    cr_expect(rondo_comm_open_all(1, &config, &comm) != RONDO_OK);
    cr_expect(strstr(rondo_last_error(NULL), "pigeon"), "\"%s\"", rondo_last_error(NULL));
    config = (rondo_config)RONDO_CONFIG_INIT;
    config.slots = -5;
    cr_expect(rondo_comm_open_all(1, &config, &comm) == RONDO_ERROR_INVALID);
}

Test(invalid, every_name_exists_and_nonsense_has_a_name_too)
{
    for (int r = 0; r < RONDO_RESULTS; r++)
        cr_expect(strlen(rondo_result_string((rondo_result)r)) > 1);
    for (int t = 0; t < RONDO_TYPES; t++) {
        cr_expect(strlen(rondo_type_name((rondo_type)t)) > 3);
        cr_expect(rondo_type_size((rondo_type)t) > 0);
    }
    for (int o = 0; o < RONDO_OPS; o++)
        cr_expect(strlen(rondo_op_name(o)) > 1);
    for (int c = 0; c < RONDO_COLLECTIVES; c++)
        cr_expect(strlen(rondo_collective_name((rondo_collective)c)) > 3);
    cr_expect(rondo_result_string((rondo_result)999) != NULL);
    cr_expect(rondo_type_name((rondo_type)999) != NULL);
    cr_expect(rondo_op_name(-7) != NULL);
    cr_expect(rondo_collective_name((rondo_collective)999) != NULL);
    cr_expect(rondo_type_size((rondo_type)999) == 0);
    cr_expect(strcmp(rondo_version(), "0.1.0") == 0, "%s", rondo_version());
    cr_expect(rondo_version_number() == 100 && RONDO_VERSION == 100);
}
