/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leavings.c - a rank leaves a call in which a peer's kernel is at work on the rank's memory.
 *
 * The stand-in stops that kernel when it has found its operands (CUDA_STANDIN_HOLD), so it cannot
 * but write there when it goes on: the rank's stream must not end before, unless the rank says that
 * it has waited for long enough. Or it stops it before it has found them, and the peer is a stopped
 * process with a device that goes on, which is not waited for: then the kernel must not find the
 * rank's memory any more.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18, BYTES = 4 * COUNT, MARK = 0x5a, PATIENCE = 100 /* seconds */ };
enum { SHARE_NS = 20 * 1000 * 1000 };

/* The peer's kernel is held until it was waited for in vain, or goes on at once; or the peer is
 * stopped. */
enum peer { HELD, GOES_ON, STOPPED };

static rondo_result touch_file(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    if (file < 0)
        return RONDO_ERROR_SYSTEM;
    close(file);
    return RONDO_OK;
}

/* ".held": the victim's kernel is stopped. ".parked": so are its threads. */
static rondo_result await_file(struct gpu_rank *rank, const char *suffix)
{
    time_t until = time(NULL) + PATIENCE;
    char path[4096];

    snprintf(path, sizeof(path), "%s%s", rank->scene->hold, suffix);
    while (access(path, F_OK)) {
        if (time(NULL) > until)
            return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "there is no file %s", path);
        usleep(1000);
    }
    unlink(path);
    return RONDO_OK;
}

static rondo_result fill(char *memory, int byte)
{
    char *host = malloc(BYTES);

    if (!host)
        return RONDO_ERROR_MEMORY;
    memset(host, byte, BYTES);
    device_copy(memory, host, BYTES);
    free(host);
    return RONDO_OK;
}

/* The caller has its memory back, and the kernel goes on, to its end. */
static rondo_result expect_unchanged(struct gpu_rank *rank, char *memory)
{
    char *host = malloc(BYTES);
    size_t changed = 0;

    if (!host || fill(memory, MARK))
        return RONDO_ERROR_MEMORY;
    unlink(rank->scene->hold);
    if (rondo_barrier(rank->outer, NULL)) /* the victim's stream is empty */
        return RONDO_ERROR_PEER;
    device_copy(host, memory, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        changed += host[i] != MARK;
    free(host);
    if (!changed)
        return RONDO_OK;
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%zu bytes changed", changed);
}

/* The kernel of a peer at work is held until it was waited for in vain, or goes on at once. Nobody
 * waits for a process that is stopped. */
static rondo_result leave(struct gpu_rank *rank, char *memory, enum peer peer)
{
    rondo_result result = await_file(rank, peer == STOPPED ? ".parked" : ".held");
    bool warned;

    if (!result)
        result = rondo_comm_abort(rank->comm);
    if (peer == GOES_ON)
        unlink(rank->scene->hold);
    if (!result && rondo_stream_synchronize(rank->stream) != RONDO_ERROR_ABORTED)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the stream does not tell");
    warned = strstr(rondo_last_error(NULL), "may still touch");
    if (!result && peer == HELD && !warned)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "nobody was waited for");
    if (!result && (peer == STOPPED || !warned))
        return expect_unchanged(rank, memory);
    unlink(rank->scene->hold);
    return result ? result : rondo_barrier(rank->outer, NULL);
}

/* ---- The victim ------------------------------------------------------------------------------ */

static _Atomic bool parked;
static _Atomic int here; /* threads that are parked */

static void park(int number)
{
    const struct timespec doze = {0, 10 * 1000 * 1000};

    (void)number;
    atomic_fetch_add_explicit(&here, 1, memory_order_relaxed);
    while (atomic_load_explicit(&parked, memory_order_acquire))
        nanosleep(&doze, NULL);
}

static bool takes_signals(const char *thread)
{
    unsigned long long blocked = 0;
    char path[300], line[256];
    FILE *file;

    snprintf(path, sizeof(path), "/proc/self/task/%s/status", thread);
    file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "SigBlk: %llx", &blocked) == 1)
            break;
    if (file)
        fclose(file);
    return !(blocked >> (SIGUSR1 - 1) & 1);
}

/* All threads of this process but this one and the device's, which take no signals. */
static void park_others(void)
{
    const struct sigaction action = {.sa_handler = park, .sa_flags = SA_RESTART};
    DIR *threads = opendir("/proc/self/task");
    struct dirent *entry;
    int wanted = 0;

    atomic_store_explicit(&parked, true, memory_order_release);
    sigaction(SIGUSR1, &action, NULL);
    while (threads && (entry = readdir(threads))) {
        pid_t thread = (pid_t)strtol(entry->d_name, NULL, 10);

        if (thread > 0 && thread != gettid() && takes_signals(entry->d_name))
            wanted += !tgkill(getpid(), thread, SIGUSR1);
    }
    if (threads)
        closedir(threads);
    while (atomic_load_explicit(&here, memory_order_relaxed) < wanted)
        usleep(1000);
}

/* Nothing shows that the device has gone as far as it can alone, as its threads spin. They share
 * the processors with this one, so each has its turns while this one has so many of them. */
static void let_device_go_on(void)
{
    struct timespec used;
    int64_t until = 0, now;

    do {
        sched_yield();
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
        now = used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
        until = until ? until : now + SHARE_NS;
    } while (now < until);
}

/* The process seems stopped on a machine with a real device, which goes on. */
static rondo_result stop_with_a_kernel(struct gpu_rank *rank)
{
    char path[4096];
    rondo_result result = await_file(rank, ".held");

    if (result)
        return result;
    park_others();
    snprintf(path, sizeof(path), "%s.parked", rank->scene->hold);
    result = touch_file(path);
    while (!result && !access(rank->scene->hold, F_OK))
        usleep(1000);
    let_device_go_on();
    atomic_store_explicit(&parked, false, memory_order_release);
    return result;
}

/* ---- Both ------------------------------------------------------------------------------------ */

static rondo_result abort_with_a_kernel(struct gpu_rank *rank, enum peer peer)
{
    bool victim = rondo_comm_rank(rank->comm) == rank->scene->victim;
    char *memory = device_alloc(MEMORY_DEVICE, BYTES);
    rondo_result result = memory ? fill(memory, 1) : RONDO_ERROR_MEMORY;

    for (int i = 0; i < 2 && !result; i++) {
        if (victim && i == 1) /* the first time in peace, so that all is mapped */
            result = touch_file(rank->scene->hold);
        if (!result)
            result = rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, rank->comm,
                                      rank->stream);
        if (!result && i == 0)
            result = rondo_stream_synchronize(rank->stream);
    }
    if (!result && !victim)
        return leave(rank, memory, peer);
    if (!result && peer == STOPPED)
        result = stop_with_a_kernel(rank);
    if (!result && rondo_stream_synchronize(rank->stream) != RONDO_ERROR_ABORTED)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the victim's stream is silent");
    if (!result && device_driver()->cuStreamSynchronize(rank->cuda_stream))
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the victim's stream is stuck");
    return result ? result : rondo_barrier(rank->outer, NULL);
}

static rondo_result abort_with_a_held_peer(struct gpu_rank *rank)
{
    return abort_with_a_kernel(rank, HELD);
}

static rondo_result abort_with_a_peer_at_work(struct gpu_rank *rank)
{
    return abort_with_a_kernel(rank, GOES_ON);
}

static rondo_result abort_with_a_stopped_peer(struct gpu_rank *rank)
{
    return abort_with_a_kernel(rank, STOPPED);
}

/* The victim's kernels stop at a barrier. */
static void hold(rondo_comm *comm, const struct gpu_scene *scene)
{
    if (rondo_comm_rank(comm) != scene->victim)
        return;
    setenv("CUDA_STANDIN_HOLD", scene->hold, 1);
    setenv("CUDA_STANDIN_HOLD_AT", scene->hold_at, 1);
}

rondo_result gpu_leaves_with_a_held_peer(rondo_comm *comm, void *scene, char *sentence)
{
    hold(comm, scene);
    return gpu_rank_run(comm, scene, sentence, abort_with_a_held_peer);
}

rondo_result gpu_leaves_with_a_peer_at_work(rondo_comm *comm, void *scene, char *sentence)
{
    hold(comm, scene);
    return gpu_rank_run(comm, scene, sentence, abort_with_a_peer_at_work);
}

rondo_result gpu_leaves_with_a_stopped_peer(rondo_comm *comm, void *scene, char *sentence)
{
    hold(comm, scene);
    return gpu_rank_run(comm, scene, sentence, abort_with_a_stopped_peer);
}
