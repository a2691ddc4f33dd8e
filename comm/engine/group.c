/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - calls of one thread, collected and run together.
 *
 * At the end, joins are done first, then calls are sorted into batches by (communicator, stream).
 * Batches without a stream run side by side on this thread, which is what lets one thread make the
 * calls of many ranks.
 */
#include "comm/engine/call.h"
#include "comm/engine/run.h"
#include "comm/engine/stream.h"
#include "comm/engine/threads.h"

#include "base/cancel.h"
#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

/* A communicator to be opened. */
struct joining {
    rondo_result (*join)(void *argument);
    void *argument;
};

struct pending {
    rondo_comm *comm;
    rondo_stream *stream;
    struct task task;
};

/* With the usual model of thread-local storage: one variable that is found without a lookup would
 * make all of the library's static, and then dlopen() finds no room for it. */
static _Thread_local int depth;

static _Thread_local struct {
    rondo_result spoiled;
    struct pending *calls;
    size_t call_count, call_room;
    struct joining *joins;
    size_t join_count, join_room;
    uint32_t home; /* of the process that made the calls: fork_home() */
} group;

bool group_is_open(void)
{
    return depth > 0;
}

void group_spoil(rondo_result result)
{
    if (!group.spoiled)
        group.spoiled = result;
}

static rondo_result make_room(void **array, size_t size, size_t count, size_t *room)
{
    size_t wanted = *room ? 2 * *room : 16;
    void *moved;

    if (count < *room)
        return RONDO_OK;
    moved = realloc(*array, wanted * size);
    if (!moved) {
        group_spoil(RONDO_ERROR_MEMORY);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group of %zu calls.", count);
    }
    *array = moved;
    *room = wanted;
    return RONDO_OK;
}

rondo_result group_add_call(rondo_comm *comm, rondo_stream *stream, const struct task *task)
{
    rondo_result result =
        make_room((void **)&group.calls, sizeof(*group.calls), group.call_count, &group.call_room);

    group.home = fork_home();
    if (!result)
        group.calls[group.call_count++] =
            (struct pending){.comm = comm, .stream = stream, .task = *task};
    return result;
}

rondo_result group_add_join(rondo_result (*join)(void *argument), void *argument)
{
    rondo_result result =
        make_room((void **)&group.joins, sizeof(*group.joins), group.join_count, &group.join_room);

    group.home = fork_home();
    if (result)
        free(argument);
    else
        group.joins[group.join_count++] = (struct joining){.join = join, .argument = argument};
    return result;
}

rondo_result rondo_group_start(void)
{
    depth++;
    return RONDO_OK;
}

static rondo_result run_join(void *argument)
{
    const struct joining *joining = argument;

    return joining->join(joining->argument);
}

static rondo_result run_joins(void)
{
    void **arguments;
    rondo_result result;

    if (!group.join_count)
        return RONDO_OK;
    arguments = malloc(group.join_count * sizeof(*arguments));
    if (!arguments)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group.");
    for (size_t i = 0; i < group.join_count; i++)
        arguments[i] = &group.joins[i];
    result = threads_run(run_join, arguments, (int)group.join_count);
    free(arguments);
    return result;
}

/* Does the group hold calls on one communicator that differ in their streams? */
static bool streams_are_mixed(void)
{
    size_t same = 0;

    while (same < group.call_count && group.calls[same].stream == group.calls[0].stream)
        same++;
    if (same == group.call_count)
        return false;
    for (size_t i = same; i < group.call_count; i++)
        for (size_t j = 0; j < i; j++)
            if (group.calls[i].comm == group.calls[j].comm &&
                group.calls[i].stream != group.calls[j].stream)
                return true;
    return false;
}

/* Order what `stream` (NULL: this thread) does from now on after what `earlier` has got so far. */
static rondo_result follow(rondo_stream *stream, rondo_stream *earlier)
{
    rondo_event *event;
    rondo_result result;

    if (!earlier || stream == earlier)
        return RONDO_OK;
    result = rondo_event_open(&event);
    if (result)
        return result;
    result = rondo_event_record(event, earlier);
    if (!result)
        result = stream ? rondo_stream_wait_event(stream, event) : rondo_event_wait(event);
    rondo_event_close(event);
    return result;
}

/* Move the calls of a communicator on a stream to `tasks`; returns how many. */
static int take_calls(rondo_comm *comm, rondo_stream *stream, struct task *tasks)
{
    size_t kept = 0;
    int count = 0;

    for (size_t i = 0; i < group.call_count; i++) {
        if (group.calls[i].comm == comm && group.calls[i].stream == stream)
            tasks[count++] = group.calls[i].task;
        else
            group.calls[kept++] = group.calls[i];
    }
    group.call_count = kept;
    return count;
}

/* Run the calls on `stream` (NULL: here), side by side, with a batch for each communicator. */
static rondo_result run_stream(rondo_stream *stream, struct task *tasks, struct batch *batches)
{
    int count = 0;

    for (size_t i = 0; i < group.call_count;) {
        rondo_comm *comm = group.calls[i].comm;

        if (group.calls[i].stream != stream) {
            i++;
            continue;
        }
        batches[count] = (struct batch){.comm = comm, .tasks = tasks};
        batches[count].count = take_calls(comm, stream, tasks);
        tasks += batches[count++].count;
    }
    if (!count)
        return RONDO_OK;
    if (stream)
        return stream->ops->add_batches(stream, batches, count);
    for (int i = 0; i < count; i++)
        batch_open(&batches[i], batches[i].comm, batches[i].tasks, batches[i].count);
    return run_by_hands(batches, count);
}

/* Every call on its stream; those of no stream at the end, as they are waited for. */
static rondo_result run_streams(struct task *tasks, struct batch *batches)
{
    rondo_result result = RONDO_OK;
    rondo_result ran;

    for (size_t i = 0; i < group.call_count;) {
        if (!group.calls[i].stream) {
            i++;
            continue;
        }
        ran = run_stream(group.calls[i].stream, tasks, batches);
        result = result ? result : ran;
    }
    ran = run_stream(NULL, tasks, batches);
    return result ? result : ran;
}

/*
 * Calls on one communicator must not wait for each other, and peers may have spread theirs over
 * other streams: all run in one place, on this thread if any has no stream, and the streams wait
 * for it.
 */
static rondo_result run_mixed(struct task *tasks, struct batch *batches)
{
    rondo_stream *home = group.calls[0].stream;
    size_t count = group.call_count;
    rondo_stream **streams = malloc(count * sizeof(rondo_stream *));
    rondo_result result = RONDO_OK;

    if (!streams)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group of %zu calls.", count);
    for (size_t i = 0; i < count; i++) {
        streams[i] = group.calls[i].stream;
        home = streams[i] ? home : NULL;
    }
    for (size_t i = 0; i < count && !result; i++) {
        group.calls[i].stream = home;
        if (!i || streams[i] != streams[i - 1])
            result = follow(home, streams[i]);
    }
    if (!result)
        result = run_stream(home, tasks, batches);
    for (size_t i = 0; i < count && !result && home; i++)
        if (!i || streams[i] != streams[i - 1])
            result = follow(streams[i], home);
    free(streams);
    return result;
}

static rondo_result run_calls(void)
{
    size_t count = group.call_count;
    struct task *tasks = malloc(count * sizeof(*tasks));
    struct batch *batches = malloc(count * sizeof(*batches));
    rondo_result result;

    if (!tasks || !batches)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group of %zu calls.", count);
    else if (streams_are_mixed())
        result = run_mixed(tasks, batches);
    else
        result = run_streams(tasks, batches);
    free(tasks);
    free(batches);
    return result;
}

static void forget(void)
{
    for (size_t i = 0; i < group.join_count; i++)
        free(group.joins[i].argument);
    free(group.calls);
    free(group.joins);
    memset(&group, 0, sizeof(group));
}

rondo_result rondo_group_end(void)
{
    CANCEL_LATER();
    rondo_result result;

    if (!depth)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_group_end: there was no rondo_group_start() on this thread.");
    if (--depth)
        return RONDO_OK;
    result = group.spoiled;
    if (!result && group.call_count + group.join_count && fork_is_foreign(group.home))
        result = fork_refuse("rondo_group_end", "group");
    if (!result)
        result = run_joins();
    if (!result && group.call_count)
        result = run_calls();
    forget();
    return result;
}
