/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fate.c - strikes the victim at a step of its plan.
 *
 * The linker leads what moves data (kernels, reads across processes) and the executor itself
 * through this file. Each movement is a step; the one that was chosen is done in two parts, and the
 * fate strikes in between: a rank that is stopped there has written half of its bytes into the
 * memory of a peer, and writes the others when it goes on.
 */
#include "device.h"

#include "kernels/kernels.h"
#include "plan/exec.h"
#include "transport/memory/process.h"

#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SOURCES = 64 };

static _Thread_local struct {
    bool counts, data_only;
    struct steps steps;
    unsigned moment;
    struct fate_post *armed; /* NULL: nothing will happen */
} own;

double soak_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* ---- What happens ---------------------------------------------------------------------------- */

/* The others need not settle if they wait until this rank is out of its step: then it goes on after
 * this many seconds more than the timeout. */
static const double LINGER_MOST = 1.5, ABORT_MOST = 0.3;

static void wait_for_others(struct fate_post *post, enum phase phase, double most)
{
    double end = soak_now() + most;

    while (soak_now() < end &&
           !stage_others_reached(post->stage, post->scene->size, post->rank, phase))
        usleep(500);
}

void fate_linger(struct fate_post *post)
{
    const struct fate *fate = &post->scene->fate;
    double timeout = post->scene->timeout;

    if (fate->in_time)
        usleep((useconds_t)(1e6 * fate->pause * timeout));
    else
        wait_for_others(post, PHASE_SETTLED, timeout + LINGER_MOST);
}

static void note_errors(struct fate_post *post)
{
    struct rank_report *reports = post->stage->reports;

    for (int r = 0; r < post->scene->size; r++)
        /* Acquire, pairs with the release where the phase is set: the result came before. */
        if (r != post->rank && reports[r].called &&
            atomic_load_explicit(&post->stage->phases[r], memory_order_acquire) >= PHASE_ENDED &&
            reports[r].result)
            reports[post->rank].after_errors = true;
}

static void strike(const char *where)
{
    struct fate_post *post = own.armed;
    struct rank_report *report = &post->stage->reports[post->rank];

    own.armed = NULL;
    snprintf(report->where, sizeof(report->where), "%s", where);
    switch (post->scene->fate.kind) {
    case FATE_STOP:
        if (post->scene->transport == SOAK_GPU)
            soak_device_stop();
        else
            raise(SIGSTOP); /* of this thread: where there are others, they run on for a moment */
        break;
    case FATE_KILL:
        raise(SIGKILL);
        break;
    case FATE_ABORT:
        atomic_store_explicit(&post->aborts, 1, memory_order_release);
        if (!post->scene->fate.lingers)
            return;
        while (!atomic_load_explicit(&post->aborted, memory_order_acquire))
            usleep(100);
        wait_for_others(post, PHASE_SETTLED, ABORT_MOST);
        break;
    default:
        fate_linger(post);
    }
    note_errors(post);
}

void fate_count(void)
{
    own.counts = true;
    own.steps = (struct steps){0, 0};
}

struct steps fate_counted(void)
{
    own.counts = false;
    return own.steps;
}

void fate_arm(struct fate_post *post, bool data_only, unsigned moment)
{
    fate_count();
    own.data_only = data_only;
    own.moment = moment;
    own.armed = post;
}

void fate_strike(const char *where)
{
    if (own.armed)
        strike(where);
}

void fate_finish(void)
{
    own.counts = false;
    if (!own.armed)
        return;
    own.armed->stage->reports[own.armed->rank].missed = true;
    strike("after the call");
}

/* One more step. Is it the one? */
static bool is_now(bool moves_data)
{
    unsigned number = own.data_only ? own.steps.data : own.steps.all;

    if (!own.counts)
        return false;
    own.steps.all++;
    own.steps.data += moves_data;
    return own.armed && number == own.moment && (moves_data || !own.data_only);
}

static size_t first_part(size_t whole)
{
    return whole * own.armed->scene->fate.parts / FATE_PARTS;
}

/* ---- Where it happens: the linker's --wrap --------------------------------------------------- */

void __real_kernel_copy(void *to, const void *from, size_t bytes);
void __wrap_kernel_copy(void *to, const void *from, size_t bytes);
void __real_kernel_stream(void *to, const void *from, size_t bytes);
void __wrap_kernel_stream(void *to, const void *from, size_t bytes);
void __real_kernel_reduce(const struct kernel_op *op, const struct kernel_call *call);
void __wrap_kernel_reduce(const struct kernel_op *op, const struct kernel_call *call);
rondo_result __real_process_read(const struct process *process, void *to, uint64_t from,
                                 size_t bytes);
rondo_result __wrap_process_read(const struct process *process, void *to, uint64_t from,
                                 size_t bytes);
enum exec_state __real_exec_advance(struct execution *execution);
enum exec_state __wrap_exec_advance(struct execution *execution);

void __wrap_kernel_copy(void *to, const void *from, size_t bytes)
{
    size_t part = 0;

    if (is_now(true)) {
        part = first_part(bytes);
        __real_kernel_copy(to, from, part);
        strike("a copy");
    }
    __real_kernel_copy((char *)to + part, (const char *)from + part, bytes - part);
}

void __wrap_kernel_stream(void *to, const void *from, size_t bytes)
{
    size_t part = 0;

    if (is_now(true)) {
        part = first_part(bytes);
        __real_kernel_stream(to, from, part);
        strike("a copy past the cache");
    }
    __real_kernel_stream((char *)to + part, (const char *)from + part, bytes - part);
}

/* Makes the call over a part of its elements. */
static void reduce_part(const struct kernel_op *op, const struct kernel_call *call, size_t first,
                        size_t count)
{
    size_t offset = first * kernel_type_bytes[op->type];
    const void *sources[SOURCES];
    void *destinations[SOURCES];
    struct kernel_call part = *call;

    for (int i = 0; i < call->source_count; i++)
        sources[i] = (const char *)call->sources[i] + offset;
    for (int i = 0; i < call->destination_count; i++)
        destinations[i] = (char *)call->destinations[i] + offset;
    part.sources = sources;
    part.destinations = destinations;
    part.count = count;
    __real_kernel_reduce(op, &part);
}

void __wrap_kernel_reduce(const struct kernel_op *op, const struct kernel_call *call)
{
    size_t part;

    if (!is_now(true) || call->source_count > SOURCES || call->destination_count > SOURCES) {
        __real_kernel_reduce(op, call);
        return;
    }
    part = first_part(call->count);
    reduce_part(op, call, 0, part);
    strike("a reduce");
    reduce_part(op, call, part, call->count - part);
}

rondo_result __wrap_process_read(const struct process *process, void *to, uint64_t from,
                                 size_t bytes)
{
    rondo_result result = RONDO_OK;
    size_t part = 0;

    if (is_now(true)) {
        part = first_part(bytes);
        if (part)
            result = __real_process_read(process, to, from, part);
        strike("a read across processes");
    }
    if (result || part == bytes)
        return result;
    return __real_process_read(process, (char *)to + part, from + part, bytes - part);
}

/* Between steps, and behind the last one. */
enum exec_state __wrap_exec_advance(struct execution *execution)
{
    enum exec_state state = __real_exec_advance(execution);

    if (state != EXEC_BLOCKED && is_now(false))
        strike(state == EXEC_DONE ? "behind the last step" : "between steps");
    return state;
}
