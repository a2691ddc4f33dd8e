/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * worker.c - the program that a benchmarked rank runs: connect to `rondo bench`, join the library,
 * obey commands.
 *
 * A second thread sleeps until the parent's end of the socket is gone and then ends the process,
 * also when the library spins for ever in a call: no worker outlives its parent. Under a launcher
 * the address of the parent is known to rank 0 only, so the ranks join first and rank 0 broadcasts
 * it.
 */
#include "bench/device.h"
#include "bench/library.h"
#include "bench/measure.h"
#include "bench/protocol.h"
#include "bench/work.h"
#include "cli/common/argument.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void *bench_plain_alloc(size_t bytes)
{
    void *data;

    return posix_memalign(&data, 4096, bytes) ? NULL : memset(data, 0, bytes);
}

struct options {
    struct bench_place place;
    const char *control;      /* name of the parent's socket */
    const char *bind;         /* processors, one per rank: "0,2,4"; NULL: anywhere */
    enum bench_memory memory; /* cuda: every rank has a device */
    bool share;               /* the ranks come from a launcher, only rank 0 has `control` */
};

/* The memory of this process is noted when it has no library yet. */
static double memory_before = -1;

/* One rank: the process, or a thread of it. */
struct rank {
    const struct options *options;
    struct bench_place place;
    char control[BENCH_NAME_MAX];
    int socket;
    pthread_t thread;
    int status;
    char sentence[BENCH_SENTENCE_MAX]; /* why it has no device */
};

#define SETS(member)          ARGUMENT_SETS(struct options, member)
#define NUMBER(member, least) ARGUMENT_NUMBER(struct options, member, least, INT_MAX)

static const struct argument table[] = {
    {"control", 'c', "NAME", 0, SETS(control), "Unix socket of `rondo bench`, abstract or a path"},
    {"rank", 'r', "R", 0, NUMBER(place.rank, 0), "this rank, where the library does not know it"},
    {"size", 'n', "N", 0, NUMBER(place.size, 1), "number of ranks"},
    {"threads", 't', NULL, 0, SETS(place.threads),
     "be all ranks, a thread each (Rondo, NCCL, limits)"},
    {"meeting", 0, "DIR", 0, SETS(place.meeting), "where the ranks find each other (Gloo, NCCL)"},
    {"bind", 0, "LIST", 0, SETS(bind), "rank r runs on the r-th of these processors"},
    {"deterministic", 0, NULL, 0, SETS(place.deterministic), "set Rondo's `deterministic`"},
    {"timeout", 0, "S", 0, NUMBER(place.timeout, 0), "seconds until a silent peer is an error"},
    {"interface", 0, "NAME", 0, SETS(place.interface), "network interface (Gloo only)"},
    {"memory", 0, "KIND", 0,
     ARGUMENT_FINDS(struct options, memory, bench_memory_find, "there is no memory '%s'"),
     "cuda: give every rank a device"},
    {"library", 0, "FILE", 0, SETS(place.file), "the library to load (NCCL only)"},
    {"share", 0, NULL, 0, SETS(share), "take rank and size from a launcher"},
    {0},
};

/* The rank before the library is open: mpirun tells it by environment. */
static int early_rank(const struct options *options)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};

    for (size_t i = 0; options->place.rank < 0 && i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return options->place.rank;
}

/* The rank among those of this host: launchers tell it by environment. Who was told its rank has
 * `rondo bench` for its launcher, and what another launcher says is about that. */
static int local_rank(const struct rank *rank)
{
    static const char *const names[] = {"RONDO_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"};
    size_t count = rank->options->place.rank < 0 ? sizeof(names) / sizeof(names[0]) : 1;

    for (size_t i = 0; !rank->place.threads && i < count; i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return rank->place.rank < 0 ? early_rank(rank->options) : rank->place.rank;
}

/*
 * Keep the calling thread on the rank-th processor of the list. Timing gets noisier if that fails,
 * nothing else.
 */
static void bind_to(const char *list, int rank)
{
    const char *at = list;
    cpu_set_t set;

    for (int i = 0; i < rank && at; i++) {
        at = strchr(at, ',');
        at = at ? at + 1 : NULL;
    }
    if (!at || rank < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET(strtoul(at, NULL, 10), &set);
    if (sched_setaffinity(0, sizeof(set), &set))
        fprintf(stderr, "rondo bench: cannot bind rank %d to processor %s: %s\n", rank, at,
                strerror(errno));
}

static int control_connect(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(name);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0 || length >= sizeof(address.sun_path) - 1)
        return -1;
    memcpy(address.sun_path + (*name != '/'), name, length); /* or it is abstract */
    if (connect(fd, (struct sockaddr *)&address,
                (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length))) {
        close(fd);
        return -1;
    }
    return fd;
}

static void *end_with_parent(void *socket)
{
    struct pollfd poll_for = {(int)(intptr_t)socket, 0, 0}; /* POLLHUP needs no asking */

    while (poll(&poll_for, 1, -1) < 0 && errno == EINTR)
        continue;
    sleep(1); /* the main thread has seen it too if it can */
    _exit(1);
}

static int control_open(struct rank *rank)
{
    pthread_attr_t detached;
    pthread_t watcher;

    rank->socket = control_connect(rank->control);
    if (rank->socket < 0) {
        fprintf(stderr, "rondo bench: rank %d cannot reach the parent: %s\n", rank->place.rank,
                strerror(errno));
        return -1;
    }
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    if (pthread_create(&watcher, &detached, end_with_parent, (void *)(intptr_t)rank->socket))
        fprintf(stderr, "rondo bench: rank %d cannot start its watching thread\n",
                rank->place.rank);
    pthread_attr_destroy(&detached);
    return 0;
}

/* Rank 0 tells the others where the parent listens, by the library's own broadcast. */
static int control_share(struct rank *rank, void *state)
{
    struct bench_call call = {.collective = BENCH_BROADCAST, .type = RONDO_UINT8, .in_place = true};

    call.count = sizeof(rank->control);
    return bench_the_library.run(state, &call, rank->control, rank->control);
}

static bool say_hello(const struct rank *rank, void *state)
{
    struct bench_hello hello = {.rank = rank->place.rank, .size = rank->place.size};

    if (rank->place.device) {
        hello.devices = device_count(rank->place.device);
        hello.device_bytes = device_bytes(rank->place.device);
    }
    bench_the_library.version(hello.version, sizeof(hello.version));
    if (!state) {
        hello.status = BENCH_FAILED;
        snprintf(hello.sentence, sizeof(hello.sentence), "%s",
                 *rank->sentence ? rank->sentence : bench_the_library.error(NULL));
    }
    return send(rank->socket, &hello, sizeof(hello), MSG_NOSIGNAL) == sizeof(hello) && state;
}

static void obey(const struct rank *rank, void *state)
{
    struct measure measure = {.library = &bench_the_library,
                              .state = state,
                              .device = rank->place.device,
                              .rank = rank->place.rank,
                              .size = rank->place.size,
                              .before = rank->place.threads ? -1 : memory_before};
    struct bench_command command;
    struct bench_reply reply;

    while (recv(rank->socket, &command, sizeof(command), 0) == sizeof(command)) {
        measure_run(&measure, &command, &reply);
        if (send(rank->socket, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply))
            break;
        if (reply.status == BENCH_FAILED) /* only the end is left to wait for */
            while (recv(rank->socket, &command, sizeof(command), 0) > 0)
                continue;
    }
    measure_done(&measure);
}

/* The device first: the library finds its context current. */
static void *join(struct rank *rank)
{
    if (rank->options->memory == BENCH_MEMORY_CUDA) {
        int number = local_rank(rank);

        rank->place.device =
            device_open(number < 0 ? 0 : number, rank->sentence, sizeof(rank->sentence));
        if (!rank->place.device)
            return NULL;
    }
    return bench_the_library.open(&rank->place);
}

static void *be_rank(void *argument)
{
    struct rank *rank = argument;
    const struct options *options = rank->options;
    void *state;

    if (options->bind)
        bind_to(options->bind, options->place.threads ? rank->place.rank : early_rank(options));
    if (!options->share && control_open(rank))
        return NULL;
    state = join(rank);
    if (options->share) {
        if (!state)
            fprintf(stderr, "rondo bench: %s\n",
                    *rank->sentence ? rank->sentence : bench_the_library.error(NULL));
        if (!state || control_share(rank, state) || control_open(rank)) {
            device_close(rank->place.device);
            return NULL;
        }
    }
    if (say_hello(rank, state)) {
        obey(rank, state);
        rank->status = 0;
    }
    bench_the_library.close(state);
    device_close(rank->place.device);
    return NULL;
}

static void rank_init(struct rank *rank, const struct options *options, int number)
{
    rank->options = options;
    rank->place = options->place;
    rank->place.rank = number;
    rank->status = 1;
    rank->sentence[0] = 0;
    snprintf(rank->control, sizeof(rank->control), "%s", options->control ? options->control : "");
}

/*
 * The place of a thread rank needs the array that the library fills with all ranks' communicators.
 */
static int run_threads(struct options *options)
{
    int size = options->place.size;
    struct rank *ranks = calloc((size_t)size, sizeof(*ranks));
    struct rondo_comm **joined = calloc((size_t)size, sizeof(*joined));
    int started = 0;
    int status = 0;

    options->place.joined = joined;
    while (ranks && joined && started < size) {
        rank_init(&ranks[started], options, started);
        if (pthread_create(&ranks[started].thread, NULL, be_rank, &ranks[started]))
            break;
        started++;
    }
    for (int i = 0; i < started; i++) {
        pthread_join(ranks[i].thread, NULL);
        status |= ranks[i].status;
    }
    free(joined);
    free(ranks);
    return started < size ? 1 : status;
}

int main(int argc, char **argv)
{
    static const struct argument_command line = {
        .name = "rondo-bench", .doc = "A rank of `rondo bench`, which starts it.", .table = table};
    struct options options = {.place = {.rank = -1, .size = 1, .timeout = -1}};
    const char *program = argv[0];
    struct rank rank;

    memory_before = work_memory();
    argument_parse(&line, argc, argv, &options);
    if (!options.control && !options.share) {
        fprintf(stderr, "%s: is started by `rondo bench`, not by hand\n", program);
        return 2;
    }
    if (options.place.threads)
        return run_threads(&options);
    rank_init(&rank, &options, options.place.rank);
    be_rank(&rank);
    return rank.status;
}
