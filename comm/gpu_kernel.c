/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu_kernel.c - short calls as one kernel each (cuda/executor.h): its blocks spin on flags in
 * memory of the device, which takes a few microseconds less than memory operations of streams do.
 *
 * Kernels that wait for each other must run at the same time. So this is done only where no two
 * ranks of different processes share a device, and where those of one process fit on it together;
 * all ranks find the same, from cards and from what they show in their arenas.
 */
#include "comm/gpu_plan.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"
#include "collectives/algorithm.h"
#include "comm/gpu.h"
#include "comm/health.h"
#include "cuda/executor.h"
#include "transport/process.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    SHORT = 32 << 10, /* bytes of a block, up to which a call is one kernel */
    MOST_RANKS = 16,
    SLOTS = 4
};

struct gpu_program {
    struct gpu_program *next;
    struct plan *plan;
    struct cuda_program *program;
};

/* What a rank shows of its seat. */
enum { SEAT_UNKNOWN, SEAT_NONE, SEAT_OPEN };

/* ---- Seats ----------------------------------------------------------------------------------- */

/* Ranks with this rank's device; 0: one of another process is among them. */
static unsigned count_share(const rondo_comm *comm)
{
    const unsigned char *own = comm->cards[comm->rank].device.uuid;
    unsigned share = 0;

    for (int rank = 0; rank < comm->size; rank++) {
        if (memcmp(comm->cards[rank].device.uuid, own, DEVICE_UUID) != 0)
            continue;
        if (!process_is_own(comm->processes[rank]))
            return 0;
        share++;
    }
    return share;
}

static rondo_result open_seat(struct gpu_plans *plans, unsigned share)
{
    const struct cuda_driver *cuda = plans->gpu->device.driver;
    struct gpu_segment_card *card = &plans->own->inbox;
    const struct cuda_seat_shape shape = {.rank = plans->comm->rank,
                                          .size = plans->comm->size,
                                          .slots = SLOTS,
                                          .slot_bytes = SHORT,
                                          .share = share};
    CUipcMemHandle handle;
    size_t bytes = 0;
    rondo_result result = cuda_seat_open(plans->launcher, &shape, &plans->seat);

    if (result)
        return result;
    card->base = cuda_seat_inbox(plans->seat, &bytes);
    card->bytes = bytes;
    if (!plans->comm->one_process)
        result = cuda_result(cuda->cuIpcGetMemHandle(&handle, card->base), "cuIpcGetMemHandle");
    if (!result && !plans->comm->one_process)
        memcpy(card->handle, &handle, sizeof(handle));
    return result;
}

rondo_result gpu_seat_show(struct gpu_plans *plans)
{
    unsigned blocks = plans->launcher->kernels[CUDA_KERNEL_execute].blocks;
    unsigned share = plans->comm->size <= MOST_RANKS ? count_share(plans->comm) : 0;
    bool fits = share && blocks / share / PLAN_PROGRAMS_MAX > 0;
    rondo_result result = fits ? open_seat(plans, share) : RONDO_OK;

    if (result)
        return result;
    atomic_store_explicit(&plans->own->seat, fits ? SEAT_OPEN : SEAT_NONE, memory_order_release);
    gpu_ring(plans);
    return RONDO_OK;
}

/* Until that rank has shown its seat. */
static rondo_result await_seat(struct gpu_plans *plans, int rank, uint32_t *ret_seat)
{
    const struct timespec doze = {0, 50 * 1000};
    rondo_comm *comm = plans->comm;
    rondo_result result = RONDO_OK;

    while (!(*ret_seat =
                 atomic_load_explicit(&plans->views[rank].arena->seat, memory_order_acquire)) &&
           !result) {
        result = health_adopt(comm);
        if (!result && !process_alive(comm->processes[rank])) {
            rondo_fail(RONDO_ERROR_PEER,
                       "Rank %d (process %d) has ended while rank %d waited for "
                       "it to open its part of the device.",
                       rank, process_id(comm->processes[rank]), comm->rank);
            result = comm_break(comm, RONDO_ERROR_PEER, rank);
        }
        nanosleep(&doze, NULL);
    }
    return result;
}

static rondo_result connect_seat(struct gpu_plans *plans)
{
    rondo_comm *comm = plans->comm;
    CUdeviceptr *inboxes = plans->inboxes;
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < comm->size && !result; rank++) {
        const struct gpu_segment_card *card = &plans->views[rank].arena->inbox;

        if (card->bytes != plans->own->inbox.bytes)
            return rondo_fail(RONDO_ERROR_PEER,
                              "Rank %d has an inbox of another size than rank %d.", rank,
                              comm->rank);
        result = gpu_map(plans, rank, card, &inboxes[rank]);
    }
    return result ? result : cuda_seat_connect(plans->seat, inboxes);
}

rondo_result gpu_settle(rondo_comm *comm)
{
    struct gpu_plans *plans = comm->gpu ? comm->gpu->plans : NULL;
    rondo_result result = RONDO_OK;
    bool all = true;

    if (!plans)
        return RONDO_OK;
    for (int rank = 0; rank < comm->size && !result; rank++) {
        uint32_t seat = SEAT_NONE;

        result = await_seat(plans, rank, &seat);
        all &= seat == SEAT_OPEN;
    }
    if (result || !all)
        return result;
    result = cuda_enter(&plans->gpu->device);
    if (result)
        return result;
    result = connect_seat(plans);
    cuda_leave(&plans->gpu->device);
    if (result)
        return comm_break(comm, result, comm->rank);
    plans->seated = true;
    log_info("short calls on CUDA streams run as one kernel each");
    return RONDO_OK;
}

/* A call ends on a rank when that rank has what it wants; peers may not have read yet what it sent
 * them, and will write then into its inbox that they did. */
static bool await_settled(const struct gpu_plans *plans)
{
    const struct timespec doze = {0, 50 * 1000};
    const double patience = 1; /* seconds; a peer that comes later finds the inbox where it was */
    double began = clock_seconds();
    bool settled = true;

    while (plans->seat && !atomic_load_explicit(&plans->comm->broken, memory_order_acquire) &&
           !(settled = cuda_seat_is_settled(plans->seat)) && clock_seconds() - began < patience)
        nanosleep(&doze, NULL);
    return settled && !atomic_load_explicit(&plans->comm->broken, memory_order_acquire);
}

void gpu_seat_close(struct gpu_plans *plans)
{
    const rondo_comm *comm = plans->comm;
    bool settled = await_settled(plans);

    while (plans->programs) {
        struct gpu_program *program = plans->programs;

        plans->programs = program->next;
        cuda_program_close(program->program);
        plan_close(program->plan);
        free(program);
    }
    for (int rank = 0; rank < comm->size; rank++)
        if (plans->inboxes[rank] && !process_is_own(comm->processes[rank]))
            plans->gpu->device.driver->cuIpcCloseMemHandle(plans->inboxes[rank]);
    if (!settled)
        log_debug("peers may still write into the inbox of rank %d, so its memory stays",
                  comm->rank);
    cuda_seat_close(plans->seat, !settled);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The same answer on every rank. */
bool gpu_is_short(const struct gpu_plans *plans, const struct task *task)
{
    const struct choice_key *key = &task->key;
    bool scaled = task->made.handle && task->made.kernel.has_scale;
    bool named = key->algorithm && strcmp(key->algorithm, "auto") != 0;

    return plans->seated && !named && !scaled &&
           strcmp(plans->comm->settings.algorithm, "auto") == 0 &&
           !collective_is_pair(key->collective) &&
           key->count <=
               SHORT / (key->collective == RONDO_BARRIER ? 1 : rondo_type_size(key->type));
}

/* One round where there is a form of it; sums of both are the balanced tree's. */
static const struct algorithm *algorithm_of(rondo_collective collective)
{
    bool one_round = collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE;

    return algorithm_find(one_round ? "one_shot" : "direct");
}

static rondo_result compile(struct gpu_plans *plans, const struct choice_key *key,
                            struct gpu_program *program)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    rondo_result result =
        algorithm_plan(algorithm_of(key->collective), key->collective, plans->comm->size,
                       plans->comm->rank, key->root, &program->plan);

    if (result)
        return result;
    plans->gpu->device.driver->cuThreadExchangeStreamCaptureMode(&mode);
    result = cuda_program_open(plans->seat, program->plan, &program->program);
    plans->gpu->device.driver->cuThreadExchangeStreamCaptureMode(&mode);
    if (result)
        plan_close(program->plan);
    return result;
}

static rondo_result find_program(struct gpu_plans *plans, const struct choice_key *key,
                                 const struct gpu_program **ret_program)
{
    struct gpu_program *program = plans->programs;
    rondo_result result;

    while (program &&
           (program->plan->collective != key->collective || program->plan->root != key->root))
        program = program->next;
    if (!program) {
        program = calloc(1, sizeof(*program));
        if (!program)
            return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a plan.");
        result = compile(plans, key, program);
        if (result) {
            free(program);
            return result;
        }
        program->next = plans->programs;
        plans->programs = program;
    }
    *ret_program = program;
    return RONDO_OK;
}

rondo_result gpu_kernel_queue(struct gpu_plans *plans, const struct task *task,
                              struct gpu_flight *flight, CUstream stream)
{
    const struct gpu_program *program = NULL;
    struct gpu_run run;
    struct cuda_execute_call call;
    rondo_result result = find_program(plans, &task->key, &program);

    if (!result)
        result = gpu_run_open(plans, task, program->plan, stream, &run);
    if (!result)
        result = gpu_place_local(&run, task);
    if (result)
        return result;
    run.flight = flight;
    if (flight) {
        flight->kernel = true;
        flight->tasks[0].execution.plan = program->plan;
    }
    gpu_bring_input(&run);
    gpu_ops_flush(&run.ops);
    call =
        (struct cuda_execute_call){.op = collective_reduces(task->key.collective) ? &run.op : NULL,
                                   .count = task->key.count,
                                   .element = run.shape.element,
                                   .input = run.input.at,
                                   .output = run.output.at,
                                   .fingerprint = run.fingerprint};
    if (!run.ops.result)
        run.ops.result = cuda_execute(plans->seat, program->program, &call, stream);
    gpu_take_output(&run);
    gpu_run_close(&run);
    return run.ops.result;
}

/* ---- The watch ------------------------------------------------------------------------------- */

struct task *gpu_kernel_standing(struct gpu_plans *plans, struct gpu_flight *flight,
                                 bool *ret_foreign)
{
    struct task *task = flight->tasks;
    struct execution *x = &task->execution;
    struct cuda_look look;

    cuda_seat_look(plans->seat, &look);
    *ret_foreign = look.state == EXEC_MISMATCH;
    if ((look.state != EXEC_BLOCKED && !*ret_foreign) || look.step >= x->plan->step_count)
        return NULL;
    for (int i = 0; i < x->plan->programs; i++)
        x->programs[i].done = i != look.program;
    x->programs[look.program].at = look.step;
    x->programs[look.program].blamed = x->blamed = look.blamed;
    x->foreign = look.foreign;
    return task;
}

bool gpu_kernel_failed(const struct gpu_plans *plans)
{
    struct cuda_look look;

    cuda_seat_look(plans->seat, &look);
    return look.state == EXEC_MISMATCH;
}

void gpu_kernel_stop(struct gpu_plans *plans)
{
    if (plans->seat)
        cuda_seat_stop(plans->seat);
}
