/* SPDX-License-Identifier: BSD-3-Clause */
/* test_closings.c - who closes too early ends the wait of the others, with a sentence; who closes
 * when it is through does not, however slow the others are. */
#include "closings.h"

#include "rondo/bindings.h"
#include "rondo/collectives.h"
#include "rondo/cuda.h"
#include "rondo/p2p.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct world_report report;

static bool is_networked(void)
{
    const char *transport = getenv("RONDO_TRANSPORT");

    return transport && !strcmp(transport, "tcp");
}

static void expect_early(int size, bool processes, struct closings c)
{
    struct world world = {.size = size, .processes = processes};

    c.early = true;
    c.rounds = 1;
    world_run(&world, closings_live, &c, &report);
    for (int rank = 0; rank < size; rank++) {
        if (rank == c.culprit)
            continue;
        cr_expect(report.results[rank] == RONDO_ERROR_PEER, "%s of %zu, rank %d of %d: %s: %s",
                  rondo_collective_name(c.collective), c.count, rank, size,
                  rondo_result_string(report.results[rank]), report.sentences[rank]);
        cr_expect(strstr(report.sentences[rank], "closed") ||
                      (is_networked() && strstr(report.sentences[rank], "ended")),
                  "rank %d: %s", rank, report.sentences[rank]);
    }
}

static void expect_early_of_all(bool processes)
{
    for (int size = 2; size <= 5; size++)
        for (int culprit = 0; culprit < size; culprit += size - 1) {
            expect_early(size, processes,
                         (struct closings){RONDO_ALL_REDUCE, 17, 3, .culprit = culprit});
            expect_early(size, processes,
                         (struct closings){RONDO_BARRIER, 0, 1, .culprit = culprit});
        }
    expect_early(4, processes, (struct closings){RONDO_ALL_REDUCE, 300000, 2, .culprit = 1});
    expect_early(3, processes, (struct closings){RONDO_ALL_TO_ALL, 50000, 2, .culprit = 2});
}

Test(closings, a_process_that_closes_before_a_call_ends_the_wait_of_the_others)
{
    expect_early_of_all(true);
}

Test(closings, a_thread_that_closes_before_a_call_ends_the_wait_of_the_others)
{
    expect_early_of_all(false);
}

static void expect_two_messages(bool processes)
{
    struct closings c = {.culprit = 1};
    struct world world = {.size = 3, .processes = processes};

    world_run(&world, closings_receive, &c, &report);
    cr_expect(report.results[0] == RONDO_ERROR_PEER, "%s", rondo_result_string(report.results[0]));
    cr_expect(strstr(report.sentences[0], "rank 1") && strstr(report.sentences[0], "closed"), "%s",
              report.sentences[0]);
}

Test(closings, a_message_that_will_not_come_is_not_waited_for)
{
    expect_two_messages(true);
    expect_two_messages(false);
}

static void expect_in_time(int size, bool processes, struct closings c)
{
    struct world world = {.size = size, .processes = processes};
    int failed = world_run(&world, closings_live, &c, &report);

    cr_assert(failed == 0, "%s of %zu, %d ranks: %s", rondo_collective_name(c.collective), c.count,
              size, report.summary);
}

static void expect_all_in_time(bool processes)
{
    int rounds = is_networked() ? 8 : 40;

    for (int size = 2; size <= 5; size++) {
        expect_in_time(size, processes,
                       (struct closings){RONDO_ALL_REDUCE, 100, 2, .rounds = rounds});
        expect_in_time(size, processes,
                       (struct closings){RONDO_BROADCAST, 70000, 2, .rounds = rounds});
        expect_in_time(size, processes, (struct closings){RONDO_REDUCE, 3000, 3, .rounds = rounds});
    }
    expect_in_time(4, processes, (struct closings){RONDO_ALL_TO_ALL, 20000, 1, .rounds = rounds});
    expect_in_time(3, processes, (struct closings){RONDO_BARRIER, 0, 1, .rounds = rounds});
}

Test(closings, processes_that_are_through_may_close)
{
    expect_all_in_time(true);
}

Test(closings, threads_that_are_through_may_close)
{
    expect_all_in_time(false);
}

static void expect_named_to_the_others(int culprit, bool early)
{
    for (int processes = 0; processes < 2; processes++) {
        struct closings c = {.culprit = culprit, .early = early};
        struct world world = {.size = 3, .processes = processes};
        int failed = world_run(&world, closings_among, &c, &report);

        cr_expect(failed == 0, "culprit %d, %s: %s", culprit, processes ? "processes" : "threads",
                  report.summary);
    }
}

Test(closings, who_has_closed_the_parent_is_named_when_others_open_among_its_ranks)
{
    for (int culprit = 0; culprit < 3; culprit++)
        expect_named_to_the_others(culprit, true);
}

Test(closings, who_closes_the_parent_meanwhile_is_named_to_those_that_wait_for_it)
{
    for (int culprit = 0; culprit < 3; culprit++)
        expect_named_to_the_others(culprit, false);
}

/* ---- Calls with what was closed -------------------------------------------------------------- */

static void expect_refused(rondo_result result, const char *what)
{
    const char *sentence = rondo_last_error(NULL);

    cr_expect(result == RONDO_ERROR_INVALID && strstr(sentence, "was closed"), "%s: %d, \"%s\"",
              what, (int)result, sentence);
}

#define REFUSED(call) expect_refused(call, #call)

static void expect_calls_refused(rondo_comm *comm)
{
    int in[4] = {1}, out[4];
    size_t one[1] = {1};
    rondo_stream *stream = NULL;
    rondo_request *request = NULL;
    double time;
    rondo_call call = {.struct_size = sizeof(call),
                       .collective = RONDO_BROADCAST,
                       .type = RONDO_INT32,
                       .input = in,
                       .output = out,
                       .count = 4,
                       .comm = comm};

    cr_assert(rondo_stream_open(&stream) == RONDO_OK);
    REFUSED(rondo_all_reduce(in, out, 4, RONDO_INT32, RONDO_SUM, comm, NULL));
    REFUSED(rondo_all_reduce(in, out, 4, RONDO_INT32, RONDO_SUM, comm, stream));
    REFUSED(rondo_send(in, 4, RONDO_INT32, 0, comm, NULL));
    REFUSED(rondo_barrier(comm, NULL));
    REFUSED(rondo_collective_call(&call));
    REFUSED(rondo_collective_post(&call, &request));
    REFUSED(rondo_estimate(&call, &time));
    REFUSED(rondo_all_gather_v(in, out, one, NULL, RONDO_INT32, comm, NULL));
    cr_assert(rondo_group_start() == RONDO_OK);
    REFUSED(rondo_recv(out, 4, RONDO_INT32, 0, comm, NULL));
    REFUSED(rondo_group_end());
    rondo_stream_close(stream);
}

static void expect_asking_and_making_refused(rondo_comm *comm)
{
    int value = 1, ranks[1] = {0}, count;
    rondo_unique_id id = {{0}};
    rondo_comm *made = NULL;
    rondo_registration *registration = NULL;
    rondo_p2p *p2p = NULL;
    rondo_op op;

    REFUSED(rondo_comm_query(comm));
    REFUSED(rondo_comm_abort(comm));
    REFUSED(rondo_comm_finalize(comm));
    REFUSED(rondo_comm_split(comm, 0, 0, NULL, &made));
    REFUSED(rondo_comm_dup(comm, &made));
    REFUSED(rondo_comm_open_among(comm, ranks, 1, NULL, &made));
    REFUSED(rondo_comm_agree(comm, NULL, NULL, &count));
    REFUSED(rondo_comm_failed(comm, NULL, &count));
    REFUSED(rondo_comm_revoke(comm));
    REFUSED(rondo_comm_shrink(comm, NULL, &made));
    REFUSED(rondo_comm_grow(comm, &id, 2, -1, NULL, &made));
    REFUSED(rondo_comm_set_timeout(comm, 1));
    REFUSED(rondo_comm_register(comm, &value, sizeof(value), &registration));
    REFUSED(rondo_comm_deregister(comm, (rondo_registration *)&value));
    REFUSED(rondo_op_create_premul_sum(comm, &value, RONDO_INT32, &op));
    REFUSED(rondo_op_destroy(comm, 1000));
    REFUSED(rondo_p2p_open(comm, &p2p));
    cr_expect(!made && !registration && !p2p);
    cr_expect(strstr(rondo_last_error(comm), "was closed"));
    cr_expect(strcmp(rondo_comm_last_algorithm(comm), "") == 0);
    cr_expect(rondo_comm_rank(comm) == 0 && rondo_comm_cuda_device(comm) == -1);
}

/* Also after more were closed, and by whoever closes it once more. */
Test(closings, a_communicator_that_was_closed_is_refused_by_every_function)
{
    int in[4] = {1}, out[4];
    rondo_comm *closed, *other;

    cr_assert(rondo_comm_open_all(1, NULL, &closed) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int i = 0; i < 4; i++) /* so often that calls are repeated without being checked again */
        cr_assert(rondo_all_reduce(in, out, 4, RONDO_INT32, RONDO_SUM, closed, NULL) == RONDO_OK);
    rondo_comm_close(closed);
    for (int i = 0; i < 10; i++) {
        expect_calls_refused(closed);
        expect_asking_and_making_refused(closed);
        rondo_comm_close(closed);
        expect_refused(RONDO_ERROR_INVALID, "rondo_comm_close");
        cr_assert(rondo_comm_open_all(1, NULL, &other) == RONDO_OK);
        cr_expect(rondo_all_reduce(in, out, 4, RONDO_INT32, RONDO_SUM, other, NULL) == RONDO_OK);
        rondo_comm_close(other);
    }
}
