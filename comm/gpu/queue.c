/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * queue.c - a batch in the order of a CUDA stream, run by the host:
 *
 *     CUDA stream   copy to the host | ready = 1 | wait: done = 1 | copy to the device | free = 1
 *     worker                           await ready, run the batch, done = 1
 *
 * A long call is several short ones: the copies of one piece run beside the host's work on another.
 *
 * The batch takes its turn on the communicator when it is queued. In a graph the stream's part is
 * recorded, with a host function in front that clears the flags and queues the batch again at every
 * launch. Where there are graphs, calls outside of them get their turns from their streams as well:
 * a turn that was taken at the call could come before that of a launch, which the stream is behind.
 */
#include "comm/engine/run.h"
#include "comm/engine/stream.h"
#include "comm/failure/error.h"
#include "comm/gpu/inside.h"

#include "base/caller/times.h"
#include "base/fail.h"
#include "cuda/stock.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

struct staged {
    struct staged *next; /* of the same graph or another */
    struct gpu *gpu;
    struct gpu_block *block;
    struct gpu_errors *errors;
    int count; /* of tasks; the batch is written where it runs, perhaps at the same time */
    struct batch batch;
    bool in_graph;
    bool by_stream;         /* the stream hands it over */
    bool last_piece;        /* of a call */
    _Atomic int users;      /* who queues it, and who runs it if the stream hands it over */
    struct staged *before;  /* the piece before of the same call, NULL: it is the first */
    struct gpu_place place; /* where its stream's part is */
    struct task *originals; /* what tasks are before they run: [count], behind the tasks */
    struct stage *stages;   /* behind the originals */
    struct task tasks[];
};

static void free_staged(struct staged *staged)
{
    if (atomic_fetch_sub_explicit(&staged->users, 1, memory_order_acq_rel) != 1)
        return;
    if (staged->errors)
        gpu_errors_drop(staged->errors);
    gpu_spare_give(staged->gpu, staged);
}

/* The address of a block for a device that moves the messages. */
static char *block_on_device(const struct gpu_block *block)
{
    return (char *)(uintptr_t)(block->device_flags + sizeof(struct gpu_flags));
}

static rondo_result make(struct gpu *gpu, const struct batch *batch, struct staged **ret_staged)
{
    bool on_device = gpu_moves(gpu, batch);
    size_t count = (size_t)batch->count;
    struct staged *staged = gpu_spare_take(gpu, sizeof(*staged) + 2 * count * sizeof(struct task) +
                                                    count * sizeof(struct stage));
    size_t bytes = 0;
    rondo_result result;

    if (!staged)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for %zu calls on a CUDA stream.",
                          count);
    *staged = (struct staged){.gpu = gpu,
                              .count = batch->count,
                              .batch = {.comm = batch->comm, .count = batch->count},
                              .users = 1,
                              .originals = staged->tasks + count};
    staged->stages = (struct stage *)(void *)(staged->originals + count);
    memcpy(staged->originals, batch->tasks, count * sizeof(struct task));
    for (size_t i = 0; i < count; i++)
        staged->originals[i].backend = on_device ? &gpu_backend : &thread_backend;
    staged->batch.tasks = staged->originals;
    result = stage_plan(gpu, &staged->batch, staged->stages, &bytes);
    if (!result)
        result = gpu_block_take(gpu, bytes, &staged->block);
    if (result) {
        gpu_spare_give(gpu, staged);
        return result;
    }
    stage_place(staged->stages, staged->originals, batch->count, staged->block->payload,
                on_device ? block_on_device(staged->block) : staged->block->payload);
    *ret_staged = staged;
    return RONDO_OK;
}

/* The stream may be far behind, so this waits politely; a broken communicator waits for nothing. */
static void await_ready(const struct staged *staged)
{
    enum { POLLS = 200 };

    for (int polls = 0;
         !atomic_load_explicit(&staged->block->flags->ready.value, memory_order_acquire) &&
         !atomic_load_explicit(&staged->batch.comm->broken, memory_order_acquire);
         polls++) {
        if (polls < POLLS)
            sched_yield();
        else
            doze_for(DOZE_OWN);
    }
}

static rondo_result run_on_device(struct staged *staged)
{
    const struct cuda_driver *cuda = staged->gpu->device.driver;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    struct batch *batch = &staged->batch;
    rondo_result entered = cuda_enter(&staged->gpu->device), result;

    if (entered) /* it has its turn, which must be used up */
        comm_break(batch->comm, entered, batch->comm->rank);
    /* Some thread may be capturing, which forbids others to pin and to allocate. */
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    for (int i = 0; i < batch->count; i++)
        stage_in_plain(&staged->stages[i]);
    result = run_batches(batch, 1);
    gpu_move_end(staged->gpu);
    for (int i = 0; i < batch->count && !result; i++)
        stage_out_plain(&staged->stages[i]);
    cuda->cuThreadExchangeStreamCaptureMode(&mode);
    if (!entered)
        cuda_leave(&staged->gpu->device);
    return result;
}

/* The call has ended, or is left out: the stream goes on. */
static void let_go_on(struct staged *staged)
{
    struct gpu_flags *flags = staged->block->flags;
    bool in_graph = staged->in_graph;

    if (!in_graph)
        free_staged(staged);
    /* Release, to the stream: what the call wrote comes before. After that the device's part of the
     * communicator may be closed. */
    atomic_store_explicit(&flags->done.value, 1, memory_order_release);
    if (!in_graph)
        cuda_count_inflights(-1);
}

/* The worker's part. */
static void run(void *context)
{
    struct staged *staged = context;
    rondo_result result;

    await_ready(staged);
    gpu_ran_on_host(&staged->batch);
    result = staged->originals[0].backend->on_device ? run_on_device(staged)
                                                     : run_batches(&staged->batch, 1);
    if (result)
        gpu_errors_note(staged->errors, result);
    let_go_on(staged);
}

/* If the worker cannot take it, it is to be run here, as its turn has come up, and peers wait for
 * it: false. */
static bool hand_over(struct staged *staged)
{
    struct batch *batch = &staged->batch;

    memcpy(staged->tasks, staged->originals, (size_t)batch->count * sizeof(struct task));
    batch_open(batch, batch->comm, staged->tasks, batch->count);
    return !rondo_stream_call(staged->gpu->worker, run, staged);
}

/* At every launch of a graph, or once. No CUDA calls are allowed here. */
static void CUDA_CB by_stream(void *context)
{
    struct staged *staged = context;
    struct gpu_flags *flags = staged->block->flags;
    struct gpu *gpu = staged->gpu; /* the call may have ended when it is handed over */
    bool in_graph = staged->in_graph, shut, taken;

    atomic_store_explicit(&flags->ready.value, 0, memory_order_relaxed);
    atomic_store_explicit(&flags->done.value, 0, memory_order_relaxed);
    atomic_store_explicit(&flags->free.value, 0, memory_order_release);
    lock_take(&gpu->lock); /* who closes the communicator comes before it, or waits for its turn */
    shut = gpu->shut;
    taken = !shut && hand_over(staged);
    lock_give(&gpu->lock);
    if (shut) { /* the stream goes on without the call, whose communicator was closed */
        gpu_errors_note(staged->errors, rondo_fail(gpu->shut, "%s", gpu->why));
        let_go_on(staged);
    } else if (!taken) {
        run(staged);
    }
    /* Release, pairs with the acquires in gpu.c. The communicator may be closed then. */
    if (!in_graph)
        atomic_fetch_sub_explicit(&gpu->behind, 1, memory_order_release);
}

/* Order the first piece of a call after other calls, by the stream if there are graphs; elsewhere
 * the turns of calls are order enough. */
static rondo_result take_place(struct staged *staged, CUstream stream)
{
    struct gpu_sequence *sequence = &staged->gpu->sequence;
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
    rondo_result result = RONDO_OK;

    if (staged->before) {
        staged->place = staged->before->place;
        staged->by_stream = staged->before->by_stream;
        return RONDO_OK;
    }
    if (!atomic_load_explicit(&sequence->graphs, memory_order_acquire))
        result = cuda_result(sequence->cuda->cuStreamIsCapturing(stream, &capture),
                             "cuStreamIsCapturing");
    else
        staged->by_stream = true;
    staged->by_stream |= capture == CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if (result || !staged->by_stream)
        return result;
    return gpu_sequence_enter(sequence, stream, &staged->place);
}

/* One more call that its stream hands over, or one less. */
static void count_behind(struct staged *staged, int more)
{
    staged->users += more;
    atomic_fetch_add_explicit(&staged->gpu->behind, more, memory_order_relaxed);
    cuda_count_inflights(more);
}

/* Queue what the stream does before the host's part; record_after() queues what it does after
 * it. */
static rondo_result record_before(struct staged *staged, CUstream stream)
{
    const struct cuda_driver *cuda = staged->gpu->device.driver;
    rondo_result result = take_place(staged, stream);

    staged->in_graph = staged->place.capture != 0;
    if (!result && staged->by_stream) {
        count_behind(staged, !staged->in_graph);
        result = cuda_result(cuda->cuLaunchHostFunc(stream, by_stream, staged), "cuLaunchHostFunc");
        count_behind(staged, -(result && !staged->in_graph));
    }
    for (int i = 0; i < staged->count && !result; i++)
        result = stage_in(staged->gpu, &staged->stages[i], stream);
    if (result)
        return result;
    return cuda_result(cuda->cuStreamWriteValue32(stream, gpu_ready_address(staged->block), 1, 0),
                       "cuStreamWriteValue32");
}

static rondo_result record_after(struct staged *staged, CUstream stream)
{
    const struct cuda_driver *cuda = staged->gpu->device.driver;
    rondo_result result =
        cuda_result(cuda->cuStreamWaitValue32(stream, gpu_done_address(staged->block), 1,
                                              CU_STREAM_WAIT_VALUE_EQ),
                    "cuStreamWaitValue32");

    for (int i = 0; i < staged->count && !result; i++)
        result = stage_out(staged->gpu, &staged->stages[i], stream);
    if (!result)
        result =
            cuda_result(cuda->cuStreamWriteValue32(stream, gpu_free_address(staged->block), 1, 0),
                        "cuStreamWriteValue32");
    if (result || !staged->by_stream || !staged->last_piece)
        return result;
    return gpu_sequence_leave(&staged->gpu->sequence, &staged->place);
}

typedef rondo_result (*recorder)(struct staged *staged, CUstream stream);

/* For all of a list, each with its device current. */
static rondo_result record(struct staged *list, CUstream stream, recorder what)
{
    rondo_result result = RONDO_OK;

    for (struct staged *staged = list; staged && !result; staged = staged->next) {
        result = cuda_enter(&staged->gpu->device);
        if (result)
            return result;
        result = what(staged, stream);
        cuda_leave(&staged->gpu->device);
    }
    return result;
}

/* ---- The list of what is to be done ---------------------------------------------------------- */

struct list {
    struct gpu_errors *errors;
    struct staged *first, *tail, **last;
};

/* At the end of it. */
static rondo_result append(struct list *list, const struct batch *batch)
{
    struct gpu *gpu;
    rondo_result result = gpu_of(batch->comm, &gpu);

    if (!result)
        result = cuda_enter(&gpu->device);
    if (result)
        return result;
    result = make(gpu, batch, list->last);
    cuda_leave(&gpu->device);
    if (result)
        return result;
    (*list->last)->last_piece = true;
    if (list->tail && list->tail->gpu == gpu) {
        list->tail->last_piece = false;
        (*list->last)->before = list->tail;
    }
    list->tail = *list->last;
    (*list->last)->errors = gpu_errors_hold(list->errors);
    list->last = &(*list->last)->next;
    return RONDO_OK;
}

/* True if the call may be several ones, of parts of its buffers. The same answer on every rank. */
static bool is_divisible(const struct batch *batch)
{
    rondo_collective collective = batch->tasks[0].key.collective;

    return batch->count == 1 && batch->comm->size > 1 &&
           (collective == RONDO_ALL_REDUCE || collective == RONDO_REDUCE ||
            collective == RONDO_BROADCAST);
}

/* The batch, or what it is cut into. */
static rondo_result append_pieces(struct list *list, const struct batch *batch)
{
    const struct task *whole = &batch->tasks[0];
    size_t element = rondo_type_size(whole->key.type), each;
    struct gpu *gpu;
    rondo_result result;

    if (!is_divisible(batch))
        return append(list, batch);
    result = gpu_of(batch->comm, &gpu);
    if (result)
        return result;
    each = gpu->piece / element;
    if (whole->key.count <= each || gpu_moves(gpu, batch))
        return append(list, batch);
    for (size_t start = 0; start < whole->key.count && !result; start += each) {
        struct task piece = *whole;
        struct batch part = {.comm = batch->comm, .tasks = &piece, .count = 1};

        piece.key.count = whole->key.count - start < each ? whole->key.count - start : each;
        if (whole->input)
            piece.input = (const char *)whole->input + start * element;
        if (whole->output)
            piece.output = (char *)whole->output + start * element;
        result = append(list, &part);
    }
    return result;
}

/* Part of it may be queued: nothing that it waits for or writes to may go away. */
static void give_up(struct staged *list)
{
    while (list) {
        struct staged *staged = list;

        list = staged->next;
        gpu_block_lose(staged->gpu, staged->block);
        atomic_store_explicit(&staged->block->flags->done.value, 1, memory_order_release);
        free_staged(staged);
    }
}

/* Keep what a graph uses until the communicator is closed: its launches are on their way, too. */
static void keep(struct staged *staged)
{
    struct gpu *gpu = staged->gpu;

    gpu_block_keep(gpu, staged->block);
    lock_take(&gpu->lock);
    if (!gpu->captured)
        cuda_count_inflights(1);
    staged->next = gpu->captured;
    gpu->captured = staged;
    lock_give(&gpu->lock);
}

/*
 * Several batches are of ranks of this process, which wait for each other: all their data is on its
 * way before the stream waits for any.
 */
static rondo_result record_all(const struct list *list, CUstream stream,
                               const struct batch *batches, int count)
{
    rondo_result result = record(list->first, stream, record_before);

    if (!result && count == 1 && !list->first->in_graph)
        gpu_gate_pass_batch(&batches[0]);
    if (!result)
        result = record(list->first, stream, record_after);
    for (struct staged *staged = list->first; staged && !result; staged = staged->next)
        if (!staged->by_stream)
            cuda_count_inflights(1);
    return result;
}

rondo_result gpu_queue(CUstream stream, const struct batch *batches, int count,
                       struct gpu_errors *errors)
{
    struct list list = {.errors = errors, .last = &list.first};
    struct staged *next;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < count && !result; i++)
        result = append_pieces(&list, &batches[i]);
    if (!result) {
        cuda_queueing_begin();
        result = record_all(&list, stream, batches, count);
        cuda_queueing_end();
    }
    if (result) {
        give_up(list.first);
        for (int i = 0; i < count; i++) /* peers wait for what was not queued, and so do parts */
            comm_break(batches[i].comm, result, batches[i].comm->rank);
        return result;
    }
    for (struct staged *staged = list.first; staged; staged = next) {
        next = staged->next;
        if (staged->in_graph)
            keep(staged);
        else if (staged->by_stream)
            free_staged(staged);
        else if (!hand_over(staged))
            run(staged);
    }
    return RONDO_OK;
}

void gpu_captured_close(struct gpu *gpu)
{
    struct staged *staged;

    while ((staged = gpu->captured)) {
        gpu->captured = staged->next;
        free_staged(staged);
    }
}
