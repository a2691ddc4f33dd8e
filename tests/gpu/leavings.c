/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * leavings.c - a rank leaves a call in which a peer's kernel is at work on the rank's memory.
 *
 * The stand-in stops that kernel when it has found its operands (CUDA_STANDIN_HOLD), so it cannot
 * but write there when it goes on: the rank's stream must not end before.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1 << 18, BYTES = 4 * COUNT, MARK = 0x5a, PATIENCE = 20 /* seconds */ };
enum { HELD_US = 100 * 1000, LONG_US = 300 * 1000 };

static rondo_result touch_file(const char *path)
{
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    if (file < 0)
        return RONDO_ERROR_SYSTEM;
    close(file);
    return RONDO_OK;
}

/* The victim's kernel is stopped when it has found rank 0's output, into which it adds up. */
static rondo_result await_held(struct gpu_rank *rank)
{
    time_t until = time(NULL) + PATIENCE;
    char held[4096];

    snprintf(held, sizeof(held), "%s.held", rank->scene->hold);
    while (access(held, F_OK)) {
        if (time(NULL) > until)
            return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "no kernel is held");
        usleep(1000);
    }
    unlink(held);
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

/* The caller has its memory back: it stays as it is, unless the sentence says that it may not. */
static rondo_result expect_unchanged(struct gpu_rank *rank, char *memory)
{
    char *host = malloc(BYTES);
    size_t changed = 0;

    if (!host || fill(memory, MARK))
        return RONDO_ERROR_MEMORY;
    unlink(rank->scene->hold);
    usleep(LONG_US);
    device_copy(host, memory, BYTES);
    for (size_t i = 0; i < BYTES; i++)
        changed += host[i] != MARK;
    free(host);
    if (!changed || strstr(rondo_last_error(NULL), "may still touch"))
        return RONDO_OK;
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%zu bytes changed", changed);
}

static rondo_result leave_with_a_peer_at_work(struct gpu_rank *rank, char *memory)
{
    rondo_result result = await_held(rank);

    if (!result)
        result = rondo_comm_abort(rank->comm);
    usleep(HELD_US);
    if (!result && device_driver()->cuStreamQuery(rank->cuda_stream) == CUDA_SUCCESS) {
        result = expect_unchanged(rank, memory);
        return result ? result
                      : world_say(rank->sentence, RONDO_ERROR_INTERNAL, "nobody was waited for");
    }
    unlink(rank->scene->hold);
    if (!result && rondo_stream_synchronize(rank->stream) != RONDO_ERROR_ABORTED)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the stream does not tell");
    return result ? result : expect_unchanged(rank, memory);
}

static rondo_result abort_with_a_peer_at_work(struct gpu_rank *rank)
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
        return leave_with_a_peer_at_work(rank, memory);
    if (!result && rondo_stream_synchronize(rank->stream) != RONDO_ERROR_ABORTED)
        result = world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the victim's stream is silent");
    return result;
}

rondo_result gpu_leaves_with_a_peer_at_work(rondo_comm *comm, void *scene, char *sentence)
{
    const struct gpu_scene *given = scene;

    if (rondo_comm_rank(comm) == given->victim)
        setenv("CUDA_STANDIN_HOLD", given->hold, 1);
    return gpu_rank_run(comm, given, sentence, abort_with_a_peer_at_work);
}
