/* SPDX-License-Identifier: BSD-3-Clause */
/* test_mismatch.c - one rank of four calls something else:
 * everybody hears of it, and who it was. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4, ODD = 2, LONGEST = 40000 };

static struct world_report report;

/* All ranks do the same, but for rank ODD. */
struct mismatch {
    const char *what;
    rondo_call usual, other;
};

#define CALL(c, t, o, r, n)                                             \
    {                                                                   \
        sizeof(rondo_call), c, t, o, r, NULL, NULL, n, NULL, NULL, NULL \
    }

static const struct mismatch mismatches[] = {
    {"count", CALL(RONDO_ALL_REDUCE, RONDO_INT32, 0, 0, 100),
     CALL(RONDO_ALL_REDUCE, RONDO_INT32, 0, 0, 101)},
    {"count of a long one", CALL(RONDO_ALL_REDUCE, RONDO_FLOAT32, 0, 0, LONGEST),
     CALL(RONDO_ALL_REDUCE, RONDO_FLOAT32, 0, 0, 3)},
    {"type of the same size", CALL(RONDO_ALL_REDUCE, RONDO_INT32, 0, 0, 10),
     CALL(RONDO_ALL_REDUCE, RONDO_FLOAT32, 0, 0, 10)},
    {"operation", CALL(RONDO_ALL_REDUCE, RONDO_INT32, RONDO_SUM, 0, 10),
     CALL(RONDO_ALL_REDUCE, RONDO_INT32, RONDO_MAX, 0, 10)},
    {"root", CALL(RONDO_BROADCAST, RONDO_INT32, 0, 0, 10),
     CALL(RONDO_BROADCAST, RONDO_INT32, 0, 1, 10)},
    {"root of a reduce", CALL(RONDO_REDUCE, RONDO_INT32, 0, 3, 10),
     CALL(RONDO_REDUCE, RONDO_INT32, 0, 2, 10)},
    {"collective", CALL(RONDO_ALL_REDUCE, RONDO_INT32, 0, 0, 10),
     CALL(RONDO_ALL_GATHER, RONDO_INT32, 0, 0, 10)},
    {"barrier", CALL(RONDO_ALL_REDUCE, RONDO_INT32, 0, 0, 10), CALL(RONDO_BARRIER, 0, 0, 0, 0)},
    {"all_to_all", CALL(RONDO_ALL_TO_ALL, RONDO_INT64, 0, 0, 10),
     CALL(RONDO_ALL_TO_ALL, RONDO_INT64, 0, 0, 20)},
};

struct mismatch_part {
    const struct mismatch *mismatch;
    int good_before; /* calls that agree, first */
};

static rondo_result disagree(rondo_comm *comm, void *argument, char *sentence)
{
    const struct mismatch_part *part = argument;
    rondo_call call = rondo_comm_rank(comm) == ODD ? part->mismatch->other : part->mismatch->usual;
    char *memory = calloc(2 * RANKS * LONGEST, sizeof(double));
    rondo_result result = memory ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (int i = 0; i < part->good_before && !result; i++)
        result = bodies_all_reduce(comm, 1000, sentence);
    if (!result) {
        call.comm = comm;
        call.input = memory;
        call.output = memory + RANKS * LONGEST * sizeof(double);
        result = rondo_collective_call(&call);
    }
    if (result)
        world_say(sentence, result, "%s", rondo_last_error(comm));
    if (result == RONDO_ERROR_MISMATCH && rondo_comm_query(comm) != RONDO_ERROR_MISMATCH)
        result = RONDO_ERROR_INTERNAL;
    free(memory);
    return result;
}

static void expect_mismatch(const struct mismatch *mismatch, bool processes)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct mismatch_part part = {mismatch, processes ? 0 : 3};
    struct world world = {.size = RANKS, .processes = processes, .config = &config};

    config.timeout = 100;
    world_run(&world, disagree, &part, &report);
    for (int r = 0; r < RANKS; r++) {
        cr_expect(report.results[r] == RONDO_ERROR_MISMATCH, "%s: rank %d: %s: \"%s\"",
                  mismatch->what, r, rondo_result_string(report.results[r]), report.sentences[r]);
        cr_expect(strcasestr(report.sentences[r], "rank "), "%s: rank %d names nobody: \"%s\"",
                  mismatch->what, r, report.sentences[r]);
    }
    cr_expect(strcasestr(report.sentences[1], "rank 2") ||
                  strcasestr(report.sentences[3], "rank 2"),
              "%s: rank 2 was not named: \"%s\"", mismatch->what, report.sentences[3]);
}

Test(mismatch, processes_that_call_something_else_are_named_on_every_rank)
{
    for (size_t i = 0; i < sizeof(mismatches) / sizeof(mismatches[0]); i++)
        expect_mismatch(&mismatches[i], true);
}

Test(mismatch, threads_that_call_something_else_are_named_on_every_rank)
{
    for (size_t i = 0; i < sizeof(mismatches) / sizeof(mismatches[0]); i++)
        expect_mismatch(&mismatches[i], false);
}

struct counts {
    size_t sent, received;
};

static rondo_result send_and_receive_differ(rondo_comm *comm, void *argument, char *sentence)
{
    const struct counts *counts = argument;
    int32_t *values = calloc(counts->sent + counts->received, sizeof(*values));
    rondo_result result = !values ? RONDO_ERROR_MEMORY
                          : rondo_comm_rank(comm) == 0
                              ? rondo_send(values, counts->sent, RONDO_INT32, 1, comm, NULL)
                              : rondo_recv(values, counts->received, RONDO_INT32, 0, comm, NULL);

    world_say(sentence, result, "%s", rondo_last_error(comm));
    free(values);
    return result;
}

static void expect_count_is_named(size_t sent, size_t received)
{
    struct counts counts = {sent, received};
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = 2, .processes = true, .config = &config};
    char count[40];

    config.timeout = 100;
    world_run(&world, send_and_receive_differ, &counts, &report);
    snprintf(count, sizeof(count), "there has %zu int32", sent);
    cr_expect(report.results[1] == RONDO_ERROR_MISMATCH, "%s", report.summary);
    cr_expect(strcasestr(report.sentences[1], "rank 0") && strstr(report.sentences[1], count), "%s",
              report.summary);
}

/* Messages from 128 KiB up go in another way. */
Test(mismatch, a_receive_of_another_count_than_the_send_is_refused)
{
    expect_count_is_named(10, 9);
    expect_count_is_named(40000, 30000);
    expect_count_is_named(30000, 40000);
    expect_count_is_named(40000, 50000);
}

/* ---- Roots that differ, so that some ranks wait for nobody ----------------------------------- */

enum { IN_VAIN = 6 }; /* calls until the barrier */

struct own_roots {
    rondo_collective collective;
    size_t count;
    int next; /* 1: each rank takes the next one for the root, 0: itself */
};

/* Says how many calls were RONDO_OK, which is one at most. */
static rondo_result call_with_own_root(rondo_comm *comm, void *argument, char *sentence)
{
    const struct own_roots *own = argument;
    int size = rondo_comm_size(comm), root = (rondo_comm_rank(comm) + own->next) % size, calls = 0;
    char *memory = calloc(2 * (size_t)size, own->count * sizeof(float));
    rondo_call call = {sizeof(call), own->collective, RONDO_FLOAT32, 0,    root, NULL,
                       NULL,         own->count,      comm,          NULL, NULL};
    rondo_result result = memory ? RONDO_OK : RONDO_ERROR_MEMORY;

    call.input = memory;
    call.output = memory + (size_t)size * own->count * sizeof(float);
    for (; calls < IN_VAIN && !result; calls++)
        result = rondo_collective_call(&call);
    if (!result)
        result = rondo_barrier(comm, NULL);
    free(memory);
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

/* Ranks of a host look at each other's past calls and name the first. Over a network, a rank that
 * hears of the failure before it hears of the first call names the one that the sender is in. */
static void expect_roots_are_named(const struct own_roots *own, int size)
{
    const char *call = getenv("RONDO_TRANSPORT") ? "Call " : "Call 1 ";
    rondo_config config = RONDO_CONFIG_INIT;
    struct world world = {.size = size, .processes = true, .config = &config};

    config.timeout = 100;
    world_run(&world, call_with_own_root, (void *)(uintptr_t)own, &report);
    for (int r = 0; r < size; r++) {
        cr_expect(report.results[r] == RONDO_ERROR_MISMATCH, "%s, %d ranks, rank %d: %s %s",
                  rondo_collective_name(own->collective), size, r,
                  rondo_result_string(report.results[r]), report.sentences[r]);
        cr_expect(strstr(report.sentences[r], ", root ") && strstr(report.sentences[r], call),
                  "%s, %d ranks, rank %d names no roots: %s",
                  rondo_collective_name(own->collective), size, r, report.sentences[r]);
    }
}

Test(mismatch, roots_that_differ_are_named_where_nobody_waits_for_anybody)
{
    for (int size = 2; size <= 5; size++)
        for (size_t count = 8; count <= LONGEST; count *= 5000)
            for (int next = 0; next < 2; next++) {
                expect_roots_are_named(&(struct own_roots){RONDO_BROADCAST, count, next}, size);
                expect_roots_are_named(&(struct own_roots){RONDO_REDUCE, count, next}, size);
                expect_roots_are_named(&(struct own_roots){RONDO_SCATTER, count, next}, size);
                expect_roots_are_named(&(struct own_roots){RONDO_GATHER, count, next}, size);
            }
}

/* The settings of a communicator have to agree too. */
static rondo_result nothing(rondo_comm *comm, void *argument, char *sentence)
{
    return bodies_all_reduce(comm, 1, sentence);
}

static rondo_result split_with_other_slots(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *part = NULL;
    rondo_result result;

    config.slot_bytes = rondo_comm_rank(comm) == 0 ? 4096 : 8192;
    result = rondo_comm_split(comm, 0, 0, &config, &part);
    if (!result) {
        rondo_comm_close(part);
        return world_say(sentence, RONDO_OK, "accepted");
    }
    return world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(mismatch, settings_that_differ_between_ranks_are_refused)
{
    cr_assert(world_run_processes(2, nothing, NULL, &report) == 0, "%s", report.summary);
    world_run_processes(2, split_with_other_slots, NULL, &report);
    for (int r = 0; r < 2; r++) {
        cr_expect(report.results[r] != RONDO_OK, "rank %d took other slots than its peer", r);
        cr_expect(strlen(report.sentences[r]) > 10, "rank %d: \"%s\"", r, report.sentences[r]);
    }
}
