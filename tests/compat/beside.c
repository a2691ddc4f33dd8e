/* SPDX-License-Identifier: BSD-3-Clause */
/* beside.c - making a communicator out of one while another thread does so as well. */
#include "bodies.h"

#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* Returns when rank 0, or so many ranks, have come as far. */
static void await(const atomic_int *arrived, int count)
{
    /* Acquire, pairs with the release in arrive(). */
    while (atomic_load_explicit(arrived, memory_order_acquire) < count)
        client_sleep(1);
}

static void arrive(atomic_int *arrived)
{
    atomic_fetch_add_explicit(arrived, 1, memory_order_release);
}

/* A call that another thread of the rank makes. */
struct splitter {
    ncclComm_t comm, part;
    int excluded; /* a rank that a shrink goes on without; -1: it is a split */
    bool blocks;
    ncclResult_t result;
    _Atomic pid_t thread;
    pthread_t handle;
};

static void *split(void *argument)
{
    struct splitter *splitter = argument;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.blocking = splitter->blocks;
    /* Release, pairs with world_await_told(). */
    atomic_store_explicit(&splitter->thread, gettid(), memory_order_release);
    splitter->result = splitter->excluded < 0
                           ? ncclCommSplit(splitter->comm, 0, 0, &splitter->part, &config)
                           : ncclCommShrink(splitter->comm, &splitter->excluded, 1, &splitter->part,
                                            &config, NCCL_SHRINK_DEFAULT);
    return NULL;
}

/* Returns when it waits for other ranks. */
static void start(struct splitter *splitter)
{
    pthread_create(&splitter->handle, NULL, split, splitter);
    if (splitter->blocks)
        world_await_told(&splitter->thread);
    else
        pthread_join(splitter->handle, NULL);
}

static bool use(struct client *client, ncclComm_t comm)
{
    return sums_up(client, comm) && client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy");
}

/* ---- A shrink and a split -------------------------------------------------------------------- */

static ncclResult_t shrink(const struct client *client, ncclComm_t *ret_rest, int flags,
                           bool grouped)
{
    int last = client->size - 1;
    ncclResult_t result;

    if (grouped)
        ncclGroupStart();
    result = ncclCommShrink(client->comm, &last, 1, ret_rest, NULL, flags);
    return grouped ? ncclGroupEnd() : result;
}

/* The split's client, who waits for its end or asks for it, hears of the end. */
static bool has_ended(struct client *client, struct splitter *splitter)
{
    ncclResult_t result;

    if (splitter->blocks)
        pthread_join(splitter->handle, NULL);
    result = splitter->blocks ? splitter->result : client_poll(splitter->part);
    if (result != ncclRemoteError)
        return client_say(client, "the split that hung gave %d", (int)result);
    client_poll(client->comm);
    return splitter->blocks || client_ok(client, ncclCommAbort(splitter->part), "ncclCommAbort");
}

/* The last rank does not split, and rank 0 alone shrinks without a split of its own. */
bool beside_a_split_that_hangs(struct client *client)
{
    struct hang *hang = client->argument;
    struct splitter splitter = {.comm = client->comm, .blocks = hang->blocks, .excluded = -1};
    bool splits = client->rank > 0;
    ncclComm_t rest = NULL;
    bool fine = true;

    alarm(100); /* RONDO_TIMEOUT is 300 */
    if (client->rank == client->size - 1) {
        await(&hang->arrived, client->size - 1);
        return true;
    }
    if (splits) {
        start(&splitter);
        fine = client_refused(client, shrink(client, &rest, NCCL_SHRINK_DEFAULT, false),
                              hang->blocks ? ncclInvalidUsage : ncclInvalidArgument,
                              hang->blocks ? "NCCL_SHRINK_ABORT" : "not ready");
    }
    fine = client_ok(client, shrink(client, &rest, NCCL_SHRINK_ABORT, hang->grouped),
                     "ncclCommShrink beside a split") &&
           (!splits || has_ended(client, &splitter)) && fine;
    arrive(&hang->arrived);
    await(&hang->arrived, client->size - 1); /* a rank that leaves would end splits, too */
    fine = client_ok(client, ncclCommAbort(client->comm), "ncclCommAbort") && fine;
    client->comm = rest;
    return fine && sums_up(client, rest);
}

/* ---- Calls that are refused ------------------------------------------------------------------ */

/* Rank 0 has been asked for an id, which a growth that is refused does not take. */
static bool keep_an_id(struct client *client)
{
    ncclComm_t grown = NULL;
    ncclUniqueId id;

    return client_ok(client, ncclCommGetUniqueId(client->comm, &id), "ncclCommGetUniqueId") &&
           client_refused(client,
                          ncclCommGrow(client->comm, client->size + 1, NULL, -1, &grown, NULL),
                          ncclInvalidUsage, "Another thread makes") &&
           client_refused(client, ncclCommGetUniqueId(client->comm, &id), ncclInvalidUsage,
                          "was not used");
}

static bool keep_calls(struct client *client)
{
    ncclComm_t rest = NULL;

    return client_refused(client, shrink(client, &rest, NCCL_SHRINK_ABORT, false), ncclInvalidUsage,
                          "Another thread makes") &&
           (!rest || client_say(client, "a communicator of a call that was refused"));
}

/* Makes a communicator, where a second thread of rank 0 is refused before the others come. */
static bool make_beside(struct client *client, int excluded, bool (*is_refused)(struct client *),
                        atomic_int *arrived, int count)
{
    struct splitter splitter = {.comm = client->comm, .blocks = true, .excluded = excluded};
    bool fine = true;

    if (client->rank == excluded)
        return true;
    if (client->rank)
        await(arrived, count);
    start(&splitter);
    if (!client->rank) {
        fine = is_refused(client);
        arrive(arrived);
    }
    pthread_join(splitter.handle, NULL);
    return fine && client_ok(client, splitter.result, "the first call") &&
           use(client, splitter.part);
}

bool beside_refused_calls_do_nothing(struct client *client)
{
    alarm(100); /* RONDO_TIMEOUT is 300 */
    return make_beside(client, -1, keep_an_id, client->argument, 1) &&
           make_beside(client, client->size - 1, keep_calls, client->argument, 2) &&
           sums_up(client, client->comm);
}

/* The second thread, with a group that was open before, comes while the split waits for rank 1. */
static bool split_from_two_threads(struct client *client, struct splitter *splitter)
{
    ncclComm_t late = NULL;
    bool fine = client_ok(client, ncclGroupStart(), "ncclGroupStart") &&
                client_ok(client, ncclCommSplit(client->comm, 0, 0, &late, NULL), "ncclCommSplit");

    start(splitter);
    return client_refused(client, ncclGroupEnd(), ncclInvalidUsage, "Another thread makes") &&
           fine && (!late || client_say(client, "a part of a call that was refused"));
}

bool beside_another_split(struct client *client)
{
    struct splitter splitter = {.comm = client->comm, .excluded = -1};
    atomic_int *refused = client->argument;
    ncclComm_t next = NULL;
    bool fine = true;

    alarm(100); /* RONDO_TIMEOUT is 300 */
    if (client->rank) {
        await(refused, 1);
        start(&splitter);
    } else {
        fine = split_from_two_threads(client, &splitter);
        arrive(refused);
    }
    return fine && client_refused(client, splitter.result, ncclInProgress, "") &&
           client_ok(client, client_poll(client->comm), "the parent") &&
           client_ok(client, client_poll(splitter.part), "the part") &&
           use(client, splitter.part) &&
           client_ok(client, ncclCommSplit(client->comm, 0, 0, &next, NULL), "the next split") &&
           use(client, next);
}
