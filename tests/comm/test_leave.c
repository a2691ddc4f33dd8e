/* SPDX-License-Identifier: BSD-3-Clause */
/* test_leave.c - leaving a failed call. Ranks are threads, or words on status pages that the test
 * writes; ranks that are stopped in the middle of a step are in tests/failure. */
#include "comm/failure/leave.h"

#include "base/fail.h"
#include "comm/engine/call.h"
#include "tests/world.h"
#include "transport/memory/heap.h"
#include "transport/memory/shm.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { RANKS = 2, COUNT = 1 << 16 };

static rondo_comm *comms[RANKS];

static void open_ranks(void)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = world_patience(0.3);
    setenv("RONDO_COSTS", "1,1,1", 1);
    cr_assert(rondo_comm_open_all(RANKS, &config, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
}

static void close_ranks(void)
{
    for (int r = 0; r < RANKS; r++)
        rondo_comm_close(comms[r]);
}

TestSuite(leave, .init = open_ranks, .fini = close_ranks, .timeout = 120);

struct part {
    pthread_t thread;
    _Atomic pid_t number; /* of the thread, which is about to call */
    const char *algorithm;
    int rank;
    size_t count;
    void *memory;
    rondo_result result;
    bool told; /* when the call returned, the status page said that it has failed */
};

static void *all_reduce(void *argument)
{
    struct part *part = argument;
    const rondo_call call = {sizeof(call),   RONDO_ALL_REDUCE, RONDO_INT32, RONDO_SUM,         0,
                             part->memory,   part->memory,     part->count, comms[part->rank], NULL,
                             part->algorithm};

    atomic_store_explicit(&part->number, gettid(), memory_order_relaxed);
    part->result = rondo_collective_call(&call);
    part->told = atomic_load_explicit(&comms[part->rank]->status->failed, memory_order_acquire);
    return NULL;
}

static void start(struct part *part)
{
    cr_assert(pthread_create(&part->thread, NULL, all_reduce, part) == 0);
}

/* ---- Broken on every rank -------------------------------------------------------------------- */

Test(leave, who_comes_when_the_others_have_given_up_gets_their_error)
{
    static const char *const names[] = {"one_shot", "direct", "ring", "tree", "zero_copy"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        int32_t values[RANKS] = {1, 1};
        struct part parts[RANKS];

        for (int r = 0; r < RANKS; r++) {
            parts[r] =
                (struct part){.algorithm = names[i], .rank = r, .count = 1, .memory = &values[r]};
            start(&parts[r]);
            pthread_join(parts[r].thread, NULL); /* the other one comes after */
            cr_expect(parts[r].result == RONDO_ERROR_TIMEOUT, "%s, rank %d: %d", names[i], r,
                      parts[r].result);
            cr_expect(strstr(rondo_last_error(comms[r]), "rank 1"), "%s",
                      rondo_last_error(comms[r]));
        }
        close_ranks();
        open_ranks();
    }
}

static void both_sum_up(int32_t values[RANKS])
{
    struct part parts[RANKS];

    for (int r = 0; r < RANKS; r++) {
        parts[r] =
            (struct part){.algorithm = "one_shot", .rank = r, .count = 1, .memory = &values[r]};
        start(&parts[r]);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(parts[r].thread, NULL);
        cr_assert(parts[r].result == RONDO_OK, "%s", rondo_last_error(comms[r]));
    }
}

Test(leave, a_rank_that_aborts_after_its_last_call_does_not_spoil_that_call_for_others)
{
    int32_t values[RANKS] = {1, 2};

    both_sum_up(values);
    cr_expect(rondo_comm_abort(comms[1]) == RONDO_OK);
    cr_expect(!leave_spoils(comms[0]), "both have ended it");
    comms[0]->calls++;
    cr_expect(leave_spoils(comms[0]), "but not the next one");
}

Test(leave, a_rank_that_aborts_in_a_call_spoils_it_also_when_numbers_have_wrapped)
{
    const struct call_record record = {.fingerprint = 1};
    struct status *status = comms[1]->status_pages[1];
    uint32_t last = UINT32_MAX / 2; /* numbers of calls on status pages have 31 bits */

    call_header_begin(&status->call, last, &record, false);
    status_end(status, last);
    comms[0]->calls = last;
    rondo_comm_abort(comms[1]);
    cr_expect(!leave_spoils(comms[0]));
    comms[0]->calls = last + 1;
    cr_expect(leave_spoils(comms[0]));
    comms[0]->calls = last + 1000;
    cr_expect(leave_spoils(comms[0]));
}

/* Sets whether rank 1 seems to touch memory of its peers. */
static void set_inside(uint32_t inside)
{
    atomic_store_explicit(&comms[1]->status_pages[1]->inside, inside, memory_order_release);
}

/* ---- Waiting --------------------------------------------------------------------------------- */

static void *memory_of_heap(size_t bytes)
{
    void *memory = NULL;

    cr_assert(rondo_mem_alloc(bytes, &memory) == RONDO_OK);
    memset(memory, 0, bytes);
    return memory;
}

Test(leave, who_leaves_waits_for_ranks_of_its_process_that_are_inside)
{
    struct part part = {.algorithm = "zero_copy",
                        .rank = 0,
                        .count = COUNT,
                        .memory = memory_of_heap(COUNT * sizeof(int32_t))};

    set_inside(1);
    start(&part);
    while (!rondo_comm_query(comms[0]))
        sched_yield();
    cr_expect(world_await_told(&part.number));
    cr_expect(rondo_comm_query(comms[0]) == RONDO_ERROR_TIMEOUT);
    cr_expect(!turn_idle(&comms[0]->turn), "its call has not returned");
    set_inside(0);
    pthread_join(part.thread, NULL);
    cr_expect(part.result == RONDO_ERROR_TIMEOUT);
    rondo_mem_free(part.memory);
}

struct group {
    struct part part; /* of the first communicator */
    rondo_comm *other;
    char sentence[FAIL_SENTENCE_MAX];
};

static void *run_group(void *argument)
{
    struct group *group = argument;
    struct part *part = &group->part;

    rondo_group_start();
    all_reduce(part);
    rondo_barrier(group->other, NULL);
    part->result = rondo_group_end();
    snprintf(group->sentence, sizeof(group->sentence), "%s", rondo_last_error(NULL));
    return NULL;
}

/* The first call fails first and ends last, as a rank is inside: meanwhile the second one fails. */
Test(leave, a_group_has_the_sentence_of_its_first_error_also_if_that_call_ends_last)
{
    struct group group = {.part = {.algorithm = "zero_copy",
                                   .count = COUNT,
                                   .memory = memory_of_heap(COUNT * sizeof(int32_t))}};
    rondo_comm *others[RANKS];

    cr_assert(rondo_comm_open_all(RANKS, NULL, others) == RONDO_OK);
    rondo_comm_set_timeout(others[0], 0);
    group.other = others[0];
    set_inside(1);
    cr_assert(pthread_create(&group.part.thread, NULL, run_group, &group) == 0);
    while (!rondo_comm_query(comms[0]))
        sched_yield();
    rondo_comm_abort(others[1]);
    while (!turn_idle(&others[0]->turn))
        sched_yield();
    cr_expect(!turn_idle(&comms[0]->turn), "its call has not ended");
    set_inside(0);
    pthread_join(group.part.thread, NULL);
    cr_expect(group.part.result == RONDO_ERROR_TIMEOUT);
    cr_expect_str_eq(group.sentence, rondo_last_error(comms[0]));
    cr_expect(strstr(rondo_last_error(others[0]), "Rank 1 aborted"));
    for (int r = 0; r < RANKS; r++)
        rondo_comm_close(others[r]);
    rondo_mem_free(group.part.memory);
}

/* Else they could begin to read what the caller writes next. */
Test(leave, who_leaves_waits_until_the_thread_that_broke_the_call_has_told_the_peers)
{
    struct part part = {.algorithm = "zero_copy",
                        .rank = 0,
                        .count = COUNT,
                        .memory = memory_of_heap(COUNT * sizeof(int32_t))};

    rondo_comm_set_timeout(comms[0], 0);
    start(&part);
    cr_expect(world_await_told(&part.number));
    /* The test is that thread, and stops between the two. */
    atomic_store_explicit(&comms[0]->broken, RONDO_ERROR_ABORTED, memory_order_release);
    for (int i = 0; i < 1000 && !turn_idle(&comms[0]->turn); i++)
        sched_yield();
    status_fail(comms[0]->status, RONDO_ERROR_ABORTED, 0, "aborted");
    pthread_join(part.thread, NULL);
    cr_expect(part.result == RONDO_ERROR_ABORTED);
    cr_expect(part.told);
    rondo_mem_free(part.memory);
}

Test(leave, who_gives_up_a_message_does_not_wait_for_those_that_it_was_not_for)
{
    enum { SIZE = 3, BYTES = 1 << 20 };
    rondo_config config = RONDO_CONFIG_INIT;
    void *memory = memory_of_heap(BYTES);
    rondo_comm *three[SIZE];

    config.timeout = world_patience(0.3);
    cr_assert(rondo_comm_open_all(SIZE, &config, three) == RONDO_OK);
    /* Rank 2 reads from somebody else, and does not end. */
    atomic_store_explicit(&three[2]->status->inside, 1, memory_order_release);
    cr_expect(rondo_send(memory, BYTES, RONDO_UINT8, 1, three[0], NULL) == RONDO_ERROR_TIMEOUT);
    for (int r = 0; r < SIZE; r++)
        rondo_comm_close(three[r]);
    rondo_mem_free(memory);
}

Test(leave, who_did_not_tell_peers_where_its_memory_is_does_not_wait_for_them)
{
    int32_t value = 1;
    struct part part = {.algorithm = "ring", .rank = 0, .count = 1, .memory = &value};

    set_inside(1);
    start(&part);
    pthread_join(part.thread, NULL);
    cr_expect(part.result == RONDO_ERROR_TIMEOUT);
    set_inside(0);
}

Test(leave, nobody_goes_inside_when_the_alarm_has_been_rung)
{
    struct part part = {.algorithm = "zero_copy",
                        .rank = 1,
                        .count = COUNT,
                        .memory = memory_of_heap(COUNT * sizeof(int32_t))};

    part.rank = 0;
    start(&part); /* it tells its address, and gives up */
    pthread_join(part.thread, NULL);
    part.rank = 1;
    start(&part);
    pthread_join(part.thread, NULL);
    cr_expect(part.result == RONDO_ERROR_TIMEOUT, "%s", rondo_last_error(comms[1]));
    cr_expect(!atomic_load_explicit(&comms[1]->status_pages[1]->inside, memory_order_acquire));
    rondo_mem_free(part.memory);
}

/* ---- Places ---------------------------------------------------------------------------------- */

Test(leave, what_peers_may_still_write_to_is_not_handed_out_before_they_have_closed)
{
    ptrdiff_t arena = comms[0]->arena - heap_base(), other = comms[1]->arena - heap_base();
    size_t bytes = shm_arena_bytes(RANKS, PLAN_CHANNELS, comms[0]->settings.slots,
                                   comms[0]->settings.slot_bytes);
    void *memory = NULL;

    rondo_comm_close(comms[0]);
    comms[0] = NULL;
    memory = memory_of_heap(bytes);
    cr_expect((char *)memory - heap_base() != arena,
              "rank 1 may send to rank 0, whether or not anybody takes it");
    rondo_mem_free(memory);
    rondo_comm_close(comms[1]);
    comms[1] = NULL;
    memory = memory_of_heap(bytes);
    /* Nobody used the heap between, so it may be another one, elsewhere. */
    cr_expect((char *)memory - heap_base() == (arena < other ? arena : other));
    rondo_mem_free(memory);
}

static struct status *closer; /* the status page of the rank that closes */
static atomic_int early;      /* it has said that it closed before it wrote to a peer */

static void see_store(int signal, siginfo_t *info, void *context)
{
    uintptr_t page = (uintptr_t)info->si_addr / 4096 * 4096;

    (void)signal, (void)context;
    atomic_store_explicit(
        &early, atomic_load_explicit(&closer->closed, memory_order_relaxed) == STATUS_CLOSED,
        memory_order_relaxed);
    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE))
        _exit(1);
}

Test(leave, who_closes_says_so_after_its_last_store_to_peers)
{
    struct sigaction see = {.sa_sigaction = see_store, .sa_flags = SA_SIGINFO}, before;
    _Atomic uint8_t *gone = &comms[0]->alarms[1]->gone[0];
    void *page = (void *)((uintptr_t)gone / 4096 * 4096);

    closer = comms[0]->status;
    atomic_store_explicit(&early, -1, memory_order_relaxed);
    cr_assert(sigaction(SIGSEGV, &see, &before) == 0 && mprotect(page, 4096, PROT_READ) == 0);
    rondo_comm_close(comms[0]);
    comms[0] = NULL;
    sigaction(SIGSEGV, &before, NULL);
    cr_expect(atomic_load_explicit(&early, memory_order_relaxed) == 0,
              "-1: it wrote nothing; is %d", atomic_load_explicit(&early, memory_order_relaxed));
    cr_expect(atomic_load_explicit(gone, memory_order_acquire));
}

Test(leave, a_rank_that_called_something_else_is_named_also_when_it_has_closed)
{
    float values[8] = {0};

    /* Each thinks that it is the root, so neither waits for anybody. */
    for (int i = 0; i < 3; i++)
        cr_assert(rondo_broadcast(values, values, 8, RONDO_FLOAT32, 0, comms[0], NULL) == RONDO_OK);
    rondo_comm_close(comms[0]);
    comms[0] = NULL;
    cr_expect(rondo_broadcast(values, values, 8, RONDO_FLOAT32, 1, comms[1], NULL) ==
              RONDO_ERROR_MISMATCH);
    cr_expect(strstr(rondo_last_error(comms[1]), "Call 1 ") &&
                  strstr(rondo_last_error(comms[1]), "root 0") &&
                  strstr(rondo_last_error(comms[1]), "root 1"),
              "%s", rondo_last_error(comms[1]));
}

Test(leave, buffers_on_the_pages_of_a_failed_call_are_not_used_unseen)
{
    rondo_comm *others[3][RANKS];
    char *memory = memory_of_heap(2 * 4096);
    struct exposure exposure = {0};

    exposure_open(&exposure, NULL, 200, memory + 4000, 200);
    cr_expect(!exposed_touches(&exposure.written, memory, memory + 2 * 4096));
    cr_expect(exposed_touches(&exposure.read, memory, memory + 4096));
    cr_expect(exposed_touches(&exposure.read, memory + 4096, memory + 2 * 4096));
    cr_expect(!exposed_touches(&exposure.read, memory, memory + 4000));
    cr_expect(!exposed_touches(&exposure.read, memory + 4200, memory + 5000));
    exposure_close(&exposure);
    cr_expect(!exposed_touches(&exposure.read, memory, memory + 2 * 4096));

    for (int i = 0; i < 3; i++)
        cr_assert(rondo_comm_open_all(RANKS, NULL, others[i]) == RONDO_OK);
    exposure_open(others[0][0]->exposures, memory + 4000, 200, NULL, 0);
    exposure_open(others[1][0]->exposures, NULL, 0, memory + 4000, 200);
    leave_warn(comms[0], memory, memory + 4096, false);
    cr_expect(rondo_comm_query(others[0][0]) == RONDO_ERROR_PEER, "what peers write would be lost");
    cr_expect(rondo_comm_query(others[1][0]) == RONDO_OK, "peers read what was there");
    leave_warn(comms[0], memory, memory + 4096, true);
    cr_expect(rondo_comm_query(others[1][0]) == RONDO_ERROR_PEER, "peers would read zeros");
    cr_expect(rondo_comm_query(others[2][0]) == RONDO_OK, "it shows nothing there");
    for (int i = 0; i < 2; i++)
        cr_expect(strstr(rondo_last_error(others[i][0]), "should share neither"), "%s",
                  rondo_last_error(others[i][0]));
    cr_expect(rondo_comm_query(comms[0]) == RONDO_OK, "the one that warns has failed before");
    for (int i = 0; i < 3 * RANKS; i++)
        rondo_comm_close(others[i / RANKS][i % RANKS]);
    rondo_mem_free(memory);
}
