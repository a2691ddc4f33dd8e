/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * open.c - making a communicator, in steps that every way of starting shares:
 *
 *     comm_prepare()   memory for the rings into this rank, and the endpoint that says where it is
 *     (exchange)       everybody's endpoints: by bootstrap.c, through a parent, or within
 *                      one process
 *     comm_connect()   the other processes mapped, the links to every rank (connect.c)
 *     comm_measure()   what links cost (measure.c); it ends, or where costs are known all there is
 *                      of it is,
 *     comm_assemble()  a barrier: everybody got here, and may close again
 *
 * Each of them is a table of stages (stage.h), which says in what order things are made.
 */
#include "comm/open.h"
#include "comm/engine/choose.h"
#include "comm/engine/run.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/networks.h"
#include "comm/stage.h"
#include "comm/state/comm.h"

#include "base/fail.h"
#include "base/trace/trace.h"
#include "collectives/levels/grouping.h"
#include "comm/engine/reach.h"
#include "comm/engine/fast_path.h"
#include "comm/failure/answer.h"
#include "comm/failure/leave.h"
#include "comm/gpu/gpu.h"
#include "comm/recovery/recovery.h"
#include "comm/registration.h"
#include "comm/rendezvous/host.h"
#include "topology/topology.h"
#include "transport/memory/process.h"
#include "transport/memory/shm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- The arrays of a communicator, one block ------------------------------------------------- */

struct block {
    char *memory; /* NULL: only counted so far */
    size_t bytes;
};

static void *lay(struct block *block, size_t count, size_t size)
{
    void *at = block->memory ? block->memory + block->bytes : NULL;

    block->bytes += (count * size + LINK_LINE - 1) / LINK_LINE * LINK_LINE;
    return at;
}

static void lay_out(rondo_comm *comm, struct block *block)
{
    size_t size = (size_t)comm->size;
    size_t links = size * PLAN_CHANNELS;
    struct exec_world *world = &comm->world;
    char *groups = lay(block, strlen(comm->settings.groups) + 1, 1);

    if (groups) /* the environment may change */
        comm->settings.groups = strcpy(groups, comm->settings.groups);
    comm->endpoints = lay(block, size, sizeof(*comm->endpoints));
    comm->processes = lay(block, size, sizeof(*comm->processes));
    comm->status_pages = lay(block, size, sizeof(*comm->status_pages));
    comm->alarms = lay(block, size, sizeof(*comm->alarms));
    comm->fast_path = lay(block, FAST_PATHS, sizeof(*comm->fast_path));
    world->out = lay(block, links, sizeof(*world->out));
    world->in = lay(block, links, sizeof(*world->in));
    world->packed = lay(block, 2 * links, LINK_PACKED);
    comm->exposures = lay(block, 1 + size, sizeof(*comm->exposures));
    comm->attempts = lay(block, 1 + 2 * size, sizeof(*comm->attempts));
    world->peers = lay(block, 2 * size, sizeof(*world->peers));
    world->sources = lay(block, size + 2, sizeof(*world->sources));
    world->destinations = lay(block, size + 2, sizeof(*world->destinations));
}

static rondo_result allocate(rondo_comm *comm)
{
    struct block block = {NULL, 0};

    lay_out(comm, &block); /* counts */
    block = (struct block){calloc(1, block.bytes), 0};
    lay_out(comm, &block);
    comm->arrays = block.memory;
    if (!block.memory)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a communicator of %d ranks.",
                          comm->size);
    return RONDO_OK;
}

/* ---- Preparing: what this rank has, and its endpoint ----------------------------------------- */

static rondo_result open_device(rondo_comm *comm)
{
    struct gpu *gpu = NULL;
    rondo_result result = gpu_open(comm->settings.cuda_device, &gpu);

    comm_set_gpu(comm, gpu, gpu ? &gpu_backend : &thread_backend);
    if (!result && gpu && comm->settings.uniform)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "RONDO_UNIFORM is for communicators without a device: a call on a CUDA "
                          "stream returns before it has a result. Rank %d has device %d.",
                          comm->rank, comm->settings.cuda_device);
    return result;
}

static rondo_result enter_heap(rondo_comm *comm)
{
    rondo_result result = heap_enter(&comm->endpoints[comm->rank].heap);

    comm->entered = !result;
    return result;
}

static rondo_result make_arena(rondo_comm *comm)
{
    const struct comm_settings *settings = &comm->settings;
    void *arena = NULL;
    rondo_result result = heap_alloc(
        shm_arena_bytes(comm->size, PLAN_CHANNELS, settings->slots, settings->slot_bytes), &arena);

    if (result)
        return result;
    comm->arena = arena;
    comm->alarms[comm->rank] = (struct shm_alarm *)arena;
    comm->world.alarm = &comm->alarms[comm->rank]->rung;
    return RONDO_OK;
}

static rondo_result show_status(rondo_comm *comm)
{
    void *status = NULL;
    rondo_result result = shown_take(&status, &comm->endpoints[comm->rank].status);

    if (result)
        return result;
    comm->status_pages[comm->rank] = comm->status = status;
    comm->world.inside = &comm->status->inside;
    return RONDO_OK;
}

static rondo_result fill_endpoint(rondo_comm *comm)
{
    const struct comm_settings *settings = &comm->settings;
    struct endpoint *endpoint = &comm->endpoints[comm->rank];
    const struct topology_quota quota = topology_own_quota();

    endpoint->magic = ENDPOINT_MAGIC;
    endpoint->version = ENDPOINT_VERSION;
    endpoint->arena = (uint64_t)(comm->arena - heap_base());
    endpoint->slot_bytes = settings->slot_bytes;
    endpoint->slots = (uint32_t)settings->slots;
    endpoint->settings = comm_settings_hash(settings, endpoint->settings_text);
    endpoint->security = settings->security;
    endpoint->rank = comm->rank;
    endpoint->size = comm->size;
    endpoint->quota = quota.cpus;
    endpoint->quota_group = quota.group;
    host_cpus(endpoint->cpus);
    comm_find_place(endpoint);
    endpoint->machine = host_machine();
    /* With a network forced upon them, ranks of one host do not share its memory. */
    return host_identity(settings->forced ? 1 + comm->rank : 0, endpoint->host);
}

/* Without it the communicator works as well. */
static rondo_result open_recorder(rondo_comm *comm)
{
    comm->recorder = recorder_open(&(struct recorder_owner){
        .rank = comm->rank, .size = comm->size, .host_id = comm->endpoints[comm->rank].host});
    return RONDO_OK;
}

static rondo_result describe_device(rondo_comm *comm)
{
    return gpu_make_endpoint(comm, &comm->endpoints[comm->rank].device);
}

static const struct comm_stage preparing[] = {{"allocate arrays", allocate},
                                              {"open the device", open_device},
                                              {"enter the heap", enter_heap},
                                              {"make the arena", make_arena},
                                              {"show a status page", show_status},
                                              {"fill in the endpoint", fill_endpoint},
                                              {"open the recorder", open_recorder},
                                              {"open networks", networks_open},
                                              {"describe the device", describe_device},
                                              {NULL, NULL}};

rondo_result comm_prepare(int size, int rank, const struct comm_settings *settings,
                          rondo_comm **ret_comm)
{
    rondo_comm *comm = calloc(1, sizeof(*comm));
    rondo_result result;

    if (!comm)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a communicator.");
    comm->size = size;
    comm->rank = rank;
    comm->settings = *settings;
    atomic_init(&comm->timeout, settings->timeout);
    comm->home = fork_home();
    lock_init(&comm->error_lock, LOCK_COMM_ERROR);
    lock_init(&comm->registrations_lock, LOCK_COMM_REGISTRATIONS);
    operations_init(&comm->operations);
    comm->world.ops = &comm_world_ops;
    comm->world.rank = rank;
    comm->world.size = size;
    comm->world.slot_bytes = settings->slot_bytes;
    tuning_init(&comm->tuning, settings);
    result = comm_stages_run(comm, preparing);
    if (result) {
        comm_free(comm);
        return result;
    }
    *ret_comm = comm;
    return RONDO_OK;
}

/* ---- Assembling ------------------------------------------------------------------------------ */

/* True if a rank of this host has ended the call that this one is in: it has the communicator. */
static bool another_passed(const rondo_comm *comm)
{
    for (int r = 0; r < comm->size; r++) {
        const struct status *page = r == comm->rank ? NULL : health_status(comm, r);

        if (page && atomic_load_explicit(&page->call.ended, memory_order_acquire) >= comm->calls)
            return true;
    }
    return false;
}

/* A rank that has passed the barrier may abort the communicator at once. All ranks have got here
 * then, so that the others have it, too: each of them hears of the abort in its next call. */
static rondo_result pass_barrier(rondo_comm *comm)
{
    struct task barrier = {.key = {.collective = RONDO_BARRIER, .type = RONDO_UINT8}};
    rondo_result result = comm->size > 1 ? run_task(comm, &barrier) : RONDO_OK;

    return result == RONDO_ERROR_ABORTED && another_passed(comm) ? RONDO_OK : result;
}

static const struct comm_stage assembling[] = {
    {"settle devices", gpu_settle}, {"pass a barrier", pass_barrier}, {NULL, NULL}};

rondo_result comm_assemble(rondo_comm *comm)
{
    rondo_result result = comm_stages_run(comm, assembling);

    if (result)
        return comm_break(comm, result, comm->rank);
    atomic_store_explicit(&comm->assembled, true, memory_order_release);
    comm->internal = comm->calls;
    if (comm->settings.uniform && comm->size > 1)
        comm->settle = uniform_settle;
    recorder_complete(comm->recorder, comm->internal);
    comm->world.trace =
        trace_open(comm->id, comm->rank, comm->size, comm->endpoints[comm->rank].machine);
    return RONDO_OK;
}

/* ---- Closing --------------------------------------------------------------------------------- */

/*
 * Peers that have not closed the communicator may write into the arena: a message that nobody took,
 * or whatever a call does that this rank has left. Those of a broken one have to read why it broke.
 * If a network is forced upon ranks, they have nothing of each other's memory. `left`: neither this
 * rank nor its device touches memory of peers any more; else these keep theirs until it has ended.
 */
static void close_arena(rondo_comm *comm, bool broken, bool left)
{
    bool unused = !broken || comm->settings.forced;

    if (!comm->status) {
        heap_free(comm->arena);
        return;
    }
    if (left)
        leave_for_good(comm);
    if (comm->lease)
        unused = comm->lease->ops->is_over(comm->lease);
    if (unused && comm->lease)
        comm->lease->ops->close(comm->lease);
    if (unused)
        heap_free(comm->arena);
    else
        heap_retire(comm->arena, shm_alarm_bytes(comm->size), comm->lease);
    if (unused && !comm->lease)
        shown_give(comm->status);
}

/*
 * The last communicators that were closed stay where they are, for programs that call with one: it
 * is no process's, which every public function looks at first, and whatever is asked without a
 * check (rank, size, device) is still there. The choices are nearly all of its memory, which the
 * system gets back.
 */
static void keep_closed(rondo_comm *comm)
{
    static _Atomic(rondo_comm *) closed[16];
    static atomic_uint closings;
    unsigned place = atomic_fetch_add_explicit(&closings, 1, memory_order_relaxed);
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t begin = ((uintptr_t)&comm->choices + page - 1) & -page;
    uintptr_t end = (uintptr_t)(&comm->choices + 1) & -page;

    comm->home = COMM_CLOSED;
    comm->last_algorithm = NULL;
    atomic_store_explicit(&comm->ran_on_device, NULL, memory_order_relaxed);
    comm_set_gpu(comm, NULL, NULL);
    if (begin < end)
        madvise((void *)begin, end - begin, MADV_DONTNEED);
    /* Release and acquire: whoever frees it has all that was stored here. */
    free(atomic_exchange_explicit(&closed[place % (sizeof(closed) / sizeof(*closed))], comm,
                                  memory_order_acq_rel));
}

void comm_free(rondo_comm *comm)
{
    bool broken, left;

    if (!comm)
        return;
    leave_pass();
    broken = atomic_load_explicit(&comm->broken, memory_order_acquire);
    gpu_stop(comm_gpu(comm));
    answer_stop(comm);
    recovery_close(comm);
    networks_close(comm);
    left = gpu_close(comm_gpu(comm), comm);
    leave_soon(comm);
    registration_drop_all(comm);
    leave_delist(comm);
    close_arena(comm, broken, left);
    for (int rank = 0; comm->processes && rank < comm->size; rank++)
        process_detach(comm->processes[rank]);
    if (comm->entered)
        heap_leave();
    choices_done(&comm->choices);
    grouping_close(comm->groups);
    free(comm->order);
    operations_done(&comm->operations);
    recorder_close(comm->recorder);
    trace_close(comm->world.trace);
    lock_done(&comm->error_lock);
    lock_done(&comm->registrations_lock);
    free(comm->world.scratch);
    free(comm->arrays);
    keep_closed(comm);
}
