/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak_rank.c - a rank of a run: it opens a communicator and goes on with the others, round by
 * round, until its fate strikes or all have done their work.
 */
#include "soak.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 300 };

/* faults.c, where it is linked in. */
extern _Atomic unsigned long faults_struck __attribute__((weak));
/* AddressSanitizer, where it is: true if memory was lost. */
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

struct life {
    struct run *run;
    int me; /* the rank of the first communicator */
    struct fate *fate;
    struct said *said;
    rondo_comm *comm;
    double since; /* when it was opened */
};

double soak_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- Fate ------------------------------------------------------------------------------------ */

static atomic_bool armed;

/* Ends all connections to other hosts; who listens goes on. */
static void cut_connections(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        int domain = 0, listens = 0;
        socklen_t bytes = sizeof(int);

        if (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) &&
            !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) && !listens &&
            (domain == AF_INET || domain == AF_INET6))
            shutdown(fd, SHUT_RDWR);
    }
}

static void *fail_later(void *argument)
{
    struct fate *fate = argument;
    double at;

    atomic_store_explicit(&armed, true, memory_order_release);
    at = soak_now() + 1e-6 * fate->microseconds;
    while (soak_now() < at)
        ;
    atomic_store_explicit(&fate->struck, soak_now(), memory_order_release);
    if (fate->cuts)
        cut_connections();
    else
        kill(getpid(), fate->stops ? SIGSTOP : SIGKILL);
    return NULL;
}

static void pass(const struct life *life, int round, enum moment moment)
{
    struct fate *fate = life->fate;
    pthread_t thread;

    if (!fate->fails || fate->round != round || fate->moment != moment)
        return;
    pthread_create(&thread, NULL, fail_later, fate);
    pthread_detach(thread);
    while (!atomic_load_explicit(&armed, memory_order_acquire))
        sched_yield();
}

/* Seconds since the first failure that this communicator has seen; 0: it has seen none. */
static double since_failure(const struct life *life)
{
    double now = soak_now(), first = now;

    for (int rank = 0; rank < life->run->size; rank++) {
        double struck = atomic_load_explicit(&life->run->fates[rank].struck, memory_order_acquire);

        if (struck > life->since && struck < first)
            first = struck;
    }
    return now - first;
}

/* ---- Work ------------------------------------------------------------------------------------ */

static rondo_result complain(struct said *said, rondo_result result, const char *what)
{
    said->result = result;
    snprintf(said->sentence, sizeof(said->sentence), "%s: %s", what, rondo_last_error(NULL));
    return result;
}

/* Ranks have nothing of each other's memory. */
static bool is_on_network(const struct run *run)
{
    return strcmp(run->transport, "tcp") == 0 || strcmp(run->transport, "verbs") == 0;
}

static bool is_on_device(const struct run *run)
{
    return strcmp(run->transport, "gpu") == 0;
}

static rondo_result all_reduce(const struct life *life, rondo_comm *comm, const uint64_t *input,
                               uint64_t *output, size_t count, rondo_op op)
{
    return is_on_device(life->run)
               ? soak_device_all_reduce(input, output, count, op, comm)
               : rondo_all_reduce(input, output, count, RONDO_UINT64, op, comm, NULL);
}

/* Sums of 1 << rank, each element times a power of two: the members, if it is right. */
static bool work(rondo_comm *comm, uint64_t members, int calls, const struct life *life)
{
    uint64_t input[COUNT], output[COUNT];
    struct said *said = life->said;

    for (int call = 0; call < calls; call++) {
        for (int i = 0; i < COUNT; i++)
            input[i] = (uint64_t)1 << life->me << (i + call) % 40;
        if (all_reduce(life, comm, input, output, COUNT, RONDO_SUM))
            return false;
        for (int i = 0; i < COUNT; i++)
            if (output[i] != members << (i + call) % 40) {
                snprintf(said->sentence, sizeof(said->sentence), "a sum is wrong");
                said->result = RONDO_ERROR_INTERNAL;
                said->wrong = true;
                return false;
            }
        said->calls++;
    }
    return true;
}

static bool ask_members(rondo_comm *comm, const struct life *life, uint64_t *ret_members)
{
    uint64_t own = (uint64_t)1 << life->me;

    return !all_reduce(life, comm, &own, ret_members, 1, RONDO_BOR);
}

/*
 * Two halves, each of which does some work of its own. Who waits there for a rank that was stopped
 * has to give up before the others, who agree on the whole already, give up waiting for it.
 */
static bool work_in_halves(const struct life *life)
{
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *half = NULL;
    uint64_t members;
    bool well;

    config.timeout = life->run->timeout / 3;
    well = !rondo_comm_split(life->comm, rondo_comm_rank(life->comm) % 2, 0,
                             is_on_device(life->run) ? NULL : &config, &half) &&
           ask_members(half, life, &members) && work(half, members, 3, life);
    rondo_comm_close(half);
    return well;
}

static bool do_round(const struct life *life)
{
    uint64_t members; /* as they were numbered first */
    bool well;

    pass(life, life->said->rounds, WORKING);
    life->said->members = 0;
    well = ask_members(life->comm, life, &members) && work(life->comm, members, CALLS, life);
    if (well)
        life->said->members = members;
    if (!life->run->everywhere)
        return well;
    pass(life, life->said->rounds, SPLITTING);
    return well && work_in_halves(life);
}

/* ---- Going on -------------------------------------------------------------------------------- */

/* False: this was the last round, or it cannot go on. */
static bool agree(struct life *life, bool well)
{
    struct said *said = life->said;
    struct round *round = &said->round[said->rounds];
    int failed[RANKS], known[RANKS], count, known_count;

    round->flags = well;
    pass(life, said->rounds, AGREEING);
    if (complain(said, rondo_comm_agree(life->comm, &round->flags, failed, &count), "agree"))
        return false;
    round->failed = 0;
    for (int i = 0; i < count; i++)
        round->failed |= (uint64_t)1 << failed[i];
    if (complain(said, rondo_comm_failed(life->comm, known, &known_count), "failed"))
        return false;
    if (known_count < count)
        return complain(said, RONDO_ERROR_INTERNAL, "fewer are known to have failed");
    return !round->flags || count || !said->rounds;
}

static bool shrink(struct life *life)
{
    struct said *said = life->said;
    rondo_comm *shrunk = NULL;
    double took;

    pass(life, said->rounds, SHRINKING);
    if (complain(said, rondo_comm_shrink(life->comm, NULL, &shrunk), "shrink"))
        return false;
    took = since_failure(life);
    said->recovery = took > said->recovery ? took : said->recovery;
    pass(life, said->rounds, CLOSING);
    if (!life->fate->closes_late)
        rondo_comm_close(life->comm); /* else the process ends with it */
    life->comm = shrunk;
    life->since = soak_now();
    said->round[said->rounds++].left = rondo_comm_size(shrunk);
    if (said->rounds == ROUNDS)
        complain(said, RONDO_ERROR_INTERNAL, "too many rounds");
    return said->rounds < ROUNDS;
}

/* A round: work, agree, and shrink if it did not go well for all; the first one always shrinks. */
static bool go_on(struct life *life)
{
    bool well = do_round(life);

    if (life->said->result)
        return false;
    if (!well)
        rondo_comm_revoke(life->comm);
    return agree(life, well) && shrink(life);
}

/* ---- Opening --------------------------------------------------------------------------------- */

int soak_index(uint64_t members, int rank)
{
    return __builtin_popcountll(members & (((uint64_t)1 << rank) - 1));
}

/* No fate strikes before all have returned from open, unless it may do so everywhere. */
static void await_others(const struct run *run, const struct meeting *meeting)
{
    for (int rank = 0; rank < run->size && !run->everywhere; rank++)
        while (atomic_load_explicit(&meeting->arrivals[rank], memory_order_acquire) == AWAY)
            usleep(100);
}

static enum arrival meet(struct life *life, int number)
{
    rondo_config config = RONDO_CONFIG_INIT;
    struct meeting *meeting = &life->run->meetings[number];
    uint64_t members;
    enum arrival arrival;

    while (!(members = atomic_load_explicit(&meeting->members, memory_order_acquire)))
        usleep(100);
    if (!(members >> life->me & 1))
        return AWAY; /* the others have not failed as this rank has */
    config.timeout = life->run->timeout;
    pass(life, number, OPENING);
    arrival = complain(life->said,
                       rondo_comm_open_id(&meeting->id, __builtin_popcountll(members),
                                          soak_index(members, life->me), &config, &life->comm),
                       "open")
                  ? REFUSED
                  : OPEN;
    atomic_store_explicit(&meeting->arrivals[life->me], arrival, memory_order_release);
    return arrival;
}

static bool open_first(struct life *life)
{
    struct run *run = life->run;
    enum arrival arrival = REFUSED;
    double took;

    for (int number = 0; number < MEETINGS && arrival == REFUSED; number++) {
        arrival = meet(life, number);
        if (!run->everywhere)
            break;
    }
    await_others(run, &run->meetings[0]);
    if (arrival != OPEN)
        return false;
    took = since_failure(life);
    life->said->recovery = run->everywhere ? took : 0;
    life->since = soak_now();
    return true;
}

/* Transports of ranks of one host as if it were several. */
static void choose_transport(const struct run *run, int rank)
{
    const char *devices[] = {getenv("RXE_DEV"), getenv("RXE_PEER_DEV")};

    if (strcmp(run->transport, "mixed") == 0)
        setenv("RONDO_HOST_ID", rank % 3 ? "one" : "other", 1);
    else if (strcmp(run->transport, "shm") != 0 && !is_on_device(run))
        setenv("RONDO_TRANSPORT", run->transport, 1);
    if (strcmp(run->transport, "verbs") == 0 && devices[rank % 2])
        setenv("RONDO_VERBS_DEVICES", devices[rank % 2], 1);
}

/* A rank has leaks if it keeps more than it had. But what it showed to one that is stopped stays
 * until that one ends; and if a meeting point failed, also within shrink and split, it does not
 * know whom that told of its heap, which stays for good (docs/recovery.md). */
static bool has_leaks(const struct life *life, struct holdings *before)
{
    struct said *said = life->said;
    bool stopped = is_on_device(life->run);

    if (!is_on_network(life->run)) {
        before->fds += 2;
        before->maps += 2;
    }

    if (said->result || life->fate->closes_late)
        return false;
    for (int rank = 0; rank < life->run->size; rank++)
        stopped |= life->run->fates[rank].stops;
    if (!stopped &&
        soak_holds_more(before, life->run->seconds / 2.0, said->sentence, sizeof(said->sentence))) {
        said->result = RONDO_ERROR_INTERNAL;
        said->wrong = true;
        return true;
    }
    return __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check();
}

void soak_live(struct run *run, int rank)
{
    struct holdings before;
    struct life life = {
        .run = run, .me = rank, .fate = &run->fates[rank], .said = &run->said[rank]};

    alarm(run->seconds);
    choose_transport(run, rank);
    while (atomic_load_explicit(&run->ids, memory_order_acquire) < MEETINGS)
        usleep(100);
    if (is_on_device(run) && (!soak_device_open || !soak_device_open(rank))) {
        complain(life.said, RONDO_ERROR_UNSUPPORTED, "no CUDA device");
        return;
    }
    before = soak_holdings();
    if (!open_first(&life))
        return;
    while (go_on(&life))
        ;
    pass(&life, life.said->rounds, CLOSING);
    rondo_comm_close(life.comm);
    if (is_on_device(run))
        soak_device_close();
    life.said->faults = &faults_struck ? faults_struck : 0;
    if (has_leaks(&life, &before) && !life.said->wrong)
        complain(life.said, RONDO_ERROR_INTERNAL, "memory was lost");
    life.said->done = true;
}
