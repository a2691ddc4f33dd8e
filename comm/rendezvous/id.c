/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id.c - unique ids: an address and a secret in 128 bytes, and the thread that serves
 * it.
 *
 * The listener is open before the id exists, so nobody comes too early. The thread ends when all
 * ranks have come, when the timeout is over, or when this process ends or unloads the library: a
 * destructor tells it to stop and joins it. Threads that are done are joined at the next id.
 */
#include "comm/rendezvous/bootstrap.h"

#include "base/caller/descriptor.h"
#include "base/lock.h"
#include "comm/rendezvous/server.h"
#include "comm/rendezvous/socket.h"

#include "base/fail.h"
#include "base/fork.h"
#include "base/log.h"
#include "base/net/address.h"
#include "base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* The content of an id, in its 128 bytes. */
struct id_bytes {
    unsigned char magic[8]; /* with the version */
    char address[BOOTSTRAP_SHORT_ADDRESS_MAX];
    unsigned char secret[BOOTSTRAP_SECRET];
    /* The start of the hash of all before: an id that was cut or mixed up is noticed */
    unsigned char check[8];
};
_Static_assert(sizeof(struct id_bytes) == sizeof(rondo_unique_id), "an id has 128 bytes");

static const unsigned char magic[8] = {'r', 'o', 'n', 'd', 'o', 'i', 'd', WIRE_VERSION};

struct id_server {
    struct id_server *next;
    struct bootstrap_place place;
    struct server_task task;
    struct server state; /* of the thread; here, as leak checkers may miss a stack that ends */
    pthread_t thread;
    pid_t owner;                  /* after fork() the child has the list, but no threads */
    struct bootstrap_watch watch; /* the task's: passes on to `watcher` */
    struct lock watch_lock;
    const struct bootstrap_watch *watcher; /* NULL: nobody */
    bool refused;                          /* all who come get the sentence */
    bool dropped;                          /* nobody will come */
    char sentence[FAIL_SENTENCE_MAX];      /* of that */
    atomic_bool done; /* release by the thread as its last act, acquire by who joins */
};

static struct lock servers_lock = LOCK_AT(LOCK_ID_SERVERS);
FORK_RENEWS({.lock = &servers_lock});
static struct id_server *servers;

static rondo_result look(void *context)
{
    struct id_server *server = context;
    rondo_result result = RONDO_OK;

    lock_take(&server->watch_lock);
    if (server->refused)
        result = rondo_fail(RONDO_ERROR_PEER, "%s", server->sentence);
    else if (server->watcher)
        result = server->watcher->look(server->watcher->context);
    lock_give(&server->watch_lock);
    return result;
}

/* Finds the server of an id of this process; NULL: it is served elsewhere. The list is locked. */
static struct id_server *find(const struct bootstrap_place *place)
{
    for (struct id_server *server = servers; server; server = server->next)
        if (server->owner == getpid() && strcmp(server->place.address, place->address) == 0)
            return server;
    return NULL;
}

void bootstrap_id_watch(const struct bootstrap_place *place, const struct bootstrap_watch *watch)
{
    struct id_server *server;

    lock_take(&servers_lock);
    server = find(place);
    if (server) {
        lock_take(&server->watch_lock);
        server->watcher = watch;
        lock_give(&server->watch_lock);
    }
    lock_give(&servers_lock);
}

void bootstrap_id_refuse(const struct bootstrap_place *place)
{
    struct id_server *server;

    lock_take(&servers_lock);
    server = find(place);
    if (server) {
        lock_take(&server->watch_lock);
        server->refused = true;
        snprintf(server->sentence, sizeof(server->sentence), "%s", fail_sentence());
        lock_give(&server->watch_lock);
    }
    lock_give(&servers_lock);
}

static void *serve(void *argument)
{
    struct id_server *server = argument;

    server_run(&server->state, &server->task, NULL); /* on an error the ranks get the sentence */
    atomic_store_explicit(&server->done, true, memory_order_release);
    return NULL;
}

static void id_close(struct id_server *server)
{
    if (server->task.stop >= 0)
        close(server->task.stop);
    server->task.stop = -1;
    sodium_memzero(&server->place, sizeof(server->place));
}

/* Tell those that are dropped, or (`all`) all, to stop; join them and those that are done. What a
 * child inherited is closed but stays in the list: its thread's memory is as fork() met it, so none
 * of it is freed. */
static void reap(bool all)
{
    struct id_server **link = &servers;

    lock_take(&servers_lock);
    while (*link) {
        struct id_server *server = *link;
        bool ours = server->owner == getpid();
        bool stop = all || server->dropped;

        if (!ours)
            id_close(server);
        if (!ours || (!stop && !atomic_load_explicit(&server->done, memory_order_acquire))) {
            link = &server->next;
            continue;
        }
        *link = server->next;
        if (stop)
            eventfd_write(server->task.stop, 1);
        pthread_join(server->thread, NULL);
        id_close(server);
        free(server);
    }
    lock_give(&servers_lock);
}

void bootstrap_id_drop(const struct bootstrap_place *place)
{
    struct id_server *server;

    lock_take(&servers_lock);
    server = find(place);
    if (server)
        server->dropped = true;
    lock_give(&servers_lock);
    reap(false);
}

__attribute__((destructor)) static void stop_all(void)
{
    reap(true);
}

/* A wish says what the caller wants of an id. */
struct wish {
    const char *address; /* of this host: serve there; "": on this host only */
    bool any_port;       /* take another port than that of the address */
    bool shown;          /* others than the ranks may see the id */
    double timeout;      /* seconds, negative: the setting */
};

static rondo_result open_place(const struct wish *wish, struct bootstrap_place *place,
                               int *ret_listener)
{
    const char *wanted = wish->address;
    const char *colon;
    rondo_result result;
    int port = 0;

    randombytes_buf(place->secret, sizeof(place->secret));
    if (!*wanted || socket_address_is_unix(wanted)) {
        socket_fresh_name("id", place->address);
        return socket_listen(place->address, false, ret_listener, NULL);
    }
    result = socket_address_check(wanted);
    if (result)
        return result;
    if (!strncmp(wanted, "0.0.0.0:", 8) || !strncmp(wanted, "[::]:", 5))
        return rondo_fail(
            RONDO_ERROR_INVALID,
            "the address is %s: a unique id needs one of this host that the other ranks "
            "can reach",
            wanted);
    colon = strrchr(wanted, ':');
    if (colon - wanted + 6 >= BOOTSTRAP_SHORT_ADDRESS_MAX)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "the host name of %d characters does not fit into a unique id: give the "
                          "numeric address of this host, or a name of up to %d",
                          (int)(colon - wanted), BOOTSTRAP_SHORT_ADDRESS_MAX - 7);
    snprintf(place->address, sizeof(place->address), "%.*s:%s", (int)(colon - wanted), wanted,
             wish->any_port ? "0" : colon + 1);
    result = socket_listen(place->address, false, ret_listener, &port);
    if (result)
        return result;
    snprintf(place->address, sizeof(place->address), "%.*s:%d", (int)(colon - wanted), wanted,
             port);
    return RONDO_OK;
}

static rondo_result id_start(struct id_server *server)
{
    sigset_t all, before;
    int error;

    server->task.stop = descriptor_above(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (server->task.stop < 0)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot make an event descriptor for an id");
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all,
                    &before); /* signals are for the threads of the application */
    lock_take(&servers_lock);
    error = pthread_create(&server->thread, NULL, serve, server);
    if (!error) {
        server->next = servers;
        servers = server;
    }
    lock_give(&servers_lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return error ? rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot start the thread that serves an id")
                 : RONDO_OK;
}

static void write_id(const struct bootstrap_place *place, struct id_bytes *ret_bytes)
{
    unsigned char hash[WIRE_HASH];

    memset(ret_bytes, 0, sizeof(*ret_bytes));
    memcpy(ret_bytes->magic, magic, sizeof(magic));
    strcpy(ret_bytes->address, place->address);
    memcpy(ret_bytes->secret, place->secret, sizeof(place->secret));
    wire_hash(ret_bytes, offsetof(struct id_bytes, check), hash);
    memcpy(ret_bytes->check, hash, sizeof(ret_bytes->check));
}

void bootstrap_place_add_secret(struct bootstrap_place *place)
{
    const char *secret = setting_read_word(SETTING_SECRET);

    if (*secret)
        proof_derive(place->secret, secret, strlen(secret), place->secret);
}

static rondo_result create(const struct wish *wish, rondo_unique_id *ret_id)
{
    struct id_server *server;
    struct id_bytes bytes;
    double timeout = wish->timeout, late = 0;
    rondo_result result = setting_read_seconds(SETTING_LATE, &late);

    if (!result && !(timeout >= 0))
        result = setting_read_seconds(SETTING_TIMEOUT, &timeout);
    if (!result)
        result = wire_init();
    if (result)
        return result;
    reap(false);
    server = calloc(1, sizeof(*server));
    if (!server)
        return rondo_fail(RONDO_ERROR_MEMORY, "no memory for the server of an id");
    server->task = (struct server_task){.place = &server->place, .stop = -1, .listener = -1};
    server->task.timeout = timeout;
    server->task.late = late;
    server->watch = (struct bootstrap_watch){.look = look, .context = server};
    server->watch_lock = (struct lock)LOCK_AT(LOCK_ID_WATCH);
    server->task.watch = &server->watch;
    server->owner = getpid();
    result = open_place(wish, &server->place, &server->task.listener);
    if (!result) {
        write_id(&server->place, &bytes);
        if (wish->shown)
            bootstrap_place_add_secret(&server->place);
        result = id_start(server); /* from here on the thread has the listener */
    }
    if (result) {
        if (server->task.listener >= 0)
            close(server->task.listener);
        id_close(server);
        free(server);
        return result;
    }
    log_debug("an id is served at %s", bytes.address);
    memcpy(ret_id, &bytes, sizeof(bytes));
    return RONDO_OK;
}

/* The port of RONDO_ADDRESS is that of the job, if there is one: an id takes any other. */
static struct wish wish_of_settings(double timeout)
{
    return (struct wish){.address = setting_read_word(SETTING_ADDRESS),
                         .any_port = setting_is_set(SETTING_RANK),
                         .timeout = timeout};
}

rondo_result bootstrap_id_create(rondo_unique_id *ret_id)
{
    const struct wish wish = wish_of_settings(-1);

    return create(&wish, ret_id);
}

/* Does what create() does, at an address that ranks of other hosts reach. */
static rondo_result create_reachable(const struct wish *wish, rondo_unique_id *ret_id)
{
    struct wish reachable = *wish;
    char address[BOOTSTRAP_ADDRESS_MAX];
    struct net_addresses own;
    rondo_result result = net_addresses_find(&own);

    if (result)
        return result;
    if (!own.count)
        return rondo_fail(RONDO_ERROR_SYSTEM, "this host has no network address at which ranks of "
                                              "other hosts could meet");
    net_address_text(&own.at[0], 0, address, sizeof(address));
    reachable.address = address;
    return create(&reachable, ret_id);
}

rondo_result bootstrap_id_create_at(const char *address, double timeout, rondo_unique_id *ret_id)
{
    struct wish wish = {.address = address, .timeout = timeout};

    if (!address)
        wish = wish_of_settings(timeout);
    return *wish.address ? create(&wish, ret_id) : create_reachable(&wish, ret_id);
}

rondo_result bootstrap_id_create_for_hosts(rondo_unique_id *ret_id)
{
    const struct wish wish = {.shown = true, .timeout = -1};

    return create_reachable(&wish, ret_id);
}

rondo_result bootstrap_id_read(const rondo_unique_id *id, struct bootstrap_place *ret_place)
{
    struct id_bytes bytes;
    unsigned char hash[WIRE_HASH];
    rondo_result result = wire_init();

    if (result)
        return result;
    memcpy(&bytes, id, sizeof(bytes));
    wire_hash(&bytes, offsetof(struct id_bytes, check), hash);
    if (memcmp(bytes.magic, magic, sizeof(magic) - 1))
        return rondo_fail(RONDO_ERROR_INVALID, "this is no unique id: make one with "
                                               "rondo_unique_id_create() and pass all 128 bytes");
    if (bytes.magic[7] != WIRE_VERSION)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "the unique id has version %d, this Rondo has %d: use the same version "
                          "everywhere",
                          bytes.magic[7], WIRE_VERSION);
    if (memcmp(hash, bytes.check, sizeof(bytes.check)) ||
        !memchr(bytes.address, '\0', sizeof(bytes.address)))
        return rondo_fail(RONDO_ERROR_INVALID,
                          "the unique id is damaged: pass all 128 bytes of it");
    result = socket_address_check(bytes.address);
    if (result)
        return result;
    strcpy(ret_place->address, bytes.address);
    memcpy(ret_place->secret, bytes.secret, sizeof(bytes.secret));
    return RONDO_OK;
}
