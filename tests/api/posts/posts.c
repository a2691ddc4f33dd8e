/* SPDX-License-Identifier: BSD-3-Clause */
/* posts.c - calls that are posted, and finished later. */
#include "tests/api/posts/posts.h"

#include "rondo/bindings.h"
#include "tests/api/values/matrix.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

rondo_result posts_give_what_calls_give(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_result result = RONDO_OK;

    (void)argument;
    for (int i = 0; i < (RONDO_BARRIER + 1) * COUNT_4099 * CASE_WAYS && !result; i++) {
        const struct test_case test = {
            .form = {(rondo_collective)(i % (RONDO_BARRIER + 1)), "auto"},
            .way = (enum case_way)(i / (RONDO_BARRIER + 1) % CASE_WAYS),
            .count = (enum case_count)(i / (RONDO_BARRIER + 1) / CASE_WAYS),
            .size = rondo_comm_size(comm),
            .type = i % 2 ? RONDO_INT16 : RONDO_FLOAT32,
            .op = RONDO_SUM,
            .in_place = i % 3 == 0,
            .unaligned = i % 5 == 0,
            .root = (enum case_root)(i % CASE_ROOTS),
            .small_slots = true,
        };

        result = matrix_call(&test, comm, sentence);
    }
    return result;
}

static rondo_call sum_of(int32_t *value, rondo_comm *comm)
{
    return (rondo_call){.struct_size = sizeof(rondo_call),
                        .collective = RONDO_ALL_REDUCE,
                        .type = RONDO_INT32,
                        .op = RONDO_SUM,
                        .input = value,
                        .output = value,
                        .count = 1,
                        .comm = comm};
}

struct waiting {
    pthread_t thread;
    rondo_request *request;
    rondo_result result;
};

static void *wait_for(void *argument)
{
    struct waiting *self = argument;

    do
        self->result = rondo_request_wait(self->request, 0.001);
    while (self->result == RONDO_IN_PROGRESS);
    return NULL;
}

rondo_result posts_are_waited_for_by_several_threads(rondo_comm *comm, void *argument,
                                                     char *sentence)
{
    enum { THREADS = 3, ROUNDS = 20 };
    int size = rondo_comm_size(comm);
    rondo_result result = RONDO_OK;

    (void)argument;
    for (int i = 0; i < ROUNDS && !result; i++) {
        int32_t posted = 1, called = 2;
        rondo_call call = sum_of(&posted, comm);
        struct waiting waiting[THREADS];
        rondo_request *request = NULL;
        int threads = 0;

        result = rondo_collective_post(&call, &request);
        if (result == RONDO_IN_PROGRESS)
            result = rondo_collective_call(&call);
        for (; threads < THREADS && request; threads++) {
            waiting[threads].request = request;
            if (pthread_create(&waiting[threads].thread, NULL, wait_for, &waiting[threads]))
                break;
        }
        if (!result) /* this thread finishes it, or one of the others */
            result = rondo_all_reduce(&called, &called, 1, RONDO_INT32, RONDO_SUM, comm, NULL);
        for (int t = 0; t < threads; t++) {
            pthread_join(waiting[t].thread, NULL);
            result = result ? result : waiting[t].result;
        }
        rondo_request_close(request);
        if (result)
            return world_say(sentence, result, "%s", rondo_last_error(comm));
        if (posted != size || called != 2 * size)
            return world_say(sentence, RONDO_ERROR_INTERNAL, "%d and %d on %d ranks", (int)posted,
                             (int)called, size);
    }
    return result;
}

/* The last rank dies; the others have posted, and wait. */
rondo_result posts_lose_a_rank(rondo_comm *comm, void *argument, char *sentence)
{
    int rank = rondo_comm_rank(comm), last = rondo_comm_size(comm) - 1;
    int32_t value = 1;
    rondo_call call = sum_of(&value, comm);
    rondo_request *request = NULL;
    rondo_result result;

    (void)argument;
    if (rank == last) {
        for (int other = 0; other < last; other++)
            world_await_rank(other);
        kill(getpid(), SIGKILL);
    }
    result = rondo_collective_post(&call, &request);
    if (result || !request)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "it was not posted: %d", (int)result);
    world_will_wait(rank);
    result = rondo_request_wait(request, -1);
    world_say(sentence, result, "%s", rondo_last_error(NULL));
    rondo_request_close(request);
    return result;
}
