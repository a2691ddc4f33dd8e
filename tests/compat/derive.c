/* SPDX-License-Identifier: BSD-3-Clause */
/* derive.c - communicators that come of others, also of those that are past use. */
#include "bodies.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool destroy(struct client *client, ncclComm_t comm)
{
    return client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy of the new one");
}

/* Evens and odds in reverse order, without rank 0, and a part of a part. */
bool derive_split(struct client *client)
{
    ncclComm_t part = (ncclComm_t)client;
    ncclComm_t half = NULL;
    int color = client->rank ? client->rank % 2 : NCCL_SPLIT_NOCOLOR;
    int rank = -1;
    bool fine = client_ok(client, ncclCommSplit(client->comm, color, -client->rank, &part, NULL),
                          "ncclCommSplit");

    if (!fine || !client->rank)
        return fine && (!part || client_say(client, "a part for a rank without a color"));
    fine = client_ok(client, ncclCommUserRank(part, &rank), "ncclCommUserRank");
    if (fine && rank != (client->size - 1 - client->rank) / 2)
        fine = client_say(client, "rank %d of %d is rank %d in its part", client->rank,
                          client->size, rank);
    fine = fine && sums_up(client, part) &&
           client_ok(client, ncclCommSplit(part, 0, 0, &half, NULL), "ncclCommSplit of a part") &&
           sums_up(client, half) && destroy(client, half);
    return destroy(client, part) && fine;
}

bool derive_shrink(struct client *client)
{
    int excluded[] = {client->size - 1, 0};
    ncclComm_t rest = NULL;
    int count = 0;
    bool fine = true;

    if (client->rank == 0 || client->rank == client->size - 1)
        fine = client_refused(client, ncclCommShrink(client->comm, excluded, 2, &rest, NULL, 0),
                              ncclInvalidArgument, "is the caller");
    else
        fine = client_ok(client, ncclCommShrink(client->comm, excluded, 2, &rest, NULL, 0),
                         "ncclCommShrink") &&
               client_ok(client, ncclCommCount(rest, &count), "ncclCommCount") &&
               (count == client->size - 2 || client_say(client, "%d ranks are left", count)) &&
               sums_up(client, rest);
    /* The old one is as good as before. The new one is destroyed when nobody waits for anybody, as
     * that frees memory, which waits for the device. */
    fine = fine && sums_up(client, client->comm);
    return (!rest || destroy(client, rest)) && fine;
}

/* The call fails at once, or, on a stream, later. */
static bool wait_for_failure(struct client *client, ncclResult_t result)
{
    for (int i = 0; i < 2000 && result == ncclSuccess; i++) {
        client_sleep(5);
        ncclCommGetAsyncError(client->comm, &result);
    }
    return client_refused(client, result, ncclRemoteError, "");
}

static bool go_on_without(struct client *client, const int *missing, int count)
{
    int excluded[CLIENT_RANKS];
    ncclResult_t state = ncclInternalError;
    ncclComm_t rest = NULL;
    bool fine;

    memcpy(excluded, missing, (size_t)count * sizeof(int));
    fine = client_ok(client,
                     ncclCommShrink(client->comm, excluded, count, &rest, NULL, NCCL_SHRINK_ABORT),
                     "ncclCommShrink after an abort") &&
           client_ok(client, ncclCommGetAsyncError(client->comm, &state), "asking") &&
           client_ok(client, state, "what was ended for a new communicator");
    fine = client_ok(client, ncclCommAbort(client->comm), "ncclCommAbort") && fine;
    client->comm = rest;
    return fine && sums_up(client, rest);
}

/* Makes calls until the dead rank is missed in one. */
static bool miss_one(struct client *client)
{
    int *memory = client_alloc(1000 * sizeof(int));
    ncclResult_t result;

    result = ncclAllReduce(memory, memory, 1000, ncclInt32, ncclSum, client->comm, client->stream);
    if (!wait_for_failure(client, result))
        return client_say(client, "nobody noticed a dead rank");
    client_wait(client->stream);
    client_free(memory);
    return true;
}

bool derive_shrink_after_a_death(struct client *client)
{
    const int dead = 1;

    if (client->rank == dead)
        _exit(0);
    return miss_one(client) && go_on_without(client, &dead, 1);
}

/* Joins without blocking; true when all ranks have. */
static bool join_all(struct client *client)
{
    atomic_int *joined = client->argument;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.blocking = 0;
    if (!client_refused(
            client,
            ncclCommInitRankConfig(&client->comm, client->size, client->id, client->rank, &config),
            ncclInProgress, "") ||
        !client_ok(client, client_poll(client->comm), "joining"))
        return false;
    atomic_fetch_add_explicit(joined, 1, memory_order_release);
    while (atomic_load_explicit(joined, memory_order_acquire) < client->size)
        client_sleep(1);
    return true;
}

/* The last rank dies, so a split fails for rank 0, which was to be in the part, and for rank 1,
 * which was not. Nothing blocks. */
bool derive_shrink_after_a_failed_split(struct client *client)
{
    int dead = client->size - 1, color = client->rank ? NCCL_SPLIT_NOCOLOR : 0;
    ncclComm_t part = NULL, rest = NULL;
    bool fine = join_all(client);

    if (client->rank == dead)
        _exit(0);
    fine = fine &&
           client_refused(client, ncclCommSplit(client->comm, color, 0, &part, NULL),
                          ncclInProgress, "") &&
           client_refused(client, client_poll(part ? part : client->comm), ncclRemoteError, "") &&
           (client->rank || client_ok(client, ncclCommAbort(part), "ncclCommAbort of the part")) &&
           client_refused(client, ncclCommShrink(client->comm, &dead, 1, &rest, NULL, 0),
                          ncclInProgress, "") &&
           client_ok(client, client_poll(client->comm), "shrinking") &&
           client_ok(client, client_poll(rest), "the rest") && sums_up(client, rest);
    fine = client_ok(client, ncclCommAbort(client->comm), "ncclCommAbort") && fine;
    client->comm = rest;
    return fine;
}

/* The second to die does so when all others wait in their shrinking, or they wait for its end. */
static void await_second_death(struct client *client, struct deaths *deaths)
{
    for (int rank = 0; rank < client->size; rank++) {
        bool second = rank == deaths->second;
        pid_t process;

        if (rank == 1 || rank == client->rank || second == deaths->in_shrink)
            continue;
        /* Acquire, pairs with the release of that rank, which has missed the first. */
        while (!(process = atomic_load_explicit(&deaths->processes[rank], memory_order_acquire)))
            client_sleep(1);
        while (client_await_wait(process) && second)
            continue;
    }
}

/* Rank 1 dies; the others shrink, but for one that dies on its way there. The rest hear of that
 * long before the time that a rank may be silent is over, and shrink once more. */
bool derive_shrink_after_two_deaths(struct client *client)
{
    struct deaths *deaths = client->argument;
    int dead[] = {1, deaths->second};
    ncclComm_t rest = NULL;
    char words[32];
    bool fine;

    alarm(100); /* RONDO_TIMEOUT is 300 */
    if (client->rank == dead[0])
        raise(SIGKILL);
    if (!miss_one(client))
        return false;
    atomic_store_explicit(&deaths->processes[client->rank], getpid(), memory_order_release);
    if (deaths->in_shrink == (client->rank == dead[1]))
        await_second_death(client, deaths);
    if (client->rank == dead[1])
        raise(SIGKILL);
    snprintf(words, sizeof(words), " rank %d (", dead[1]);
    fine = client_refused(client, ncclCommShrink(client->comm, dead, 1, &rest, NULL, 0),
                          ncclRemoteError, words);
    if (fine && !strstr(ncclGetLastError(client->comm), words))
        fine = client_say(client, "the old communicator says: %s", ncclGetLastError(client->comm));
    return go_on_without(client, dead, 2) && fine;
}

struct flight {
    struct client *client;
    void *memory;
    ncclResult_t result;
    _Atomic pid_t thread; /* 0: it is not there yet */
};

static void *fly(void *argument)
{
    struct flight *flight = argument;
    struct client *client = flight->client;
    cudaStream_t stream = client_open_stream();

    /* Release, pairs with the acquire of who waits for it. */
    atomic_store_explicit(&flight->thread, gettid(), memory_order_release);
    flight->result = ncclAllReduce(flight->memory, flight->memory, 1000, ncclInt32, ncclSum,
                                   client->comm, stream);
    client_wait(stream);
    client_close_stream(stream);
    return NULL;
}

/* The last rank does not call, so the others wait for it, and shrink. */
bool derive_shrink_in_mid_flight(struct client *client)
{
    atomic_int *left = client->argument;
    struct flight flight = {.client = client, .memory = client_alloc(4000)};
    int last = client->size - 1;
    pthread_t thread;
    bool fine;

    if (client->rank == last) {
        /* Acquire, pairs with the release of those who went on. */
        while (atomic_load_explicit(left, memory_order_acquire) < last)
            client_sleep(1);
        client_free(flight.memory);
        return true;
    }
    pthread_create(&thread, NULL, fly, &flight);
    while (!atomic_load_explicit(&flight.thread, memory_order_acquire))
        client_sleep(1);
    client_await_wait(flight.thread);
    fine = go_on_without(client, &last, 1);
    pthread_join(thread, NULL);
    client_free(flight.memory);
    atomic_fetch_add_explicit(left, 1, memory_order_release);
    if (!client_on_device() && flight.result != ncclRemoteError)
        fine = client_say(client, "the call in flight gave %d", (int)flight.result);
    return fine;
}

bool derive_revoke(struct client *client)
{
    atomic_int *summed = client->argument;
    ncclComm_t part = NULL;
    ncclResult_t state = ncclInternalError;
    char byte = 0;
    bool fine = sums_up(client, client->comm);

    /* It stops what is in flight on peers, too. */
    atomic_fetch_add_explicit(summed, 1, memory_order_release);
    while (fine && atomic_load_explicit(summed, memory_order_acquire) < client->size)
        client_sleep(1);
    fine =
        fine && client_ok(client, ncclCommRevoke(client->comm, 0), "ncclCommRevoke") &&
        client_ok(client, ncclCommGetAsyncError(client->comm, &state), "the state") &&
        (state == ncclSuccess || client_say(client, "the state is %d", (int)state)) &&
        client_refused(
            client, ncclAllReduce(&byte, &byte, 1, ncclInt8, ncclSum, client->comm, client->stream),
            ncclInvalidUsage, "revoked") &&
        client_refused(client, ncclCommFinalize(client->comm), ncclInvalidUsage, "revoked");
    return fine &&
           client_ok(client, ncclCommSplit(client->comm, 0, 0, &part, NULL), "ncclCommSplit") &&
           sums_up(client, part) && destroy(client, part);
}

struct growth {
    ncclUniqueId id;
    atomic_int there;
};

static bool grow_old(struct client *client, struct growth *growth, ncclComm_t *grown)
{
    int before = client->size - 2;
    bool fine = client_ok(client, ncclCommInitRank(&client->comm, before, client->id, client->rank),
                          "ncclCommInitRank of the small one");

    if (fine && client->rank == 0) {
        fine = client_ok(client, ncclCommGetUniqueId(client->comm, &growth->id), "the new id");
        atomic_store_explicit(&growth->there, 1, memory_order_release);
    }
    return fine &&
           client_ok(client, ncclCommGrow(client->comm, client->size, NULL, -1, grown, NULL),
                     "ncclCommGrow of an old rank");
}

/* Two ranks come to the others. */
bool derive_grow(struct client *client)
{
    struct growth *growth = client->argument;
    ncclComm_t grown = NULL;
    bool fine;

    if (client->rank < client->size - 2) {
        fine = grow_old(client, growth, &grown);
    } else {
        /* Acquire, pairs with the release in grow_old(). */
        while (!atomic_load_explicit(&growth->there, memory_order_acquire))
            client_sleep(1);
        fine = client_ok(client,
                         ncclCommGrow(NULL, client->size, &growth->id, client->rank, &grown, NULL),
                         "ncclCommGrow of a new rank");
    }
    return fine && sums_up(client, grown) &&
           (!client->comm || sums_up(client, client->comm)) && /* the old one is as it was */
           destroy(client, grown);
}
