/* SPDX-License-Identifier: BSD-3-Clause */
/* test_blame.c - who is found to be silent, by ranks that look at their waits at given times. */
#include "comm/failure/blame.h"

#include "comm/failure/health.h"
#include "comm/recorder/gather.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 4 };
static const double BEGAN = 100, TIMEOUT = 4, PATIENCE = 1; /* seconds */

static rondo_comm *comms[RANKS];
static struct task tasks[RANKS];
static struct batch batches[RANKS];

static void open_four(void)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = TIMEOUT;
    setenv("RONDO_COSTS", "1,1,1", 1);
    cr_assert(rondo_comm_open_all(RANKS, &config, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    cr_assert_float_eq(blame_patience(comms[0]), PATIENCE, 1e-9);
}

static void close_four(void)
{
    for (int r = 0; r < RANKS; r++) {
        plan_close((struct plan *)tasks[r].execution.plan);
        rondo_comm_close(comms[r]);
    }
}

TestSuite(blame, .init = open_four, .fini = close_four);

/* In a call of all; of two peers the second may be -1. */
static void wait_for_both(int rank, int first, int second)
{
    const int peers[] = {first, second};
    struct task *task = &tasks[rank];
    struct execution *x = &task->execution;
    struct plan *plan;

    cr_assert(plan_open(RONDO_BARRIER, "trial", RANKS, rank, 0, &plan) == RONDO_OK);
    plan_await(plan, first, 0, 0);
    if (second >= 0) {
        plan_next_program(plan);
        plan_await(plan, second, 0, 0);
    }
    *task = (struct task){.key.collective = RONDO_BARRIER, .state = TASK_RUNNING};
    x->plan = plan;
    x->world = &comms[rank]->world;
    x->shape = (struct exec_shape){.count = 1, .element = 1, .segment = 1, .grain = 1};
    exec_start(x);
    for (int i = 0; i < plan->programs; i++)
        x->programs[i].blamed = peers[i];
    x->blamed = first;
    batches[rank] = (struct batch){
        .comm = comms[rank], .tasks = task, .count = 1, .left = 1, .still_since = BEGAN};
    comms[rank]->calls++;
    call_header_begin(&comms[rank]->status->call, comms[rank]->calls,
                      &(struct call_record){.collective = RONDO_BARRIER}, false);
}

static void wait_for(int rank, int peer)
{
    wait_for_both(rank, peer, -1);
}

/* Those who are named look ten times a second, in this order, from then until then. */
static void look(const char *ranks, double from, double until)
{
    for (int i = 0; from + 0.1 * i < until; i++)
        for (const char *rank = ranks; *rank; rank++)
            blame_look(&batches[*rank - '0'], from + 0.1 * i);
}

static void expect_blame(int rank, int culprit, int by)
{
    const struct blame *blame = &comms[rank]->blame;

    cr_expect(blame->known && blame->culprit == culprit && blame->by == by,
              "rank %d blames %d by %d (%d), not %d by %d", rank, blame->culprit, blame->by,
              blame->known, culprit, by);
}

static void expect_timeout(int rank, const char *part)
{
    cr_assert(health_check(comms[rank], &tasks[rank], TIMEOUT + 0.1) == RONDO_ERROR_TIMEOUT);
    cr_expect(strstr(rondo_last_error(comms[rank]), part), "\"%s\" is not in: %s", part,
              rondo_last_error(comms[rank]));
}

static int
    held; /* how often a rank looked into records, and its own said that it waits until then */

bool __real_gather_here(double pause, struct sightings *sightings);
bool __wrap_gather_here(double pause, struct sightings *sightings);

bool __wrap_gather_here(double pause, struct sightings *sightings)
{
    bool found = __real_gather_here(pause, sightings);

    for (int i = 0; found && i < sightings->count; i++) {
        const struct sighting *sighting = sightings->at[i];

        held += sighting->record.comm == comms[0]->id && sighting->record.identity.rank == 0 &&
                sighting->record.waiting[0].looked > sighting->process.read;
    }
    return found;
}

static void open_four_that_warn(void)
{
    setenv("RONDO_LOG", "warn", 1);
    open_four();
}

/* A rank that gives up looks twice, for its sentence and for the table of all ranks. Peers that did
 * not see it wait meanwhile would blame it instead of the rank that it waits for. */
Test(blame_log, a_rank_that_looks_into_records_is_seen_to_wait, .init = open_four_that_warn,
     .fini = close_four)
{
    wait_for(0, 1);
    look("0", BEGAN, BEGAN + PATIENCE);
    held = 0;
    expect_timeout(0, " s for rank 1 in barrier");
    cr_expect_eq(held, 2);
}

Test(blame, a_peer_without_a_heartbeat_is_silent_after_a_while)
{
    wait_for(0, 1);
    look("0", BEGAN, BEGAN + PATIENCE);
    cr_expect(!comms[0]->blame.known && !comms[0]->blame.circular);
    look("0", BEGAN + PATIENCE, BEGAN + PATIENCE + 0.2);
    expect_blame(0, 1, 1);
    expect_timeout(0, " s for rank 1 in barrier");
}

/* Rank 0 waits for rank 1, that for rank 2, and that for rank 3. */
Test(blame, the_end_of_a_chain_is_blamed_by_all_of_it)
{
    for (int r = 0; r < 3; r++)
        wait_for(r, r + 1);
    look("012", BEGAN, BEGAN + PATIENCE + 0.5);
    expect_blame(2, 3, 3);
    expect_blame(1, 3, 2);
    expect_blame(0, 3, 1);
    expect_timeout(0, " s for rank 3 in barrier");
    cr_expect(strstr(rondo_last_error(comms[0]), "rank 1 waits for it as well"), "%s",
              rondo_last_error(comms[0]));
}

Test(blame, a_rank_that_stops_cannot_pass_the_blame_on)
{
    wait_for(0, 1);
    wait_for(1, 2);
    look("01", BEGAN, BEGAN + 2);
    expect_blame(0, 2, 1);
    look("0", BEGAN + 2, BEGAN + 2 + PATIENCE + 0.2);
    expect_blame(0, 1, 1);
}

/* A rank is not blamed as long as its heartbeats go on: it went on, and found that it had waited
 * for somebody else. */
Test(blame, a_rank_that_beats_again_is_not_blamed_any_more)
{
    wait_for(0, 1);
    wait_for(1, 2);
    look("0", BEGAN, BEGAN + 2);
    expect_blame(0, 1, 1);
    look("10", BEGAN + 2, BEGAN + 2 + PATIENCE + 0.2);
    expect_blame(0, 2, 1);
}

Test(blame, of_several_peers_the_silent_one_goes_before_what_others_say)
{
    wait_for_both(0, 1, 3);
    wait_for(1, 2);
    look("01", BEGAN, BEGAN + 2);
    expect_blame(0, 3, 3);
}

/* Ranks 0, 1 and 2 wait in a circle, and rank 2 has blamed rank 3 before. */
Test(blame, what_goes_round_in_a_circle_is_forgotten)
{
    for (int r = 0; r < 3; r++)
        wait_for(r, (r + 1) % 3);
    look("012", BEGAN, BEGAN + 0.3);
    status_heartbeat(comms[2]->status, (uint64_t)1 << 32 | 3);
    blame_look(&batches[1], BEGAN + 0.3);
    expect_blame(1, 3, 2);
    look("012", BEGAN + 0.3, BEGAN + 1);
    for (int r = 0; r < 3; r++)
        cr_expect(comms[r]->blame.circular && !comms[r]->blame.known, "rank %d", r);
}

Test(blame, who_waits_in_a_circle_has_some_more_time_to_find_out)
{
    wait_for(0, 1);
    wait_for(1, 0);
    look("01", BEGAN, BEGAN + TIMEOUT);
    cr_expect(health_check(comms[0], &tasks[0], TIMEOUT + 0.1) == RONDO_OK);
    cr_expect(health_check(comms[0], &tasks[0], TIMEOUT + PATIENCE + 0.1) == RONDO_ERROR_TIMEOUT);
    cr_expect(strstr(rondo_last_error(comms[0]), " s for rank 2"), "%s: it has made no call",
              rondo_last_error(comms[0]));
}

Test(blame, another_wait_begins_with_nothing_known)
{
    wait_for(0, 1);
    look("0", BEGAN, BEGAN + 2);
    expect_blame(0, 1, 1);
    batches[0].still_since = BEGAN + 2;
    blame_look(&batches[0], BEGAN + 2);
    cr_expect(!comms[0]->blame.known);
    cr_expect_eq(atomic_load_explicit(&comms[0]->status->blames, memory_order_relaxed), 0);
}

/* A kernel goes on to other peers while its call lasts. */
Test(blame, a_peer_that_is_not_waited_for_any_more_is_not_blamed)
{
    struct execution *x = &tasks[0].execution;

    wait_for(0, 1);
    for (int i = 0; i < 20; i++)
        blame_look_at_stream(comms[0], &tasks[0], BEGAN, BEGAN + 0.1 * i);
    cr_expect(comms[0]->stream_blame.known && comms[0]->stream_blame.culprit == 1);
    x->programs[0].blamed = 3;
    for (int i = 20; i < 40; i++) {
        blame_look_at_stream(comms[0], &tasks[0], BEGAN, BEGAN + 0.1 * i);
        cr_expect(!comms[0]->stream_blame.known || comms[0]->stream_blame.culprit == 3);
    }
    cr_expect(comms[0]->stream_blame.known);
}

Test(blame, nonsense_on_a_status_is_not_believed)
{
    const uint64_t nonsense[] = {(uint64_t)1 << 32 | RANKS, (uint64_t)RANKS << 32 | 2,
                                 (uint64_t)1 << 32, 2, UINT64_MAX};

    wait_for(0, 1);
    for (int i = 0; i < 5; i++) {
        blame_look(&batches[0], BEGAN);
        status_heartbeat(comms[1]->status, nonsense[i]);
        blame_look(&batches[0], BEGAN + 0.1);
        cr_expect(!comms[0]->blame.known, "%#llx", (unsigned long long)nonsense[i]);
    }
}
