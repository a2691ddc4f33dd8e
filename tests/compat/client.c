/* SPDX-License-Identifier: BSD-3-Clause */
/* client.c - ranks as threads and processes, see client.h. */
#include "client.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SECONDS = 300 };

struct runner {
    struct client client;
    const struct client_world *world;
    client_body body;
    bool done;
    _Atomic bool named; /* of rank 0: its id is there */
};

void *client_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("client: shared memory");
        _exit(1);
    }
    return memory;
}

bool client_say(struct client *client, const char *format, ...)
{
    va_list arguments;

    if (client->said[0])
        return false;
    va_start(arguments, format);
    vsnprintf(client->said, CLIENT_SAID, format, arguments);
    va_end(arguments);
    return false;
}

bool client_ok(struct client *client, ncclResult_t result, const char *what)
{
    if (result == ncclSuccess)
        return true;
    return client_say(client, "%s gave %d: %s", what, (int)result, ncclGetLastError(NULL));
}

bool client_refused(struct client *client, ncclResult_t result, ncclResult_t expected,
                    const char *words)
{
    /* Other threads fail too, and the last error of all is one for the process: mistakes that no
       communicator remembers are made by ranks that are processes. */
    bool own = client->comm && strstr(ncclGetLastError(client->comm), words);

    if (result != expected)
        return client_say(client, "%d instead of %d, of what is \"%s\"", (int)result, (int)expected,
                          words);
    if (!own && !strstr(ncclGetLastError(NULL), words))
        return client_say(client, "no \"%s\" in: %s", words, ncclGetLastError(NULL));
    return true;
}

void client_sleep(int milliseconds)
{
    const struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

    nanosleep(&time, NULL);
}

ncclResult_t client_poll(ncclComm_t comm)
{
    ncclResult_t state = ncclInProgress;

    for (int i = 0; i < 20000 && state == ncclInProgress; i++) {
        client_sleep(1);
        ncclCommGetAsyncError(comm, &state);
    }
    return state;
}

static void take(struct runner *runner)
{
    struct client *client = &runner->client;
    bool fine = true;

    client->stream = client_open_stream();
    if (!runner->world->apart)
        fine = client_ok(client,
                         ncclCommInitRank(&client->comm, client->size, client->id, client->rank),
                         "ncclCommInitRank");
    if (fine && !runner->body(client))
        client_say(client, "rank %d failed without a word", client->rank);
    if (fine && client->comm)
        client_ok(client, ncclCommDestroy(client->comm), "ncclCommDestroy");
    client_close_stream(client->stream);
    runner->done = true;
}

static void *thread_main(void *runner)
{
    take(runner);
    return NULL;
}

static void run_threads(struct runner *runners, int size)
{
    pthread_t threads[CLIENT_RANKS];

    for (int rank = 0; rank < size; rank++)
        if (pthread_create(&threads[rank], NULL, thread_main, &runners[rank])) {
            perror("client: thread");
            _exit(1);
        }
    for (int rank = 0; rank < size; rank++)
        pthread_join(threads[rank], NULL);
}

/* The id is made in a process of its own, as its maker has threads from then on, and a process with
 * threads should not be forked. */
static void share_id(struct runner *runners, int rank)
{
    if (!rank) {
        client_ok(&runners[0].client, ncclGetUniqueId(&runners[0].client.id), "the id");
        atomic_store_explicit(&runners[0].named, true, memory_order_release);
        return;
    }
    while (!atomic_load_explicit(&runners[0].named, memory_order_acquire))
        client_sleep(1);
    runners[rank].client.id = runners[0].client.id;
}

static void run_processes(struct runner *runners, int size)
{
    pid_t children[CLIENT_RANKS];
    int status;

    for (int rank = 0; rank < size; rank++) {
        children[rank] = fork();
        if (!children[rank]) {
            alarm(SECONDS);
            share_id(runners, rank);
            take(&runners[rank]);
            _exit(0);
        }
    }
    for (int rank = 0; rank < size; rank++) {
        waitpid(children[rank], &status, 0);
        if (!runners[rank].done && rank + 1 != runners[rank].world->leaves &&
            rank + 1 != runners[rank].world->leaves_too)
            client_say(&runners[rank].client, "the process of rank %d ended by signal %d", rank,
                       WTERMSIG(status));
    }
}

/* In shared memory, so that the answer outlives its process. */
static char *said_by(int rank)
{
    static char *all;

    if (!all)
        all = client_share((size_t)CLIENT_RANKS * CLIENT_SAID);
    return all + (size_t)rank * CLIENT_SAID;
}

const char *client_run(const struct client_world *world, client_body body)
{
    struct runner *runners = client_share(sizeof(*runners) * CLIENT_RANKS);
    const char *said = "";

    alarm(SECONDS);
    for (int rank = 0; rank < world->size; rank++) {
        runners[rank] = (struct runner){.world = world, .body = body};
        runners[rank].client = (struct client){
            .rank = rank, .size = world->size, .argument = world->argument, .said = said_by(rank)};
        said_by(rank)[0] = '\0';
        if (!rank && !world->processes &&
            !client_ok(&runners[0].client, ncclGetUniqueId(&runners[0].client.id), "the id"))
            return said_by(0);
        runners[rank].client.id = runners[0].client.id;
    }
    if (world->processes)
        run_processes(runners, world->size);
    else
        run_threads(runners, world->size);
    for (int rank = world->size - 1; rank >= 0; rank--)
        if (said_by(rank)[0]) {
            if (said[0])
                fprintf(stderr, "rank %d: %s\n", rank, said_by(rank));
            said = said_by(rank);
        }
    munmap(runners, sizeof(*runners) * CLIENT_RANKS);
    return said;
}

static bool open_alone(struct client *clients, int size, bool all_at_once)
{
    ncclComm_t comms[CLIENT_RANKS];
    int devices[CLIENT_RANKS] = {0};
    bool fine = true;

    if (all_at_once)
        fine = client_ok(clients, ncclCommInitAll(comms, size, devices), "ncclCommInitAll");
    else
        ncclGroupStart();
    for (int rank = 0; rank < size && !all_at_once; rank++)
        fine &= client_ok(clients, ncclCommInitRank(&comms[rank], size, clients[0].id, rank),
                          "ncclCommInitRank in a group");
    if (!all_at_once)
        fine &= client_ok(clients, ncclGroupEnd(), "ncclGroupEnd");
    for (int rank = 0; rank < size && fine; rank++)
        clients[rank].comm = comms[rank];
    return fine;
}

const char *client_run_alone(int size, bool all_at_once, bool (*body)(struct client *clients))
{
    struct client clients[CLIENT_RANKS] = {0};

    alarm(SECONDS);
    said_by(0)[0] = '\0';
    for (int rank = 0; rank < size; rank++) {
        clients[rank].rank = rank;
        clients[rank].size = size;
        clients[rank].said = said_by(0);
        clients[rank].stream = client_open_stream();
    }
    if (client_ok(clients, ncclGetUniqueId(&clients[0].id), "the id") &&
        open_alone(clients, size, all_at_once)) {
        if (!body(clients))
            client_say(clients, "it failed without a word");
        for (int rank = 0; rank < size; rank++)
            client_ok(clients, ncclCommDestroy(clients[rank].comm), "ncclCommDestroy");
    }
    for (int rank = 0; rank < size; rank++)
        client_close_stream(clients[rank].stream);
    return said_by(0);
}
