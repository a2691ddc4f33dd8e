/* SPDX-License-Identifier: BSD-3-Clause */
/* fast_path_bodies.c - repeated calls, see fast_path_bodies.h. */
#include "fast_path_bodies.h"

#include "comm/engine/fast_path.h"
#include "comm/engine/threads.h"
#include "tests/patience.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 2, MOST = 20000, SENTENCE = 512 };

/* Ranks of one host, with memory of either kind; ranks that only TCP links. */
enum where { PLAIN, MAPPED, APART };

struct rank {
    rondo_comm *comm;
    int times;
    enum where where;
    size_t count;
    int32_t *input, *output[2];
    char wrong[SENTENCE];
};

static rondo_result complain(struct rank *rank, const char *what, int call)
{
    static const char *const where[] = {"", ", mapped", ", over TCP"};

    snprintf(rank->wrong, sizeof(rank->wrong), "rank %d, %zu elements%s, call %d: %s",
             rank->comm->rank, rank->count, where[rank->where], call, what);
    return RONDO_ERROR_INTERNAL;
}

/* Returns what a rank contributes to call number `call`. */
static int32_t part(int rank, int call, size_t at)
{
    return (int32_t)((size_t)call * 3 + at % 1000 + (size_t)rank * 5000);
}

static rondo_result sum_once(struct rank *rank, int call)
{
    /* Rank 0 never repeats its call, the others do. */
    int32_t *output = rank->output[rank->comm->rank == 0 && call % 2];

    for (size_t i = 0; i < rank->count; i++)
        rank->input[i] = part(rank->comm->rank, call, i);
    memset(output, 0xff, rank->count * sizeof(*output));
    if (rondo_all_reduce(rank->input, output, rank->count, RONDO_INT32, RONDO_SUM, rank->comm,
                         NULL))
        return complain(rank, rondo_last_error(rank->comm), call);
    for (size_t i = 0; i < rank->count; i++)
        if (output[i] != part(0, call, i) + part(1, call, i))
            return complain(rank, "a wrong sum", call);
    return RONDO_OK;
}

/* A message from rank 0 and one back. */
static rondo_result bounce_once(struct rank *rank, int call)
{
    int own = rank->comm->rank, peer = 1 - own;
    int32_t *output = rank->output[0];
    rondo_result result = RONDO_OK;

    for (size_t i = 0; i < rank->count; i++)
        rank->input[i] = part(own, call, i);
    memset(output, 0xff, rank->count * sizeof(*output));
    for (int turn = 0; turn < RANKS && !result; turn++)
        result = turn == own
                     ? rondo_send(rank->input, rank->count, RONDO_INT32, peer, rank->comm, NULL)
                     : rondo_recv(output, rank->count, RONDO_INT32, peer, rank->comm, NULL);
    if (result)
        return complain(rank, rondo_last_error(rank->comm), call);
    for (size_t i = 0; i < rank->count; i++)
        if (output[i] != part(peer, call, i))
            return complain(rank, "a wrong message", call);
    return RONDO_OK;
}

/* ---- Memory and threads ---------------------------------------------------------------------- */

static void *allocate(enum where where)
{
    void *memory = NULL;

    if (where != MAPPED)
        return malloc(MOST * sizeof(int32_t));
    return rondo_mem_alloc(MOST * sizeof(int32_t), &memory) ? NULL : memory;
}

static void give_back(enum where where, void *memory)
{
    if (where == MAPPED)
        rondo_mem_free(memory);
    else
        free(memory);
}

static bool open_rank(struct rank *rank, rondo_comm *comm, enum where where, int times)
{
    *rank = (struct rank){.comm = comm, .where = where, .times = times};
    rank->input = allocate(where);
    rank->output[0] = allocate(where);
    rank->output[1] = allocate(where);
    return rank->input && rank->output[0] && rank->output[1];
}

static void close_rank(struct rank *rank)
{
    give_back(rank->where, rank->input);
    give_back(rank->where, rank->output[0]);
    give_back(rank->where, rank->output[1]);
}

static rondo_result open_all(enum where where, rondo_comm **comms)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_result result;

    config.timeout = 10; /* ranks that wait for each other say so */
    if (where == APART) {
        setenv("RONDO_TRANSPORT", "tcp", 1);
        setenv("RONDO_INTERFACE", "lo", 1);
    }
    result = rondo_comm_open_all(RANKS, &config, comms);
    unsetenv("RONDO_TRANSPORT");
    return result;
}

/* The step for `threads` of each of the ranks, all at once. */
static const char *run(rondo_result (*step)(void *), enum where where, int threads, int times)
{
    static char wrong[SENTENCE];
    enum { MOST_THREADS = 2 };
    struct rank ranks[RANKS * MOST_THREADS];
    void *arguments[RANKS * MOST_THREADS];
    rondo_comm *comms[RANKS];
    rondo_result result;
    bool opened = true;

    if (open_all(where, comms))
        return rondo_last_error(NULL);
    for (int i = 0; i < RANKS * threads; i++) {
        opened &= open_rank(&ranks[i], comms[i % RANKS], where, times);
        arguments[i] = &ranks[i];
    }
    result = opened ? threads_run(step, arguments, RANKS * threads) : RONDO_ERROR_MEMORY;
    snprintf(wrong, sizeof(wrong), "%s", opened ? "" : "no memory");
    for (int i = 0; i < RANKS * threads; i++) {
        if (!wrong[0])
            memcpy(wrong, ranks[i].wrong, sizeof(wrong));
        close_rank(&ranks[i]);
    }
    for (int i = 0; i < RANKS; i++)
        rondo_comm_close(comms[i]);
    return result ? wrong : NULL;
}

/* Runs the step over shared memory, then over TCP. */
static const char *run_both(rondo_result (*step)(void *), int threads, int times)
{
    const char *wrong = run(step, PLAIN, threads, times);

    return wrong ? wrong : run(step, APART, threads, times);
}

static rondo_result all_reduce(struct rank *rank, size_t count)
{
    return rondo_all_reduce(rank->input, rank->output[0], count, RONDO_INT32, RONDO_SUM, rank->comm,
                            NULL);
}

/* ---- The same call over and over ------------------------------------------------------------- */

/* Makes this rank one in a process of its own, of which no peer maps plain memory: that shows in a
 * round of messages, which is left out in most of the calls. */
static void be_apart(rondo_comm *comm)
{
    comm->one_process = false;
    comm->tuning.costs.latency = 1e-15;
    comm->tuning.costs.copy_bw = comm->tuning.costs.direct_bw = comm->tuning.costs.reduce_bw = 1e9;
    memset(comm->choices.slots, 0, sizeof(comm->choices.slots));
}

static rondo_result fast_path(void *argument)
{
    static const size_t counts[] = {1, 14, 100, 1000, MOST};
    struct rank *rank = argument;
    rondo_result result = RONDO_OK;

    if (rank->where != APART)
        be_apart(rank->comm);
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        rank->count = counts[i];
        for (int call = 0; call < rank->times && !result; call++)
            result = sum_once(rank, call);
        for (int call = 0; call < rank->times && !result; call++)
            result = bounce_once(rank, call);
        for (int kept = rank->comm->rank == 0; kept < FAST_PATHS && !result; kept++)
            if (!rank->comm->fast_path[kept].ready)
                result = complain(rank, "no call was kept as one that repeats", rank->times);
    }
    return result;
}

const char *repetitions_do_what_is_asked(int times)
{
    const char *wrong = run(fast_path, PLAIN, 1, times);

    if (!wrong)
        wrong = run(fast_path, MAPPED, 1, times);
    return wrong ? wrong : run(fast_path, APART, 1, times);
}

/* ---- Choices that are forgotten in between --------------------------------------------------- */

/* A call in a group is not looked at as something that might repeat. */
static rondo_result broadcast_in_group(const struct rank *rank, size_t count)
{
    rondo_result result = rondo_group_start(), ended;

    if (!result)
        result = rondo_broadcast(rank->input, rank->input, count, RONDO_INT32, 0, rank->comm, NULL);
    ended = rondo_group_end();
    return result ? result : ended;
}

static rondo_result forget(void *argument)
{
    struct rank *rank = argument;
    rondo_result result = RONDO_OK;

    for (int round = 0; round < 8 && !result; round++) {
        rank->count = 4 + (size_t)round;
        for (int call = 0; call < 5 && !result; call++)
            result = sum_once(rank, call);
        /* A broadcast of any length may have the choice's place now. */
        for (size_t count = 100; count < 100 + 3 * CHOICES && !result; count++)
            result = broadcast_in_group(rank, count);
        if (!result)
            result = sum_once(rank, 6);
    }
    if (result && !rank->wrong[0])
        complain(rank, rondo_last_error(rank->comm), 0);
    return result;
}

const char *repetitions_outlive_their_choices(void)
{
    return run_both(forget, 1, 0);
}

/* ---- Threads --------------------------------------------------------------------------------- */

static rondo_result fast_path_beside(void *argument)
{
    struct rank *rank = argument;
    rondo_result result = RONDO_OK;

    /* Which of a rank's threads meets which of the other's is left open, so all give the same. */
    for (int call = 0; call < rank->times && !result; call++) {
        rank->input[0] = rank->comm->rank + 1;
        rank->output[0][0] = 0;
        result = all_reduce(rank, 1);
        if (result)
            return complain(rank, rondo_last_error(rank->comm), call);
        if (rank->output[0][0] != 3)
            result = complain(rank, "a wrong sum", call);
    }
    return result;
}

const char *threads_repeat_each_other(int times)
{
    return run_both(fast_path_beside, 2, times);
}

/* ---- Another call ---------------------------------------------------------------------------- */

static rondo_result differ(void *argument)
{
    struct rank *rank = argument;
    rondo_result result = RONDO_OK;

    rank->count = 4;
    for (int call = 0; call < 10 && !result; call++)
        result = all_reduce(rank, 4);
    if (result)
        return complain(rank, rondo_last_error(rank->comm), 0);
    for (int more = 0; more < 2; more++) {
        if (rank->comm->rank == 0)
            result =
                rondo_broadcast(rank->input, rank->output[0], 4, RONDO_INT32, 1, rank->comm, NULL);
        else
            result = all_reduce(rank, 4);
        if (!result || !strstr(rondo_last_error(rank->comm), "broadcast") ||
            !strstr(rondo_last_error(rank->comm), "all_reduce"))
            return complain(rank, rondo_last_error(rank->comm), more);
    }
    return RONDO_OK;
}

const char *a_repetition_meets_another_call(void)
{
    return run_both(differ, 1, 0);
}

/* ---- The end --------------------------------------------------------------------------------- */

static _Atomic pid_t waiting; /* the thread of rank 0, about to wait for rank 1 */

/* Rank 1 leaves when rank 0 waits in its call: rank 0 is told who did and why. */
static rondo_result end(void *argument)
{
    struct rank *rank = argument;
    rondo_result result = RONDO_OK;

    for (int call = 0; call < 20 && !result; call++)
        result = all_reduce(rank, 4);
    if (result || !rank->comm->fast_path->ready)
        return complain(rank, result ? rondo_last_error(rank->comm) : "it does not repeat", 0);
    if (rank->comm->rank == 0) {
        atomic_store_explicit(&waiting, gettid(), memory_order_relaxed);
    } else {
        world_await_told(&waiting);
        atomic_store_explicit(&waiting, 0, memory_order_relaxed);
        rondo_comm_abort(rank->comm);
    }
    for (int more = 0; more < 2; more++) {
        result = all_reduce(rank, 4);
        if (result != RONDO_ERROR_ABORTED || !strstr(rondo_last_error(rank->comm), "Rank 1"))
            return complain(rank, rondo_last_error(rank->comm), more);
    }
    return RONDO_OK;
}

const char *a_repetition_ends_with_its_peer(void)
{
    return run_both(end, 1, 0);
}

/* Aborts and closes the communicator of the rank, which is in a call. ThreadSanitizer looks at no
 * more than the beginning of what is freed: so the next holder of the turn takes the short way, and
 * writes what the call was made with. */
static void *close_beside(void *argument)
{
    struct rank *rank = argument;
    rondo_comm *comm = rank->comm;
    const rondo_call call = comm->fast_path->call;
    rondo_result result;

    world_await_told(&waiting);
    atomic_store_explicit(&waiting, 0, memory_order_relaxed);
    rondo_comm_abort(comm);
    while (!turn_idle(&comm->turn))
        sched_yield();
    if (!fast_path_run(&call, &result) || result != RONDO_ERROR_ABORTED)
        complain(rank, "the communicator was not aborted", 1);
    rondo_comm_close(comm);
    return NULL;
}

static rondo_result closed_beside(void *argument)
{
    struct rank *rank = argument;
    rondo_result result = RONDO_OK;
    pthread_t thread;

    for (int call = 0; call < 20 && !result; call++)
        result = all_reduce(rank, 4);
    if (result || !rank->comm->fast_path->ready)
        return complain(rank, result ? rondo_last_error(NULL) : "it does not repeat", 0);
    if (rank->comm->rank)
        return RONDO_OK;
    if (pthread_create(&thread, NULL, close_beside, rank))
        return complain(rank, "no thread", 0);
    atomic_store_explicit(&waiting, gettid(), memory_order_relaxed);
    result = all_reduce(rank, 4);
    pthread_join(thread, NULL);
    if (result != RONDO_ERROR_ABORTED)
        complain(rank, rondo_last_error(NULL), 0);
    return rank->wrong[0] ? RONDO_ERROR_INTERNAL : RONDO_OK;
}

const char *a_repetition_ends_in_a_communicator_that_is_closed(void)
{
    return run_both(closed_beside, 1, 0);
}
