/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.c - joining without waiting, and leaving while others wait. */
#include "bodies.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Rank 0 comes when the others have seen what it is like to be in progress. */
bool ends_join_in_the_background(struct client *client)
{
    atomic_int *seen = client->argument;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t part = NULL;
    ncclResult_t state = ncclSuccess;
    char byte = 0;
    bool fine;

    config.blocking = 0;
    /* Acquire, pairs with the release of those who have seen it. */
    while (!client->rank && atomic_load_explicit(seen, memory_order_acquire) < client->size - 1)
        client_sleep(1);
    fine = client_refused(
        client,
        ncclCommInitRankConfig(&client->comm, client->size, client->id, client->rank, &config),
        ncclInProgress, "");
    if (fine && client->rank)
        fine = client_ok(client, ncclCommGetAsyncError(client->comm, &state), "the state") &&
               (state == ncclInProgress || client_say(client, "the state is %d", (int)state)) &&
               client_refused(
                   client,
                   ncclAllReduce(&byte, &byte, 1, ncclInt8, ncclSum, client->comm, client->stream),
                   ncclInvalidArgument, "not ready");
    if (client->rank)
        atomic_fetch_add_explicit(seen, 1, memory_order_release);
    fine = fine && client_ok(client, client_poll(client->comm), "joining") &&
           sums_up(client, client->comm);
    /* a part inherits it, and the parent is busy meanwhile */
    fine = fine && client_refused(client, ncclCommSplit(client->comm, 0, 0, &part, NULL),
                                  ncclInProgress, "");
    return fine && client_ok(client, client_poll(client->comm), "splitting") &&
           client_ok(client, client_poll(part), "the part") && sums_up(client, part) &&
           client_ok(client, ncclCommFinalize(part), "ncclCommFinalize") &&
           client_ok(client, client_poll(part), "finalizing") &&
           client_ok(client, ncclCommDestroy(part), "ncclCommDestroy");
}

/* The other rank never comes. */
bool ends_abort_a_join(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    const pid_t self = getpid();
    ncclComm_t comm = NULL;
    int count = 0;
    bool fine;

    config.blocking = 0;
    fine =
        client_refused(client, ncclCommInitRankConfig(&comm, 2, client->id, client->rank, &config),
                       ncclInProgress, "");
    world_await_quiet(&self, 1);
    return fine &&
           client_refused(client, ncclCommCount(comm, &count), ncclInvalidArgument, "not ready") &&
           client_refused(client, ncclCommDestroy(comm), ncclInvalidArgument, "not ready") &&
           client_ok(client, ncclCommAbort(comm), "ncclCommAbort");
}

struct joiner {
    struct client *client;
    ncclComm_t comm;
    ncclResult_t result;
};

static void *join_and_block(void *argument)
{
    struct joiner *joiner = argument;
    const struct client *client = joiner->client;

    joiner->result = ncclCommInitRank(&joiner->comm, client->size, client->id, client->rank);
    return NULL;
}

/* Rank 1 comes when rank 0 has been aborted, by a second thread. */
bool ends_abort_a_join_that_blocks(struct client *client)
{
    atomic_int *aborted = client->argument;
    struct joiner joiner = {.client = client};
    ncclComm_t comm = NULL;
    pthread_t thread;
    bool fine;

    if (client->rank) {
        /* Acquire, pairs with the release of who has aborted. */
        while (!atomic_load_explicit(aborted, memory_order_acquire))
            client_sleep(1);
        return client_refused(client,
                              ncclCommInitRank(&comm, client->size, client->id, client->rank),
                              ncclRemoteError, "Rank 0");
    }
    pthread_create(&thread, NULL, join_and_block, &joiner);
    while (!(comm = __atomic_load_n(&joiner.comm, __ATOMIC_ACQUIRE)))
        client_sleep(1);
    fine = client_ok(client, ncclCommAbort(comm), "ncclCommAbort");
    atomic_store_explicit(aborted, 1, memory_order_release);
    pthread_join(thread, NULL);
    return fine && (joiner.result == ncclRemoteError ||
                    client_say(client, "the join gave %d", (int)joiner.result));
}

static atomic_int joins; /* of any threads, by this process */

/* The library's calls come here, too. */
__attribute__((visibility("default"))) int pthread_join(pthread_t thread, void **ret_value)
{
    int (*next)(pthread_t, void **);

    *(void **)&next = dlsym(RTLD_NEXT, "pthread_join");
    atomic_fetch_add_explicit(&joins, 1, memory_order_relaxed);
    return next(thread, ret_value);
}

struct late_start {
    void *(*run)(void *);
    void *argument;
};

static atomic_bool starts_late; /* the next thread of this process */

static void *run_late(void *argument)
{
    struct late_start start = *(struct late_start *)argument;

    free(argument);
    client_sleep(200);
    return start.run(start.argument);
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *ret_thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*run)(void *), void *argument)
{
    int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    struct late_start *late = NULL;

    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    if (atomic_exchange_explicit(&starts_late, false, memory_order_relaxed))
        late = malloc(sizeof(*late));
    if (!late)
        return next(ret_thread, attributes, run, argument);
    *late = (struct late_start){run, argument};
    return next(ret_thread, attributes, run_late, late);
}

/* The threads of odd ranks come to the first split late. Halves, and all in reverse order. The
 * argument says of each whether it blocks. */
bool ends_split_twice_in_a_group(struct client *client)
{
    const int *blocking = client->argument;
    ncclConfig_t configs[2] = {NCCL_CONFIG_INITIALIZER, NCCL_CONFIG_INITIALIZER};
    ncclComm_t half = NULL, turned = NULL;
    int counts[2] = {0, 0}, rank = -1;
    bool fine;

    configs[0].blocking = blocking[0];
    configs[1].blocking = blocking[1];
    fine = client_ok(client, ncclGroupStart(), "ncclGroupStart") &&
           client_ok(client, ncclCommSplit(client->comm, client->rank % 2, 0, &half, &configs[0]),
                     "the first ncclCommSplit") &&
           client_ok(client, ncclCommSplit(client->comm, 2, -client->rank, &turned, &configs[1]),
                     "the second ncclCommSplit");
    atomic_store_explicit(&starts_late, client->rank % 2, memory_order_relaxed);
    fine = fine &&
           client_refused(client, ncclGroupEnd(),
                          blocking[0] || blocking[1] ? ncclSuccess : ncclInProgress, "") &&
           client_ok(client, client_poll(client->comm), "the parent") &&
           client_ok(client, client_poll(half), "the first part") &&
           client_ok(client, client_poll(turned), "the second part") &&
           client_ok(client, ncclCommCount(half, &counts[0]), "ncclCommCount") &&
           client_ok(client, ncclCommCount(turned, &counts[1]), "ncclCommCount") &&
           client_ok(client, ncclCommUserRank(turned, &rank), "ncclCommUserRank");
    if (fine && (counts[0] != client->size / 2 || counts[1] != client->size ||
                 rank != client->size - 1 - client->rank))
        fine = client_say(client, "parts of %d and %d ranks, rank %d of the second", counts[0],
                          counts[1], rank);
    return fine && sums_up(client, half) && sums_up(client, turned) &&
           client_ok(client, ncclCommDestroy(half), "ncclCommDestroy") &&
           client_ok(client, ncclCommDestroy(turned), "ncclCommDestroy");
}

/* Makes a communicator of this rank alone, in the background. */
static bool join_alone(struct client *client, ncclComm_t *ret_comm)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;

    config.blocking = 0;
    return client_ok(client, ncclGetUniqueId(&id), "ncclGetUniqueId") &&
           client_refused(client, ncclCommInitRankConfig(ret_comm, 1, id, 0, &config),
                          ncclInProgress, "") &&
           client_ok(client, client_poll(*ret_comm), "joining");
}

/* Splits it, which takes a thread, and destroys the part as soon as that is possible. */
static bool split_and_destroy(struct client *client, ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;
    ncclComm_t part = NULL;
    bool fine = client_refused(client, ncclCommSplit(comm, 0, 0, &part, NULL), ncclInProgress, "");

    while (fine && state == ncclInProgress)
        fine = client_ok(client, ncclCommGetAsyncError(part, &state), "asking");
    return fine && client_ok(client, state, "splitting") &&
           client_ok(client, ncclCommDestroy(part), "ncclCommDestroy");
}

bool ends_leave_no_thread(struct client *client)
{
    enum { ROUNDS = 50 };
    ncclComm_t comm = NULL;
    bool fine = join_alone(client, &comm);

    for (int i = 0; i < ROUNDS && fine; i++) {
        int before = atomic_load_explicit(&joins, memory_order_relaxed);

        fine = split_and_destroy(client, comm) &&
               (atomic_load_explicit(&joins, memory_order_relaxed) > before ||
                client_say(client, "the thread of round %d was not joined", i)) &&
               client_ok(client, client_poll(comm), "the parent");
    }
    return client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy") && fine;
}

/* Two lines for the stack of each thread that has not been joined. */
static int count_mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    int count = 0;

    for (int c; file && (c = getc(file)) != EOF;)
        count += c == '\n';
    if (file)
        fclose(file);
    return count;
}

/* Splits without a color have no communicator to join their threads: the next split does. */
bool ends_keep_no_stacks(struct client *client)
{
    enum { ROUNDS = 200 };
    ncclComm_t comm = NULL, part = NULL;
    bool fine = join_alone(client, &comm);
    int before = count_mappings();

    for (int i = 0; i < ROUNDS && fine; i++)
        fine = client_refused(client, ncclCommSplit(comm, NCCL_SPLIT_NOCOLOR, 0, &part, NULL),
                              ncclInProgress, "") &&
               client_ok(client, client_poll(comm), "splitting");
    if (fine && count_mappings() - before > ROUNDS)
        fine = client_say(client, "%d splits leave %d mappings", ROUNDS, count_mappings() - before);
    return client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy") && fine;
}

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *entry;
    int count = 0;

    while (folder && (entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    if (folder)
        closedir(folder);
    return count;
}

/* The client has left when the group, at its end, starts the thread: it frees what it has made. */
bool ends_abort_before_a_join(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    int before = count_threads();
    ncclUniqueId id;
    ncclComm_t comm = NULL;
    bool fine;

    config.blocking = 0;
    fine = client_ok(client, ncclGetUniqueId(&id), "ncclGetUniqueId") &&
           client_ok(client, ncclGroupStart(), "ncclGroupStart");
    ncclCommInitRankConfig(&comm, 1, id, 0, &config);
    fine = fine && client_ok(client, ncclCommAbort(comm), "ncclCommAbort") &&
           client_refused(client, ncclGroupEnd(), ncclInProgress, "");
    /* A driver has threads of its own, which stay. */
    while (!client_on_device() && count_threads() > before)
        client_sleep(1);
    return fine;
}

/* The group frees what the client has left, be it run or, after an error, dropped. */
bool ends_abort_in_groups(struct client *client)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    bool fine = true;

    config.blocking = 0;
    for (int round = 0; round < 4 && fine; round++) {
        bool spoiled = round % 2;
        ncclComm_t comm = NULL;
        ncclUniqueId id;

        fine = client_ok(client, ncclGetUniqueId(&id), "ncclGetUniqueId") &&
               client_ok(client, ncclGroupStart(), "ncclGroupStart");
        ncclCommInitRankConfig(&comm, 1, id, 0, round < 2 ? NULL : &config);
        if (spoiled)
            ncclAllReduce(&fine, &fine, 1, ncclInt8, ncclSum, NULL, client->stream);
        fine = fine && client_ok(client, ncclCommAbort(comm), "ncclCommAbort");
        if (ncclGroupEnd() != ncclInvalidArgument && spoiled)
            fine = client_say(client, "round %d is not spoiled", round);
    }
    return fine;
}

bool ends_ask_after_the_end(struct client *client)
{
    ncclComm_t comm = NULL, never = (ncclComm_t)client;
    bool fine = join_alone(client, &comm) &&
                client_refused(client, ncclCommSplit(comm, -7, 0, &never, NULL),
                               ncclInvalidArgument, "color is -7") &&
                client_ok(client, ncclCommDestroy(comm), "ncclCommDestroy");

    if (fine && (!strstr(ncclGetLastError(comm), "-7") ||
                 !strstr(ncclGetLastError((ncclComm_t)client), "-7")))
        fine = client_say(client, "the last error was %s", ncclGetLastError(comm));
    return fine;
}

struct watchdog {
    ncclComm_t comm;
    pid_t watched;
};

static void *abort_a_wait(void *argument)
{
    struct watchdog *watchdog = argument;

    client_await_wait(watchdog->watched);
    ncclCommAbort(watchdog->comm);
    return NULL;
}

static bool aborts(struct client *client, void *memory)
{
    struct watchdog watchdog = {client->comm, gettid()};
    ncclResult_t result;
    pthread_t thread;
    bool ended;

    pthread_create(&thread, NULL, abort_a_wait, &watchdog);
    result = ncclAllReduce(memory, memory, 1000, ncclInt32, ncclSum, client->comm, client->stream);
    ended = client_wait(client->stream);
    pthread_join(thread, NULL);
    client->comm = NULL;
    if (client_on_device() ? !ended || result : result != ncclRemoteError)
        return client_say(client, "the aborted call gave %d, the stream %d", (int)result, ended);
    return true;
}

/* The last rank does not call; rank 0 is aborted by a watchdog, and everybody hears of it. */
bool ends_abort_in_mid_flight(struct client *client)
{
    void *memory = client_alloc(4000);
    ncclResult_t result = ncclSuccess;
    bool fine = true;

    if (client->rank == 0) {
        fine = aborts(client, memory);
    } else {
        if (client->rank < client->size - 1)
            result = ncclAllReduce(memory, memory, 1000, ncclInt32, ncclSum, client->comm,
                                   client->stream);
        for (int i = 0; i < 4000 && !result; i++) {
            client_sleep(5);
            ncclCommGetAsyncError(client->comm, &result);
        }
        client_wait(client->stream);
        fine = client_refused(client, result, ncclRemoteError, "Rank 0 aborted") &&
               client_ok(client, ncclCommAbort(client->comm), "ncclCommAbort");
        client->comm = NULL;
    }
    client_free(memory);
    return fine;
}

bool ends_finalize(struct client *client)
{
    char *byte = client_alloc(1);
    bool fine = sums_up(client, client->comm);

    ncclGroupStart();
    fine = fine &&
           client_ok(client,
                     ncclAllReduce(byte, byte, 1, ncclInt8, ncclSum, client->comm, client->stream),
                     "a call of a group") &&
           client_ok(client, ncclCommFinalize(client->comm), "ncclCommFinalize");
    fine =
        client_refused(client, ncclGroupEnd(), ncclInvalidUsage, "finalized") && fine &&
        client_refused(
            client, ncclAllReduce(byte, byte, 1, ncclInt8, ncclSum, client->comm, client->stream),
            ncclInvalidUsage, "finalized");
    client_free(byte);
    return fine;
}

/* Rank 1 does not split. The thread that would wait for it begins at the end of the group. */
bool ends_abort_before_a_split(struct client *client)
{
    atomic_int *ended = client->argument;
    ncclComm_t part = NULL;
    bool fine;

    alarm(100); /* RONDO_TIMEOUT is 300 */
    /* Acquire, pairs with the release below. */
    while (client->rank && !atomic_load_explicit(ended, memory_order_acquire))
        client_sleep(1);
    if (client->rank)
        return true;
    fine = client_ok(client, ncclGroupStart(), "ncclGroupStart") &&
           client_ok(client, ncclCommSplit(client->comm, 0, 0, &part, NULL), "ncclCommSplit") &&
           client_ok(client, ncclCommAbort(client->comm), "ncclCommAbort") &&
           client_refused(client, ncclGroupEnd(), ncclRemoteError, "") &&
           (!part || client_say(client, "a part of an aborted communicator"));
    client->comm = NULL;
    atomic_store_explicit(ended, 1, memory_order_release);
    return fine;
}
