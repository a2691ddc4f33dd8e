/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * group.c - calls of one thread, collected and run together.
 *
 * At the end, joins are done first, then calls are sorted into batches by (communicator, stream).
 * Batches without a stream run side by side on this thread, which is what lets one thread make the
 * calls of many ranks.
 */
#include "comm/call.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

struct pending {
    rondo_comm *comm;
    rondo_stream *stream;
    struct task task;
};

/* Asked for in every call, so it has a place that is found without a lookup. */
static _Thread_local int depth __attribute__((tls_model("initial-exec")));

static _Thread_local struct {
    rondo_result spoiled;
    struct pending *calls;
    size_t call_count, call_room;
    struct join *joins;
    size_t join_count, join_room;
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

    if (!result)
        group.calls[group.call_count++] =
            (struct pending){.comm = comm, .stream = stream, .task = *task};
    return result;
}

rondo_result group_add_join(const struct join *join)
{
    rondo_result result =
        make_room((void **)&group.joins, sizeof(*group.joins), group.join_count, &group.join_room);

    if (!result)
        group.joins[group.join_count++] = *join;
    return result;
}

rondo_result rondo_group_start(void)
{
    depth++;
    return RONDO_OK;
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
    result = comm_in_threads(join_by_id, arguments, (int)group.join_count);
    free(arguments);
    return result;
}

/* Move the calls of the first pending one's communicator
 * and stream to `tasks`; returns how many. */
static int take_batch(struct task *tasks, rondo_comm **ret_comm, rondo_stream **ret_stream)
{
    rondo_comm *comm = group.calls[0].comm;
    rondo_stream *stream = group.calls[0].stream;
    size_t kept = 0;
    int count = 0;

    for (size_t i = 0; i < group.call_count; i++) {
        if (group.calls[i].comm == comm && group.calls[i].stream == stream)
            tasks[count++] = group.calls[i].task;
        else
            group.calls[kept++] = group.calls[i];
    }
    group.call_count = kept;
    *ret_comm = comm;
    *ret_stream = stream;
    return count;
}

static rondo_result run_calls(void)
{
    size_t count = group.call_count;
    struct task *tasks = malloc(count * sizeof(*tasks));
    struct batch *batches = malloc(count * sizeof(*batches));
    rondo_result result = RONDO_OK;
    size_t used = 0;
    int open = 0;

    if (!tasks || !batches)
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group of %zu calls.", count);
    while (!result && group.call_count) {
        rondo_comm *comm;
        rondo_stream *stream;
        int taken = take_batch(tasks + used, &comm, &stream);

        if (stream)
            result = stream_add_batch(stream, comm, tasks + used, taken);
        else
            batch_open(&batches[open++], comm, tasks + used, taken);
        used += (size_t)taken;
    }
    if (open) { /* they are in line for their turns, so they run whatever happened */
        rondo_result ran = run_batches(batches, open);

        result = result ? result : ran;
    }
    free(tasks);
    free(batches);
    return result;
}

static void forget(void)
{
    free(group.calls);
    free(group.joins);
    memset(&group, 0, sizeof(group));
}

rondo_result rondo_group_end(void)
{
    rondo_result result;

    if (!depth)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_group_end: there was no rondo_group_start() on this thread.");
    if (--depth)
        return RONDO_OK;
    result = group.spoiled;
    if (!result)
        result = run_joins();
    if (!result && group.call_count)
        result = run_calls();
    forget();
    return result;
}
