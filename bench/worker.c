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

#include <argp.h>
#include <errno.h>
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

enum {
    OPTION_MEETING = 256,
    OPTION_BIND,
    OPTION_DETERMINISTIC,
    OPTION_TIMEOUT,
    OPTION_SHARE,
    OPTION_INTERFACE,
    OPTION_MEMORY,
    OPTION_LIBRARY
};

struct options {
    struct bench_place place;
    const char *control; /* name of the parent's socket */
    const char *bind;    /* processors, one per rank: "0,2,4"; NULL: anywhere */
    bool cuda;           /* every rank has a device */
    bool share;          /* the ranks come from a launcher, only rank 0 has `control` */
};

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

static const struct argp_option option_table[] = {
    {"control", 'c', "NAME", 0, "Unix socket of `rondo bench`, abstract or a path", 0},
    {"rank", 'r', "R", 0, "this rank, where the library does not know it", 0},
    {"size", 'n', "N", 0, "number of ranks", 0},
    {"threads", 't', NULL, 0, "be all ranks, a thread each (Rondo, NCCL, limits)", 0},
    {"meeting", OPTION_MEETING, "DIR", 0, "where the ranks find each other (Gloo, NCCL)", 0},
    {"bind", OPTION_BIND, "LIST", 0, "rank r runs on the r-th of these processors", 0},
    {"deterministic", OPTION_DETERMINISTIC, NULL, 0, "set Rondo's `deterministic`", 0},
    {"timeout", OPTION_TIMEOUT, "S", 0, "seconds until a silent peer is an error", 0},
    {"interface", OPTION_INTERFACE, "NAME", 0, "network interface (Gloo only)", 0},
    {"memory", OPTION_MEMORY, "KIND", 0, "cuda: give every rank a device", 0},
    {"library", OPTION_LIBRARY, "FILE", 0, "the library to load (NCCL only)", 0},
    {"share", OPTION_SHARE, NULL, 0, "take rank and size from a launcher", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'c':
        options->control = arg;
        return 0;
    case 'r':
        options->place.rank = atoi(arg);
        return 0;
    case 'n':
        options->place.size = atoi(arg);
        return 0;
    case 't':
        options->place.threads = true;
        return 0;
    case OPTION_MEETING:
        options->place.meeting = arg;
        return 0;
    case OPTION_BIND:
        options->bind = arg;
        return 0;
    case OPTION_DETERMINISTIC:
        options->place.deterministic = true;
        return 0;
    case OPTION_TIMEOUT:
        options->place.timeout = atof(arg);
        return 0;
    case OPTION_INTERFACE:
        options->place.interface = arg;
        return 0;
    case OPTION_MEMORY:
        options->cuda = bench_memory_find(arg) == BENCH_MEMORY_CUDA;
        return 0;
    case OPTION_LIBRARY:
        options->place.file = arg;
        return 0;
    case OPTION_SHARE:
        options->share = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The rank before the library is open: mpirun tells it by environment. */
static int early_rank(const struct options *options)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK"};

    for (size_t i = 0; options->place.rank < 0 && i < sizeof(names) / sizeof(names[0]); i++)
        if (getenv(names[i]))
            return atoi(getenv(names[i]));
    return options->place.rank;
}

/* The rank among those of this host: launchers tell it by environment. */
static int local_rank(const struct rank *rank)
{
    static const char *const names[] = {"RONDO_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                        "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"};

    for (size_t i = 0; !rank->place.threads && i < sizeof(names) / sizeof(names[0]); i++)
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
                              .size = rank->place.size};
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
    if (rank->options->cuda) {
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
    static const struct argp argp = {
        option_table, parse, NULL, "A rank of `rondo bench`, which starts it.", NULL, NULL, NULL};
    struct options options = {.place = {.rank = -1, .size = 1, .timeout = -1}};
    struct rank rank;

    argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (!options.control && !options.share) {
        fprintf(stderr, "%s: is started by `rondo bench`, not by hand\n", argv[0]);
        return 2;
    }
    if (options.place.threads)
        return run_threads(&options);
    rank_init(&rank, &options, options.place.rank);
    be_rank(&rank);
    return rank.status;
}
