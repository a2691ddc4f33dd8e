/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c - how graphs are replayed.
 *
 * A launch is one operation of its stream. A graph that is a chain is run by the stream's thread,
 * node after node. In any other, a node whose last need is met is run at once: the first such by
 * the thread that met it, others by threads of the pool, so branches run side by side. An
 * executable graph runs once at a time: a launch waits for the one before.
 */
#include "standin/driver/graph.h"

#include "standin/driver/base/call.h"
#include "standin/driver/capture.h"
#include "standin/driver/channel.h"
#include "standin/driver/context.h"
#include "standin/driver/external.h"
#include "standin/driver/pool.h"
#include "standin/driver/queue.h"
#include "standin/driver/stream.h"

#include <pthread.h>
#include <stdlib.h>

struct step {
    struct op *op;
    size_t needs_count;
    size_t *next; /* steps that need this one */
    size_t next_count;
    unsigned branch; /* of the first step that it needs, or a new one where that has gone on */
};

struct CUgraphExec_st {
    struct CUgraphExec_st *next; /* all live ones */
    struct step *steps;
    size_t count;
    bool chain;
    unsigned branches;
    unsigned references; /* the handle, launches */
    struct point last;   /* launch */
};

/* How a step passes through a channel, as an operation of a stream does. */
struct passage {
    struct channel *channel;
    struct ticket ticket;
};

/* The arrays are NULL in a graph within a graph: all of it is one operation of the outer one. */
struct launch {
    struct op op;
    CUgraphExec exec;
    struct record **records;  /* of each step that is an event's */
    struct passage *passages; /* of each step */
};

struct job {
    struct run *run;
    size_t step;
};

/* One run of a graph that is no chain. */
struct run {
    const struct CUgraphExec_st *exec;
    const struct launch *launch;
    pthread_mutex_t lock;
    pthread_cond_t over;
    size_t *needs_left; /* of each step */
    struct job *jobs;   /* of each step that another thread runs */
    size_t busy;        /* threads that work at it */
};

static CUgraphExec execs;

static bool known_exec(CUgraphExec exec)
{
    CUgraphExec known = execs;
    while (known && known != exec)
        known = known->next;
    return known;
}

static void free_exec(CUgraphExec exec)
{
    for (size_t i = 0; exec->steps && i < exec->count; i++) {
        op_release(exec->steps[i].op);
        free(exec->steps[i].next);
    }
    free(exec->steps);
    free(exec);
}

/* Gives up a reference of the executable graph. Without the lock. */
static void let_go(CUgraphExec exec)
{
    call_lock();
    bool last = --exec->references == 0;
    if (last)
        queue_forget(exec->last);
    call_unlock();
    if (last)
        free_exec(exec);
}

/* Branches of a graph are as streams: each has a channel. */
static unsigned branch_of(CUgraphExec exec, const struct CUgraphNode_st *node)
{
    const struct step *before = node->needs_count ? &exec->steps[node->needs[0]->index] : NULL;
    return before && !before->next_count ? before->branch : exec->branches++;
}

static bool add_next(struct step *step, size_t index)
{
    size_t *next = realloc(step->next, (step->next_count + 1) * sizeof *next);
    if (!next)
        return false;
    next[step->next_count++] = index;
    step->next = next;
    return true;
}

/* Copies the graph as it is now: later changes to it are no matter. */
static CUgraphExec make_exec(CUgraph graph)
{
    CUgraphExec exec = calloc(1, sizeof *exec);
    if (!exec)
        return NULL;
    exec->steps = calloc(graph->count + 1, sizeof *exec->steps);
    exec->references = 1;
    exec->chain = true;
    bool good = exec->steps;
    for (size_t i = 0; good && i < graph->count; i++) {
        const struct CUgraphNode_st *node = graph->nodes[i];
        exec->steps[i].op = op_reference(node->op);
        exec->steps[i].needs_count = node->needs_count;
        exec->steps[i].branch = branch_of(exec, node);
        exec->count++;
        exec->chain &= node->needs_count == (i ? 1 : 0);
        for (size_t k = 0; good && k < node->needs_count; k++) {
            exec->chain &= node->needs[k]->index + 1 == i;
            good = add_next(&exec->steps[node->needs[k]->index], i);
        }
    }
    if (good)
        return exec;
    free_exec(exec);
    return NULL;
}

static void run_job(void *argument);

/* The step has all it needs: it is `*mine` if the caller has none to run yet, else another
 * thread's. */
static void begin_step(struct run *run, size_t index, size_t *mine)
{
    if (*mine == run->exec->count) {
        *mine = index;
        return;
    }
    run->jobs[index] = (struct job){run, index};
    run->busy++;
    pool_run(run_job, &run->jobs[index]);
}

/* In one's turn. Before the step: those behind it may go, too, if the step runs by itself. */
static void pass(const struct launch *launch, size_t index, bool before)
{
    struct passage *passage = launch->passages ? &launch->passages[index] : NULL;
    bool goes = op_passage(launch->exec->steps[index].op) == OP_GOES;
    if (!passage)
        return;
    call_lock();
    if (before)
        channel_await(passage->channel, &passage->ticket);
    if (before == goes)
        channel_leave(passage->channel);
    call_unlock();
}

static void run_step(const struct launch *launch, size_t index)
{
    struct op *op = launch->exec->steps[index].op;
    pass(launch, index, true);
    if (launch->records && external_is(op))
        external_run(op, launch->records[index]);
    else
        op->kind->run(op);
    pass(launch, index, false);
}

/* Runs the step, then one that needed it and now can go, and so on; without the run's lock. */
static void run_steps(struct run *run, size_t index)
{
    const struct CUgraphExec_st *exec = run->exec;
    while (index < exec->count) {
        const struct step *step = &exec->steps[index];
        run_step(run->launch, index);
        index = exec->count;
        pthread_mutex_lock(&run->lock);
        for (size_t i = 0; i < step->next_count; i++) {
            if (--run->needs_left[step->next[i]] == 0)
                begin_step(run, step->next[i], &index);
        }
        pthread_mutex_unlock(&run->lock);
    }
    pthread_mutex_lock(&run->lock);
    if (--run->busy == 0)
        pthread_cond_signal(&run->over);
    pthread_mutex_unlock(&run->lock);
}

static void run_job(void *argument)
{
    const struct job *job = argument;
    run_steps(job->run, job->step);
}

static void run_branches(const struct CUgraphExec_st *exec, struct run *run)
{
    size_t mine = exec->count;
    run->busy = 1;
    pthread_mutex_init(&run->lock, NULL);
    pthread_cond_init(&run->over, NULL);
    pthread_mutex_lock(&run->lock);
    for (size_t i = 0; i < exec->count; i++)
        run->needs_left[i] = exec->steps[i].needs_count;
    for (size_t i = 0; i < exec->count; i++) {
        if (!exec->steps[i].needs_count)
            begin_step(run, i, &mine);
    }
    pthread_mutex_unlock(&run->lock);
    run_steps(run, mine);
    pthread_mutex_lock(&run->lock);
    while (run->busy)
        pthread_cond_wait(&run->over, &run->lock);
    pthread_mutex_unlock(&run->lock);
    pthread_cond_destroy(&run->over);
    pthread_mutex_destroy(&run->lock);
}

static void run_launch(struct op *op)
{
    const struct launch *launch = (struct launch *)op;
    const struct CUgraphExec_st *exec = launch->exec;
    struct run run = {.exec = exec,
                      .launch = launch,
                      .needs_left = calloc(exec->count + 1, sizeof(size_t)),
                      .jobs = calloc(exec->count + 1, sizeof(struct job))};
    if (exec->chain || !run.needs_left || !run.jobs) {
        for (size_t i = 0; i < exec->count; i++)
            run_step(launch, i);
    } else {
        run_branches(exec, &run);
    }
    free(run.needs_left);
    free(run.jobs);
}

static void close_launch(struct op *op)
{
    free(((struct launch *)op)->records);
    free(((struct launch *)op)->passages);
    let_go(((struct launch *)op)->exec);
}

/* The launch's steps enter channels in their order, the first branch that of the stream. */
static void enter_launch(struct op *op, CUstream stream)
{
    const struct launch *launch = (struct launch *)op;
    for (size_t i = 0; i < launch->exec->count; i++) {
        unsigned number = stream->channel_number + launch->exec->steps[i].branch;
        struct passage *passage = &launch->passages[i];
        passage->channel = channel_get(&stream->context->channels, stream->priority, number);
        channel_enter(passage->channel, &passage->ticket);
    }
}

static const struct op_kind launch_kind = {CU_GRAPH_NODE_TYPE_GRAPH, run_launch, close_launch, NULL,
                                           enter_launch};

CUresult cuGraphInstantiate(CUgraphExec *ret_exec, CUgraph graph, unsigned long long flags)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    if (!ret_exec)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    result = capture_forbid();
    if (result) {
        call_unlock();
        return result;
    }
    bool known = graph_known(graph);
    CUgraphExec exec = known ? make_exec(graph) : NULL;
    if (exec) {
        exec->next = execs;
        execs = exec;
    }
    call_unlock();
    if (!exec)
        return known ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
    *ret_exec = exec;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *how)
{
    if (!how)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = cuGraphInstantiate(exec, graph, how->flags);
    how->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
    how->hErrNode_out = NULL;
    return result;
}

/* Finds what the events of the graph mean in this launch, and room for its tickets. False: memory
 * is out. */
static bool prepare(struct launch *launch)
{
    const struct CUgraphExec_st *exec = launch->exec;
    launch->passages = calloc(exec->count + 1, sizeof *launch->passages);
    launch->records = launch->passages ? calloc(exec->count + 1, sizeof(struct record *)) : NULL;
    for (size_t i = 0; launch->records && i < exec->count; i++) {
        if (external_is(exec->steps[i].op))
            launch->records[i] = external_begin(exec->steps[i].op);
    }
    return launch->records;
}

/* Puts a launch behind the executable graph's last one, wherever that is. Under the lock, which
 * it gives up. */
static CUresult launch(CUstream stream, CUgraphExec exec)
{
    struct launch *launch = op_new(sizeof *launch, &launch_kind);
    if (launch) {
        launch->exec = exec;
        exec->references++;
    }
    bool captured = capture_active(stream);
    bool ordered = captured || (launch && queue_put_after(stream, exec->last) && prepare(launch));
    CUresult result = ordered ? stream_put(stream, &launch->op) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!result && !captured) {
        queue_forget(exec->last);
        exec->last = queue_point(stream);
    }
    call_unlock();
    if (result)
        op_release(&launch->op);
    return result;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream handle)
{
    CUstream stream = NULL;
    CUresult result = stream_enter(__func__, handle, &stream);
    if (result)
        return result;
    if (known_exec(exec))
        return launch(stream, exec);
    call_unlock();
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    CUresult result = call_enter(__func__);
    if (result)
        return result;
    call_lock();
    bool known = known_exec(exec);
    CUgraphExec *link = &execs;
    while (*link && *link != exec)
        link = &(*link)->next;
    if (known)
        *link = exec->next;
    call_unlock();
    if (!known)
        return CUDA_ERROR_INVALID_VALUE;
    let_go(exec);
    return CUDA_SUCCESS;
}
