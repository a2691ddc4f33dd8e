/* SPDX-License-Identifier: BSD-3-Clause */
#include "ends.h"
#include "../device.h"

#include "rondo/cuda.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 10 };

struct ending {
    struct gpu_rank *rank;
    rondo_comm *comm; /* that is closed */
    int32_t *memory;
    uint32_t *flag;
    CUgraphExec graph;
    pid_t closer;
};

static rondo_result fail(const struct ending *ending, const char *what)
{
    return world_say(ending->rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what,
                     rondo_last_error(NULL));
}

static rondo_result call(const struct ending *ending)
{
    return rondo_all_reduce(ending->memory, ending->memory, COUNT, RONDO_INT32, RONDO_SUM,
                            ending->comm, ending->rank->stream);
}

static rondo_result capture(struct ending *ending)
{
    const struct device_driver *cuda = device_driver();
    CUgraph graph = NULL;
    rondo_result result;

    if (cuda->cuStreamBeginCapture(ending->rank->cuda_stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
        return RONDO_ERROR_SYSTEM;
    result = call(ending);
    if (cuda->cuStreamEndCapture(ending->rank->cuda_stream, &graph) || result ||
        cuda->cuGraphInstantiate(&ending->graph, graph, 0))
        return RONDO_ERROR_SYSTEM;
    cuda->cuGraphDestroy(graph);
    return RONDO_OK;
}

static bool launch(const struct ending *ending)
{
    return !device_driver()->cuGraphLaunch(ending->graph, ending->rank->cuda_stream);
}

static void let_go(const struct ending *ending)
{
    __atomic_store_n(ending->flag, 1, __ATOMIC_RELEASE);
}

static bool hold(const struct ending *ending)
{
    return device_hold(ending->rank->cuda_stream, ending->flag);
}

/* Every rank has added its number plus 1, as often as the sum was summed up itself. */
static rondo_result check(const struct ending *ending, int times)
{
    int32_t host[COUNT], size = rondo_comm_size(ending->rank->outer), sum = size * (size + 1) / 2;

    for (int i = 1; i < times; i++)
        sum *= size;
    if (!device_copy(host, ending->memory, sizeof(host)))
        return fail(ending, "a copy");
    for (int i = 0; i < COUNT; i++)
        if (host[i] != sum)
            return world_say(ending->rank->sentence, RONDO_ERROR_INTERNAL,
                             "element %d is %d, not %d", i, host[i], sum);
    return RONDO_OK;
}

/* The body has a communicator of its own, with a graph if `graph`, and closes it. */
static rondo_result run(struct gpu_rank *rank, bool graph, rondo_result (*body)(struct ending *))
{
    int32_t host[COUNT];
    struct ending ending = {.rank = rank,
                            .memory = device_alloc(MEMORY_DEVICE, sizeof(host)),
                            .flag = device_alloc(MEMORY_PINNED, sizeof(uint32_t)),
                            .closer = gettid()};
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_result result;

    for (int i = 0; i < COUNT; i++)
        host[i] = rondo_comm_rank(rank->comm) + 1;
    config.cuda_device = rondo_comm_cuda_device(rank->comm);
    if (!ending.memory || !ending.flag || !device_copy(ending.memory, host, sizeof(host)))
        return fail(&ending, "memory");
    result = rondo_comm_split(rank->comm, 0, 0, &config, &ending.comm);
    rondo_comm_close(rank->comm); /* so the other one is the last on its device */
    rank->comm = NULL;
    if (!result && graph)
        result = capture(&ending);
    if (!result)
        result = body(&ending);
    if (result) /* the stream may be stuck */
        return fail(&ending, "the body");
    if (graph)
        device_driver()->cuGraphExecDestroy(ending.graph);
    device_free(MEMORY_DEVICE, ending.memory);
    device_free(MEMORY_PINNED, ending.flag);
    return RONDO_OK;
}

/* ---- Broken ---------------------------------------------------------------------------------- */

/* The last rank of several makes no call that is held, so the streams of the others wait for it. */
static bool is_absent(const struct ending *ending)
{
    int size = rondo_comm_size(ending->rank->outer);

    return size > 1 && rondo_comm_rank(ending->rank->outer) == size - 1;
}

/* The communicator is closed; the stream has what it was held before. */
static rondo_result go_on(const struct ending *ending, rondo_result wanted)
{
    rondo_result told;

    let_go(ending);
    if (device_driver()->cuStreamSynchronize(ending->rank->cuda_stream))
        return fail(ending, "the stream");
    told = rondo_stream_synchronize(ending->rank->stream);
    if (told != wanted)
        return world_say(ending->rank->sentence, RONDO_ERROR_INTERNAL, "the stream says %d", told);
    return RONDO_OK;
}

/* By way of the host every launch tells. */
static rondo_result launch_again(const struct ending *ending, rondo_result wanted)
{
    if (!launch(ending))
        return fail(ending, "a launch after closing");
    return go_on(ending, ending->rank->scene->host ? wanted : RONDO_OK);
}

static rondo_result close_broken(struct ending *ending, rondo_result wanted)
{
    rondo_result result;

    rondo_comm_close(ending->comm);
    if (is_absent(ending)) /* of graphs nobody knows when they were launched last */
        return go_on(ending, ending->graph && !ending->rank->scene->host ? wanted : RONDO_OK);
    result = go_on(ending, wanted);
    return result || !ending->graph ? result : launch_again(ending, wanted);
}

static rondo_result abort_before_graphs(struct ending *ending)
{
    if (!launch(ending) || call(ending) || rondo_stream_synchronize(ending->rank->stream))
        return fail(ending, "calls in peace");
    if (!is_absent(ending) && (!hold(ending) || !launch(ending) || call(ending)))
        return fail(ending, "calls that are held");
    if (rondo_barrier(ending->rank->outer, NULL) || rondo_comm_abort(ending->comm))
        return fail(ending, "the abort");
    return close_broken(ending, RONDO_ERROR_ABORTED);
}

static rondo_result closes_aborted_before_graphs(struct gpu_rank *rank)
{
    return run(rank, true, abort_before_graphs);
}

rondo_result gpu_closes_aborted_before_graphs(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, closes_aborted_before_graphs);
}

static rondo_result abort_before_calls(struct ending *ending)
{
    if (call(ending) || rondo_stream_synchronize(ending->rank->stream))
        return fail(ending, "a call in peace");
    if (!is_absent(ending) && (!hold(ending) || call(ending) || call(ending)))
        return fail(ending, "calls that are held");
    if (rondo_barrier(ending->rank->outer, NULL) || rondo_comm_abort(ending->comm))
        return fail(ending, "the abort");
    return close_broken(ending, RONDO_ERROR_ABORTED);
}

static rondo_result closes_aborted_before_calls(struct gpu_rank *rank)
{
    return run(rank, false, abort_before_calls);
}

rondo_result gpu_closes_aborted_before_calls(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, closes_aborted_before_calls);
}

enum { PAGE = 4096, PAGES = 8000, MARK = 0x5a };

/* Memory of the shared heap, where that of the communicator was. */
static bool take_pages(unsigned char *pages[PAGES])
{
    for (int i = 0; i < PAGES; i++) {
        void *page;

        if (rondo_mem_alloc(PAGE, &page))
            return false;
        pages[i] = memset(page, MARK, PAGE);
    }
    return true;
}

static bool give_pages(unsigned char *pages[PAGES])
{
    int changed = 0;

    for (int i = 0; i < PAGES; i++) {
        for (int k = 0; k < PAGE; k++)
            changed += pages[i][k] != MARK;
        rondo_mem_free(pages[i]);
    }
    return !changed;
}

static rondo_result use_memory_again(struct ending *ending)
{
    rondo_comm *outer = ending->rank->outer;
    unsigned char *pages[PAGES];
    bool absent = is_absent(ending);
    rondo_result result = RONDO_OK;

    if (!absent && (!hold(ending) || call(ending)))
        return fail(ending, "a call that is held");
    if (rondo_barrier(outer, NULL) || rondo_comm_abort(ending->comm))
        return fail(ending, "the abort");
    rondo_comm_close(ending->comm);
    if (rondo_barrier(outer, NULL) || (absent && !take_pages(pages)) || rondo_barrier(outer, NULL))
        return fail(ending, "memory after closing");
    if (!absent)
        result = go_on(ending, RONDO_ERROR_ABORTED);
    if (result || rondo_barrier(outer, NULL))
        return fail(ending, "the stream after closing");
    return absent && !give_pages(pages) ? fail(ending, "memory of the peer changed") : RONDO_OK;
}

static rondo_result uses_memory_again(struct gpu_rank *rank)
{
    return run(rank, false, use_memory_again);
}

rondo_result gpu_uses_memory_of_an_aborted_one_again(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, uses_memory_again);
}

/* The others find out by a call that is not on the stream. */
static rondo_result lose_peer_before_graphs(struct ending *ending)
{
    if (!launch(ending) || rondo_stream_synchronize(ending->rank->stream))
        return fail(ending, "a launch in peace");
    if (rondo_comm_rank(ending->rank->outer) == ending->rank->scene->victim)
        raise(SIGKILL);
    if (!hold(ending) || !launch(ending) || rondo_barrier(ending->comm, NULL) != RONDO_ERROR_PEER)
        return fail(ending, "calls without the peer");
    return close_broken(ending, RONDO_ERROR_PEER);
}

static rondo_result closes_before_graphs_without_a_peer(struct gpu_rank *rank)
{
    rondo_result result = run(rank, true, lose_peer_before_graphs);

    rank->scene->passed[rondo_comm_rank(rank->outer)] = !result;
    return result;
}

rondo_result gpu_closes_before_graphs_without_a_peer(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, closes_before_graphs_without_a_peer);
}

/* The driver refuses a part of the call that the stream hands over. */
static rondo_result close_after_refusal(struct ending *ending)
{
    if (!call(ending))
        return fail(ending, "the driver refuses nothing");
    return close_broken(ending, RONDO_ERROR_SYSTEM);
}

static rondo_result closes_after_a_refusal(struct gpu_rank *rank)
{
    return run(rank, true, close_after_refusal);
}

rondo_result gpu_closes_after_a_refusal(rondo_comm *comm, void *scene, char *sentence)
{
    setenv("CUDA_STANDIN_FAIL", ((struct gpu_scene *)scene)->failing, 1);
    return gpu_rank_run(comm, scene, sentence, closes_after_a_refusal);
}

/* The driver takes what the call begins with, and the stream is held before it. */
static rondo_result close_before_part(struct ending *ending)
{
    bool absent = is_absent(ending);

    if (!absent && (!hold(ending) || !call(ending)))
        return fail(ending, "the driver refuses nothing");
    if (rondo_barrier(ending->rank->outer, NULL))
        return fail(ending, "the ranks' meeting");
    rondo_comm_close(ending->comm);
    let_go(ending);
    if (device_driver()->cuStreamSynchronize(ending->rank->cuda_stream))
        return fail(ending, "the stream");
    return RONDO_OK;
}

static rondo_result closes_before_a_part(struct gpu_rank *rank)
{
    return run(rank, false, close_before_part);
}

rondo_result gpu_closes_before_a_part(rondo_comm *comm, void *argument, char *sentence)
{
    const struct gpu_scene *scene = argument;

    if (rondo_comm_rank(comm) == scene->victim)
        setenv("CUDA_STANDIN_FAIL", scene->failing, 1);
    return gpu_rank_run(comm, scene, sentence, closes_before_a_part);
}

/* ---- Sound ----------------------------------------------------------------------------------- */

static void *let_go_of_closer(void *argument)
{
    const struct ending *ending = argument;

    world_await_sleep(ending->closer);
    let_go(ending);
    return NULL;
}

static rondo_result close_before_launch(struct ending *ending)
{
    pthread_t thread;
    rondo_result result;

    if (!hold(ending) || !launch(ending) || rondo_barrier(ending->rank->outer, NULL) ||
        pthread_create(&thread, NULL, let_go_of_closer, ending))
        return fail(ending, "a launch that is held");
    rondo_comm_close(ending->comm);
    pthread_join(thread, NULL);
    result = go_on(ending, RONDO_OK);
    return result ? result : check(ending, 1);
}

static rondo_result closes_before_a_launch(struct gpu_rank *rank)
{
    return run(rank, true, close_before_launch);
}

rondo_result gpu_closes_before_a_launch(rondo_comm *comm, void *scene, char *sentence)
{
    return gpu_rank_run(comm, scene, sentence, closes_before_a_launch);
}
