/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * failures.c - what streams do when a call cannot end: it ends all the same, and the communicator
 * says why. None of these uses finalize: the communicators are broken.
 */
#include "bodies.h"
#include "device.h"

#include "rondo/cuda.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { COUNT = 1000, PATIENCE = 100 /* seconds */ };

static void nap(void)
{
    nanosleep(&(struct timespec){0, 1000 * 1000}, NULL);
}

/* The stream must come to its end within the time. */
static rondo_result drain(struct gpu_rank *rank)
{
    time_t until = time(NULL) + PATIENCE;

    while (device_driver()->cuStreamQuery(rank->cuda_stream) != CUDA_SUCCESS) {
        if (time(NULL) > until)
            return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the stream is stuck");
        nap();
    }
    return RONDO_OK;
}

static rondo_result await_broken(struct gpu_rank *rank)
{
    time_t until = time(NULL) + PATIENCE;
    rondo_result result;

    while (!(result = rondo_comm_query(rank->comm)) && time(NULL) <= until)
        nap();
    return result;
}

static rondo_result expect_broken(struct gpu_rank *rank, rondo_result wanted, const char *word)
{
    rondo_result result = await_broken(rank);

    if (result != wanted || !strstr(rondo_last_error(rank->comm), word))
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "result %d, \"%s\"", result,
                         rondo_last_error(rank->comm));
    return drain(rank);
}

/* ---- Abort ----------------------------------------------------------------------------------- */

/* All ranks but the first call; the first one aborts. */
static rondo_result abort_in_flight(struct gpu_rank *rank)
{
    bool aborts = rondo_comm_rank(rank->comm) == 0;
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    rondo_result result = RONDO_OK;

    if (!memory)
        return RONDO_ERROR_MEMORY;
    /* Once in peace, so that all have all they need. */
    result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (!result)
        result = gpu_come_late(rank, aborts, gettid());
    if (!result && aborts)
        result = rondo_comm_abort(rank->comm);
    else if (!result)
        result = rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm,
                                  rank->stream);
    if (!result)
        result = expect_broken(rank, RONDO_ERROR_ABORTED, "abort");
    /* The one that aborts closes when the others know, so that it is no closed rank that ends their
     * calls. */
    return result ? result : rondo_barrier(rank->outer, NULL);
}

rondo_result gpu_aborts_in_flight(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, abort_in_flight);
}

/* ---- What streams are told ------------------------------------------------------------------- */

/* Expects that synchronize returns this now, and then forgets it. */
static rondo_result expect_told(struct gpu_rank *rank, rondo_result wanted)
{
    rondo_result first = rondo_stream_synchronize(rank->stream);
    rondo_result second = rondo_stream_synchronize(rank->stream);

    if (first != wanted || second != RONDO_OK)
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                         "the stream says %d and then %d, not %d and 0", first, second, wanted);
    if (wanted && rondo_comm_query(rank->comm) != wanted)
        return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "the communicator does not know");
    return RONDO_OK;
}

/* A call that ends, of which nobody asks the stream; then one without rank 0, which aborts, if
 * `cut`, or else none. `memory`: of both. */
static rondo_result abort_and_ask(struct gpu_rank *rank, int32_t *memory, bool cut)
{
    bool aborts = rondo_comm_rank(rank->comm) == 0;
    rondo_result result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);

    if (!result)
        result = drain(rank);
    /* A watchdog that sees the end after the abort has to take the call for spoilt, so each rank
     * whose last call it is sees it before; the stream is not asked. */
    if (!result && (!cut || aborts))
        result = rondo_comm_query(rank->comm);
    if (!result)
        result = gpu_come_late(rank, aborts, gettid());
    if (!result && aborts)
        result = rondo_comm_abort(rank->comm);
    else if (!result && cut)
        result = rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm,
                                  rank->stream);
    if (!result && !cut)
        result = expect_broken(rank, RONDO_ERROR_ABORTED, "abort");
    return result ? result : expect_told(rank, cut && !aborts ? RONDO_ERROR_ABORTED : RONDO_OK);
}

static rondo_result ask_of_cut_call(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));

    return memory ? abort_and_ask(rank, memory, true) : RONDO_ERROR_MEMORY;
}

rondo_result gpu_streams_tell_of_cut_calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, ask_of_cut_call);
}

static rondo_result ask_of_ended_call(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));

    return memory ? abort_and_ask(rank, memory, false) : RONDO_ERROR_MEMORY;
}

rondo_result gpu_streams_keep_ended_calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, ask_of_ended_call);
}

/* Copies from and to plain memory wait for the stream while they are queued. */
static rondo_result cut_call_on_host_memory(struct gpu_rank *rank)
{
    int32_t *memory = calloc(COUNT, sizeof(*memory));
    rondo_result result = memory ? abort_and_ask(rank, memory, true) : RONDO_ERROR_MEMORY;

    free(memory);
    return result;
}

rondo_result gpu_ends_calls_on_host_memory(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, cut_call_on_host_memory);
}

/* ---- Mismatch -------------------------------------------------------------------------------- */

static rondo_result mismatch(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    size_t count = rondo_comm_rank(rank->comm) == 1 ? COUNT / 2 : COUNT;
    rondo_result result;

    if (!memory)
        return RONDO_ERROR_MEMORY;
    result =
        rondo_all_reduce(memory, memory, count, RONDO_INT32, RONDO_SUM, rank->comm, rank->stream);
    if (result && result != RONDO_ERROR_MISMATCH)
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    return expect_broken(rank, RONDO_ERROR_MISMATCH, "ank 1");
}

rondo_result gpu_finds_mismatches(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, mismatch);
}

/* ---- Death ----------------------------------------------------------------------------------- */

static rondo_result die(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    rondo_result result;

    if (!memory)
        return RONDO_ERROR_MEMORY;
    result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);
    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (!result && rondo_comm_rank(rank->comm) == rank->scene->victim)
        raise(SIGKILL);
    if (!result)
        result = rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm,
                                  rank->stream);
    if (result && result != RONDO_ERROR_PEER)
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    result = expect_broken(rank, RONDO_ERROR_PEER, "has ended");
    rank->scene->passed[rondo_comm_rank(rank->comm)] = !result;
    return result;
}

rondo_result gpu_survives_a_death(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, die);
}

/* ---- Closing --------------------------------------------------------------------------------- */

/* Two calls, the second without rank 1, which has closed the communicator. */
static rondo_result call_without_one(struct gpu_rank *rank, int32_t *memory)
{
    bool queued;
    rondo_result result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);

    if (!result)
        result = rondo_stream_synchronize(rank->stream);
    if (result || rondo_comm_rank(rank->comm) == 1)
        return result;
    result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);
    if (result && result != RONDO_ERROR_PEER)
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    queued = !result;
    result = expect_broken(rank, RONDO_ERROR_PEER, "ank 1, which has closed the communicator");
    return result ? result : expect_told(rank, queued ? RONDO_ERROR_PEER : RONDO_OK);
}

static rondo_result close_early(struct gpu_rank *rank)
{
    int32_t *memory = device_alloc(MEMORY_DEVICE, COUNT * sizeof(*memory));
    rondo_config config = RONDO_CONFIG_INIT;
    struct gpu_rank within = *rank;
    rondo_result result;

    if (!memory)
        return RONDO_ERROR_MEMORY;
    config.cuda_device = rondo_comm_cuda_device(rank->comm);
    result = rondo_comm_split(rank->comm, 0, rondo_comm_rank(rank->comm), &config, &within.comm);
    if (result)
        return world_say(rank->sentence, result, "%s", rondo_last_error(rank->comm));
    result = call_without_one(&within, memory);
    rondo_comm_close(within.comm);
    return result;
}

rondo_result gpu_misses_a_closed_rank(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, close_early);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

enum { LONG_COUNT = 20000, LAUNCHES = 3 };

/* A short call, long ones, and a group with messages. */
static rondo_result record(struct gpu_rank *rank, int32_t *memory)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    rondo_result result =
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_MAX, rank->comm, rank->stream);

    if (!result)
        result = rondo_all_reduce(memory, memory, LONG_COUNT, RONDO_INT32, RONDO_MAX, rank->comm,
                                  rank->stream);
    if (!result)
        result = rondo_broadcast(memory, memory, LONG_COUNT, RONDO_INT32, size - 1, rank->comm,
                                 rank->stream);
    if (!result)
        result = rondo_group_start();
    if (!result)
        result = rondo_send(memory, COUNT, RONDO_INT32, (own + 1) % size, rank->comm, rank->stream);
    if (!result)
        result = rondo_recv(memory + COUNT, COUNT, RONDO_INT32, (own + size - 1) % size, rank->comm,
                            rank->stream);
    return result ? result : rondo_group_end();
}

static rondo_result make_graph(struct gpu_rank *rank, int32_t *memory, CUgraphExec *ret_graph)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    rondo_result result;

    if (cuda->cuStreamBeginCapture(rank->cuda_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "begin of capture");
    result = record(rank, memory);
    if (cuda->cuStreamEndCapture(rank->cuda_stream, &graph) || result ||
        cuda->cuGraphInstantiate(ret_graph, graph, 0))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "capture: %s",
                         rondo_last_error(rank->comm));
    cuda->cuGraphDestroy(graph);
    return RONDO_OK;
}

/* All launch the graph in peace, then all but one some times more, which does what `leave` does. */
static rondo_result leave_graphs(struct gpu_rank *rank, int leaver,
                                 rondo_result (*leave)(struct gpu_rank *))
{
    const struct device_driver *cuda = device_driver();
    int32_t *memory = device_alloc(MEMORY_DEVICE, LONG_COUNT * sizeof(*memory));
    CUgraphExec graph = NULL;
    bool leaves;
    rondo_result result = memory ? make_graph(rank, memory, &graph) : RONDO_ERROR_MEMORY;

    if (result)
        return result;
    if (cuda->cuGraphLaunch(graph, rank->cuda_stream) ||
        cuda->cuStreamSynchronize(rank->cuda_stream))
        return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "the first launch");
    leaves = rondo_comm_rank(rank->comm) == leaver;
    result = gpu_come_late(rank, leaves, gettid());
    if (result || leaves)
        return result ? result : leave(rank);
    for (int i = 0; i < LAUNCHES; i++)
        if (cuda->cuGraphLaunch(graph, rank->cuda_stream))
            return world_say(rank->sentence, RONDO_ERROR_SYSTEM, "a launch");
    return RONDO_OK;
}

static rondo_result leave_by_abort(struct gpu_rank *rank)
{
    return rondo_comm_abort(rank->comm);
}

static rondo_result abort_graphs(struct gpu_rank *rank)
{
    rondo_result result = leave_graphs(rank, 0, leave_by_abort);

    return result ? result : expect_broken(rank, RONDO_ERROR_ABORTED, "abort");
}

rondo_result gpu_aborts_graphs(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, abort_graphs);
}

static rondo_result leave_by_death(struct gpu_rank *rank)
{
    raise(SIGKILL);
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "alive");
}

static rondo_result die_in_graphs(struct gpu_rank *rank)
{
    rondo_result result = leave_graphs(rank, rank->scene->victim, leave_by_death);

    if (!result)
        result = expect_broken(rank, RONDO_ERROR_PEER, "has ended");
    rank->scene->passed[rondo_comm_rank(rank->comm)] = !result;
    return result;
}

rondo_result gpu_graphs_survive_a_death(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, die_in_graphs);
}
