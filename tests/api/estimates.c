/* SPDX-License-Identifier: BSD-3-Clause */
/* estimates.c - what the cost model predicts is the same everywhere, grows, and costs peers
 * nothing. */
#include "bodies.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static rondo_call call_of(rondo_comm *comm, rondo_collective collective, size_t count)
{
    rondo_call call = {.struct_size = sizeof(call)};

    call.collective = collective;
    call.type = RONDO_FLOAT32;
    call.op = RONDO_SUM;
    call.count = count;
    call.comm = comm;
    return call;
}

static rondo_result ask(rondo_comm *comm, rondo_collective collective, size_t count, double *ret,
                        char *sentence)
{
    const rondo_call call = call_of(comm, collective, count);
    rondo_result result = rondo_estimate(&call, ret);

    if (result)
        return world_say(sentence, result, "estimate: %s", rondo_last_error(comm));
    return RONDO_OK;
}

enum { COUNTS = 6 };
static const size_t counts[COUNTS] = {0, 1, 100, 10000, 1000000, 300000000};

static rondo_result estimate_all(rondo_comm *comm, rondo_collective collective,
                                 double *microseconds, char *sentence)
{
    rondo_result result = RONDO_OK;

    for (int i = 0; i < COUNTS && !result; i++) {
        result = ask(comm, collective, counts[i], &microseconds[i], sentence);
        if (!result && i && microseconds[i] < microseconds[i - 1])
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "%s: %zu elements %g us, %zu %g us",
                               rondo_collective_name(collective), counts[i - 1],
                               microseconds[i - 1], counts[i], microseconds[i]);
    }
    if (!result && microseconds[0] < 0)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "%g us", microseconds[0]);
    if (!result && collective != RONDO_BARRIER && rondo_comm_size(comm) > 1 &&
        microseconds[COUNTS - 1] < 100)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "a GiB of %s in %g us",
                           rondo_collective_name(collective), microseconds[COUNTS - 1]);
    return result;
}

rondo_result estimates_are_equal_and_grow(rondo_comm *comm, void *argument, char *sentence)
{
    double all[WORLD_RANKS][COUNTS], own[COUNTS];
    rondo_result result = RONDO_OK;

    (void)argument;
    for (int c = 0; c < RONDO_COLLECTIVES && !result; c++) {
        result = estimate_all(comm, (rondo_collective)c, own, sentence);
        if (!result)
            result = rondo_all_gather(own, all, COUNTS, RONDO_FLOAT64, comm, NULL);
        for (int rank = 0; rank < rondo_comm_size(comm) && !result; rank++)
            if (memcmp(all[rank], own, sizeof(own)) != 0)
                result =
                    world_say(sentence, RONDO_ERROR_INTERNAL, "%s: rank %d finds %g us, not %g",
                              rondo_collective_name((rondo_collective)c), rank,
                              all[rank][COUNTS - 1], own[COUNTS - 1]);
    }
    return result;
}

/* Rank 0 alone asks: had it called anything, its peers' next call would be another one. */
rondo_result estimates_run_nothing(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_result result = RONDO_OK;
    double microseconds;

    (void)argument;
    for (int c = 0; c < RONDO_COLLECTIVES && !rondo_comm_rank(comm) && !result; c++)
        result = ask(comm, (rondo_collective)c, 777, &microseconds, sentence);
    return result ? result : bodies_all_reduce(comm, 1000, sentence);
}

struct receive {
    rondo_comm *comm;
    _Atomic pid_t thread; /* that is about to wait */
    int value;
    rondo_result result;
};

static void *receive(void *argument)
{
    struct receive *wanted = argument;

    atomic_store_explicit(&wanted->thread, gettid(), memory_order_relaxed);
    wanted->result = rondo_recv(&wanted->value, 1, RONDO_INT32, 1, wanted->comm, NULL);
    return NULL;
}

/* Rank 1 sends when rank 0, of which a thread waits for that, has had its answer. */
rondo_result estimates_need_no_turn(rondo_comm *comm, void *flag, char *sentence)
{
    struct receive wanted = {.comm = comm};
    atomic_int *asked = flag;
    double microseconds;
    rondo_result result;
    pthread_t thread;
    int value = 5;

    if (rondo_comm_rank(comm) == 1) {
        while (!atomic_load_explicit(asked, memory_order_acquire))
            ;
        return rondo_send(&value, 1, RONDO_INT32, 0, comm, NULL);
    }
    if (pthread_create(&thread, NULL, receive, &wanted))
        return world_say(sentence, RONDO_ERROR_SYSTEM, "no thread");
    world_await_told(&wanted.thread);
    result = ask(comm, RONDO_ALL_REDUCE, 100, &microseconds, sentence);
    atomic_store_explicit(asked, 1, memory_order_release);
    pthread_join(thread, NULL);
    if (!result && (wanted.result || wanted.value != 5))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the call beside it got %d, %d",
                           (int)wanted.result, wanted.value);
    return result;
}

static rondo_result is_close(double found, double wanted, const char *what, char *sentence)
{
    if (found > wanted * 0.999 && found < wanted * 1.001)
        return RONDO_OK;
    return world_say(sentence, RONDO_ERROR_INTERNAL, "%s: %g us instead of %g", what, found,
                     wanted);
}

/* Two calls on one communicator and one on another, then the same group is run. */
static rondo_result group_of_three(rondo_comm *comm, rondo_comm *other, double *ret, char *sentence)
{
    static float memory[WORLD_RANKS][2][5000];
    float(*own)[5000] = memory[rondo_comm_rank(comm)];
    rondo_result result = rondo_group_start(), ended;

    own[0][0] = 1;
    own[1][0] = 1;
    rondo_all_reduce(own[0], own[0], 5000, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    rondo_all_reduce(own[1], own[1], 5000, RONDO_FLOAT32, RONDO_SUM, other, NULL);
    rondo_broadcast(own[0], own[0], 3000, RONDO_FLOAT32, 0, comm, NULL);
    result = rondo_group_estimate(ret);
    if (!result && own[0][0] != 1)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "a call was made");
    ended = rondo_group_end();
    if (!result && !ended && own[0][0] != (float)rondo_comm_size(comm))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "the group was not run");
    return result ? result : ended;
}

rondo_result estimates_of_groups_add_up(rondo_comm *comm, void *argument, char *sentence)
{
    double reduce, broadcast, group = 0;
    rondo_comm *other = NULL;
    rondo_result result = rondo_comm_dup(comm, &other);

    (void)argument;
    if (!result)
        result = ask(comm, RONDO_ALL_REDUCE, 5000, &reduce, sentence);
    if (!result)
        result = ask(comm, RONDO_BROADCAST, 3000, &broadcast, sentence);
    if (!result)
        result = group_of_three(comm, other, &group, sentence);
    if (!result)
        result = is_close(group, reduce + broadcast, "a group", sentence);
    rondo_comm_close(other);
    return result;
}

static rondo_result refused(rondo_comm *comm, const rondo_call *call, const char *words,
                            char *sentence)
{
    double microseconds = -7;
    rondo_result result = rondo_estimate(call, &microseconds);

    if (result == RONDO_OK || microseconds != -7)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "taken: what is \"%s\"", words);
    if (!strstr(rondo_last_error(comm), words))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "no \"%s\" in: %s", words,
                         rondo_last_error(comm));
    return RONDO_OK;
}

rondo_result estimates_refuse_mistakes(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_call root = call_of(comm, RONDO_BROADCAST, 1), algorithm = root, size = root;
    double microseconds;
    rondo_result result;

    (void)argument;
    root.root = 99;
    algorithm.algorithm = "no such";
    size.struct_size = 8;
    result = refused(comm, &root, "the root is 99", sentence);
    if (!result)
        result = refused(comm, &algorithm, "no such", sentence);
    if (!result)
        result = refused(NULL, &size, "struct_size", sentence);
    if (!result && rondo_group_estimate(&microseconds) != RONDO_ERROR_INVALID)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "there is no group");
    return result ? result : bodies_all_reduce(comm, 10, sentence);
}

rondo_result estimates_tell(rondo_comm *comm, void *argument, char *sentence)
{
    double microseconds = 0;
    rondo_result result = ask(comm, RONDO_ALL_REDUCE, 1000000, &microseconds, sentence);

    if (!rondo_comm_rank(comm))
        *(double *)argument = microseconds;
    return result;
}
