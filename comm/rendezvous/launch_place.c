/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_place.c - where the ranks of a job meet, and with which key.
 *
 *     RONDO_ADDRESS              there; over TCP only with RONDO_SECRET
 *     all ranks on this host     an abstract Unix socket, named by a hash of user, launcher and job
 *     MASTER_ADDR, MASTER_PORT   TCP, with RONDO_SECRET
 *     the launcher speaks PMIx   TCP, at an address and with a secret that rank 0 makes up
 *
 * On one host the operating system tells us the user at the other end, so the hash needs no
 * secret. A process may open several communicators one after the other: a counter keeps their
 * sockets apart. An open whose ranks have not met is not counted, as a rank may try more often than
 * another.
 */
#include "comm/rendezvous/launch.h"

#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"

#include "base/fail.h"
#include "base/log.h"
#include "base/setting.h"

#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SECRET_GOOD = 16 }; /* characters; shorter ones can be found although they are stretched */

/* The opens of this process that have met or are meeting; only the number matters: relaxed. */
static atomic_uint opens;

static void derive(const char *label, const char *const *texts, size_t bytes,
                   unsigned char *ret_hash)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, bytes);
    crypto_generichash_update(&state, (const unsigned char *)label, strlen(label) + 1);
    for (; *texts; texts++)
        crypto_generichash_update(&state, (const unsigned char *)*texts, strlen(*texts) + 1);
    crypto_generichash_final(&state, ret_hash, bytes);
}

/* The word for the job is made of what this rank was told of its place, but for the count of opens.
 * Ranks of other hosts may have been told another name of it: only two processes that say they are
 * the same rank, on one host, compare their words. */
static void set_job(struct launch *launch, const char *where, const char *identity, bool unnamed)
{
    char user[16];
    const char *texts[] = {user, where, identity, NULL};
    unsigned char hash[16];

    snprintf(user, sizeof(user), "%u", (unsigned)geteuid());
    derive("rondo job", texts, sizeof(hash), hash);
    sodium_bin2hex(launch->job, sizeof(launch->job), hash, sizeof(hash));
    launch->unnamed = unnamed;
}

/* Over TCP handshakes can be recorded. */
static rondo_result set_tcp_key(struct bootstrap_place *place)
{
    const char *secret = setting_read_word(SETTING_SECRET);
    const char *texts[] = {"tcp", secret, NULL};

    if (!launch_secret_is_strong(secret))
        return launch_secret_stretch(secret, place->secret);
    derive("rondo key", texts, BOOTSTRAP_SECRET, place->secret);
    return RONDO_OK;
}

static void set_key(struct bootstrap_place *place, const char *identity)
{
    const char *texts[] = {identity, setting_read_word(SETTING_SECRET), NULL};

    derive("rondo key", texts, BOOTSTRAP_SECRET, place->secret);
}

static rondo_result place_tcp(const struct launch *launch, struct bootstrap_place *place)
{
    size_t length = strlen(setting_read_word(SETTING_SECRET));
    rondo_result result = socket_address_check(place->address);

    if (result)
        return result;
    if (!length)
        return rondo_fail(
            RONDO_ERROR_INVALID,
            "the ranks meet over TCP at %s and RONDO_SECRET is not set: set it to the "
            "same random text on all hosts",
            place->address);
    if (length < SECRET_GOOD && launch->rank == 0)
        log_warn("RONDO_SECRET has %zu characters: use at least %d random ones", length,
                 SECRET_GOOD);
    return set_tcp_key(place);
}

static rondo_result place_given(struct launch *launch, struct bootstrap_place *place)
{
    const char *address = setting_read_word(SETTING_ADDRESS);
    char number[16] = "";
    rondo_result result = socket_address_check(address);

    if (result)
        return result;
    /* `rondo run` makes up a new name for each job; by hand one has to. */
    set_job(launch, address, "", strncmp(address, "unix:rondo-run-", 15) != 0);
    if (socket_address_is_unix(address) && launch->open)
        snprintf(number, sizeof(number), ".%u", launch->open);
    if (snprintf(place->address, sizeof(place->address), "%s%s", address, number) >=
        (int)sizeof(place->address))
        return rondo_fail(RONDO_ERROR_INVALID, "RONDO_ADDRESS has more than %d characters",
                          BOOTSTRAP_ADDRESS_MAX - 1 - (int)strlen(number));
    if (!socket_address_is_unix(address))
        return place_tcp(launch, place);
    set_key(place, place->address);
    return RONDO_OK;
}

static rondo_result place_local(struct launch *launch, const struct launch_job *job,
                                struct bootstrap_place *place)
{
    char user[32], name[33];
    const char *texts[] = {user, launch->launcher, job->identity, NULL};
    unsigned char hash[16];

    if (!*job->identity)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rank %d was started by %s, but no variable names the job: set "
                          "RONDO_ADDRESS to unix:NAME with the same new name for all ranks",
                          launch->rank, launch->launcher);
    set_job(launch, launch->launcher, job->identity,
            !strcmp(launch->launcher, "torchrun") && !launch_variable("TORCHELASTIC_RUN_ID"));
    snprintf(user, sizeof(user), "%u %u", (unsigned)geteuid(), launch->open);
    derive("rondo place", texts, sizeof(hash), hash);
    sodium_bin2hex(name, sizeof(name), hash, sizeof(hash));
    snprintf(place->address, sizeof(place->address), "unix:rondo-%s", name);
    set_key(place, place->address);
    return RONDO_OK;
}

/* torchrun's own store has the port: ours is the next one. Rank 0 that is to meet at its loopback
 * listens everywhere, as ranks of other hosts may have been told its own name. */
static rondo_result place_master(struct launch *launch, struct bootstrap_place *place)
{
    const char *host = launch_variable("MASTER_ADDR");
    const char *store = launch_variable("TORCHELASTIC_USE_AGENT_STORE");
    bool six = strchr(host, ':') && *host != '[';
    int port = 0;
    int length;
    rondo_result result = launch_number("MASTER_PORT", 1, &port);

    if (result)
        return result;
    if (store && !strcmp(store, "True"))
        port += port < 65535 ? 1 : -1;
    place->listen_everywhere = launch->rank == 0 && launch_is_loopback(host);
    length = snprintf(place->address, sizeof(place->address), "%s%s%s:%d", six ? "[" : "", host,
                      six ? "]" : "", port);
    if (length >= (int)sizeof(place->address))
        return rondo_fail(RONDO_ERROR_INVALID, "MASTER_ADDR has %zu characters: too many",
                          strlen(host));
    set_job(launch, place->address, "", true);
    return place_tcp(launch, place);
}

/* A place that cannot be opened is told as well, as nothing, so that nobody waits for it. The rank
 * is claimed first: the daemon would take another process that says it is this rank for it. */
static rondo_result place_shared(struct launch *launch)
{
    static atomic_uint shares; /* daemons keep what a name meant, also after an open that failed */
    unsigned share = atomic_fetch_add_explicit(&shares, 1, memory_order_relaxed);
    rondo_result opened = RONDO_OK, result;
    const char *name = launch_variable("PMIX_NAMESPACE");
    char key[32], why[FAIL_SENTENCE_MAX] = "";
    rondo_unique_id id;

    set_job(launch, launch->launcher, name, false);
    snprintf(launch->place.address, sizeof(launch->place.address), "PMIX_NAMESPACE %.200s", name);
    result = launch_claim(launch);
    if (result)
        return result;
    snprintf(key, sizeof(key), "rondo.place.%u", share);
    if (launch->rank == 0)
        opened = bootstrap_id_create_for_hosts(&id);
    if (opened)
        snprintf(why, sizeof(why), "%s", fail_sentence());
    result = launch_share(launch->rank, key, &id, opened ? 0 : sizeof(id));
    if (opened)
        return rondo_fail(opened, "%s", why);
    if (result && launch->rank == 0 && !bootstrap_id_read(&id, &launch->place))
        bootstrap_id_drop(&launch->place);
    if (!result)
        result = bootstrap_id_read(&id, &launch->place);
    if (!result)
        bootstrap_place_add_secret(&launch->place); /* daemons carry the id in the clear */
    launch->served = !result;
    return result;
}

static rondo_result find_place(struct launch *launch, const struct launch_job *job)
{
    const char *hint = "";
    rondo_result result;

    if (setting_is_set(SETTING_ADDRESS))
        return place_given(launch, &launch->place);
    if (job->one_host)
        return place_local(launch, job, &launch->place);
    if (launch_variable("MASTER_ADDR") && launch_variable("MASTER_PORT"))
        return place_master(launch, &launch->place);
    if (launch_has_pmix()) {
        result = place_shared(launch);
        if (result != RONDO_ERROR_UNSUPPORTED)
            return result;
        hint = "; or install libpmix2, as the launcher speaks PMIx";
    }
    return rondo_fail(
        RONDO_ERROR_INVALID,
        "%d ranks on several hosts, started by %s, need a place to meet: set "
        "RONDO_ADDRESS to HOST:PORT of rank 0 and RONDO_SECRET to the same random text "
        "on all hosts%s",
        launch->size, launch->launcher, hint);
}

rondo_result launch_place(struct launch *launch, const struct launch_job *job)
{
    rondo_result result = wire_init();

    if (result)
        return result;
    launch->open = atomic_fetch_add_explicit(&opens, 1, memory_order_relaxed);
    result = find_place(launch, job);
    if (result)
        launch_missed(launch);
    return result;
}

void launch_missed(const struct launch *launch)
{
    unsigned last = launch->open + 1;

    if (launch->size > 1)
        atomic_compare_exchange_strong_explicit(&opens, &last, launch->open, memory_order_relaxed,
                                                memory_order_relaxed);
}
