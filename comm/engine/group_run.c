/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group_run.c - the calls of a group that ends, sorted into batches by (communicator, stream).
 *
 * Batches without a stream run side by side on this thread, which is what lets one thread make the
 * calls of many ranks.
 */
#include "comm/engine/group_run.h"

#include "comm/engine/stream.h"
#include "comm/engine/threads.h"

#include "base/fail.h"

#include <stdlib.h>

/* Those that have not been moved to a batch. */
struct calls {
    struct pending *all;
    size_t count;
};

static _Thread_local bool of_many;

bool group_is_of_many(void)
{
    return of_many;
}

/* True if the group holds calls on one communicator that differ in their streams. */
static bool streams_are_mixed(const struct calls *calls)
{
    size_t same = 0;

    while (same < calls->count && calls->all[same].stream == calls->all[0].stream)
        same++;
    if (same == calls->count)
        return false;
    for (size_t i = same; i < calls->count; i++)
        for (size_t j = 0; j < i; j++)
            if (calls->all[i].comm == calls->all[j].comm &&
                calls->all[i].stream != calls->all[j].stream)
                return true;
    return false;
}

static void task_of(const struct pending *pending, struct task *ret_task)
{
    task_init(ret_task, &pending->key, pending->input, pending->output);
    ret_task->made.handle = 0;
    if (pending->made.handle)
        ret_task->made = pending->made;
}

/* Move the calls of a communicator on a stream to `tasks`; returns how many. */
static int take_calls(struct calls *calls, const rondo_comm *comm, const rondo_stream *stream,
                      struct task *tasks)
{
    size_t kept = 0;
    int count = 0;

    for (size_t i = 0; i < calls->count; i++) {
        if (calls->all[i].comm == comm && calls->all[i].stream == stream)
            task_of(&calls->all[i], &tasks[count++]);
        else
            calls->all[kept++] = calls->all[i];
    }
    calls->count = kept;
    return count;
}

/* Move the calls on `stream` to `tasks`, with a batch for each communicator; returns how many. */
static int take_batches(struct calls *calls, const rondo_stream *stream, struct task *tasks,
                        struct batch *batches)
{
    int count = 0;

    for (size_t i = 0; i < calls->count;) {
        rondo_comm *comm = calls->all[i].comm;

        if (calls->all[i].stream != stream) {
            i++;
            continue;
        }
        batches[count] = (struct batch){.comm = comm, .tasks = tasks};
        batches[count].count = take_calls(calls, comm, stream, tasks);
        tasks += batches[count++].count;
    }
    return count;
}

/* Run the calls on `stream` (NULL: here), side by side. */
static rondo_result run_stream(struct calls *calls, rondo_stream *stream, struct task *tasks,
                               struct batch *batches)
{
    int count = take_batches(calls, stream, tasks, batches);

    if (!count)
        return RONDO_OK;
    if (stream)
        return stream->ops->add_batches(stream, batches, count);
    for (int i = 0; i < count; i++)
        batch_open(&batches[i], batches[i].comm, batches[i].tasks, batches[i].count);
    return run_by_backend(batches, count);
}

/* A share is what a group has for one stream. */
struct share {
    rondo_stream *stream;
    struct batch *batches;
    int count;
};

static rondo_result queue_share(void *argument)
{
    const struct share *share = argument;

    return share->stream->ops->add_batches(share->stream, share->batches, share->count);
}

/* A call that is queued when others of the group have been. */
static bool waits_for_others(const struct pending *pending)
{
    rondo_stream *stream = pending->stream;

    return stream && stream->ops->waits_for_others &&
           stream->ops->waits_for_others(stream, pending->comm);
}

static const struct pending *find_waiting(const struct calls *calls)
{
    for (size_t i = 0; i < calls->count; i++)
        if (waits_for_others(&calls->all[i]))
            return &calls->all[i];
    return NULL;
}

/* Streams on which calls wait until others of the group are queued: each has a thread. */
static rondo_result run_shares(struct calls *calls, struct task *tasks, struct batch *batches)
{
    struct share *shares = calloc(calls->count, sizeof(*shares));
    void **arguments = calloc(calls->count, sizeof(*arguments));
    const struct pending *pending;
    rondo_result result = RONDO_OK;
    int used = 0;

    if (!shares || !arguments)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group on several streams.");
    while (!result && (pending = find_waiting(calls))) {
        struct share *share = &shares[used];

        *share = (struct share){.stream = pending->stream, .batches = batches};
        share->count = take_batches(calls, share->stream, tasks, batches);
        for (int i = 0; i < share->count; i++)
            tasks += batches[i].count;
        batches += share->count;
        arguments[used++] = share;
    }
    if (!result)
        result = used == 1 ? queue_share(shares) : threads_run(queue_share, arguments, used);
    free(shares);
    free(arguments);
    return result;
}

/* Every call on its stream; those of no stream at the end, as they are waited for. */
static rondo_result run_streams(struct calls *calls, struct task *tasks, struct batch *batches)
{
    rondo_result result = RONDO_OK;
    rondo_result ran;
    bool many = false;

    for (size_t i = 1; i < calls->count; i++)
        many |= calls->all[i].comm != calls->all[0].comm;
    if (many && find_waiting(calls))
        result = run_shares(calls, tasks, batches);
    of_many = many;
    for (size_t i = 0; i < calls->count;) {
        if (!calls->all[i].stream) {
            i++;
            continue;
        }
        ran = run_stream(calls, calls->all[i].stream, tasks, batches);
        result = result ? result : ran;
    }
    of_many = false;
    ran = run_stream(calls, NULL, tasks, batches);
    return result ? result : ran;
}

/* The stream on which the communicator's calls of the group run: that of the first one, or this
 * thread (NULL) if any has no stream. */
static rondo_stream *find_home(const struct calls *calls, const rondo_comm *comm)
{
    rondo_stream *home = NULL;

    for (size_t i = 0; i < calls->count; i++) {
        if (calls->all[i].comm != comm)
            continue;
        if (!calls->all[i].stream)
            return NULL;
        home = home ? home : calls->all[i].stream;
    }
    return home;
}

/* A move is a call that runs on another stream than it was made for. */
struct move {
    rondo_stream *from, *home;
};

/* Each of these streams once in a row, as calls on one come in a row mostly. */
static bool is_repeated(const struct move *moves, size_t i)
{
    return i && moves[i].from == moves[i - 1].from && moves[i].home == moves[i - 1].home;
}

/*
 * Calls on one communicator must not wait for each other, and peers may have spread theirs over
 * other streams: all of a communicator run in one place, after what its streams have got, and its
 * streams wait for them.
 */
static rondo_result run_mixed(struct calls *calls, struct task *tasks, struct batch *batches)
{
    size_t count = calls->count;
    struct move *moves = malloc(count * sizeof(*moves));
    rondo_result result = RONDO_OK;

    if (!moves)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group of %zu calls.", count);
    for (size_t i = 0; i < count && !result; i++) {
        struct pending *pending = &calls->all[i];

        moves[i] = (struct move){pending->stream, find_home(calls, pending->comm)};
        pending->stream = moves[i].home;
        if (!is_repeated(moves, i))
            result = stream_follow(moves[i].home, moves[i].from);
    }
    if (!result)
        result = run_streams(calls, tasks, batches);
    for (size_t i = 0; i < count && !result; i++)
        if (moves[i].home && !is_repeated(moves, i))
            result = stream_follow(moves[i].from, moves[i].home);
    free(moves);
    return result;
}

/* An agreement waits for the other ranks; those of the group may be this thread's, or wait in the
 * agreement of another communicator of it. */
static rondo_result check_uniform(const struct calls *calls)
{
    bool many = false, uniform = false;

    for (size_t i = 0; i < calls->count; i++) {
        many |= calls->all[i].comm != calls->all[0].comm;
        uniform |= calls->all[i].comm->settle != NULL;
    }
    if (!many || !uniform)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "rondo_group_end: the group has calls on several communicators, one of them "
                      "with RONDO_UNIFORM, which agrees on each call: make a group of each.");
}

/* A group of two calls on one communicator without a stream has ended well. */
static void note(struct group_path *path, const struct batch *batch, size_t count)
{
    if (count == GROUP_PATH_CALLS && batch->done && batch->count == GROUP_PATH_CALLS)
        group_path_note(path, batch->comm, batch->tasks);
}

rondo_result group_run(struct pending *pending, size_t count, struct group_path *path)
{
    struct calls list = {pending, count}, *calls = &list;
    struct task few_tasks[GROUP_FEW], *tasks = few_tasks;
    struct batch few_batches[GROUP_FEW] = {0}, *batches = few_batches;
    rondo_result result;

    result = check_uniform(calls);
    if (result)
        return result;
    if (count > GROUP_FEW) {
        tasks = malloc(count * sizeof(*tasks));
        batches = malloc(count * sizeof(*batches));
    }
    if (!tasks || !batches)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group of %zu calls.", count);
    else if (streams_are_mixed(calls))
        result = run_mixed(calls, tasks, batches);
    else
        result = run_streams(calls, tasks, batches);
    if (!result)
        note(path, batches, count);
    if (count > GROUP_FEW) {
        free(tasks);
        free(batches);
    }
    return result;
}
