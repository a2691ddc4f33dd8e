/* SPDX-License-Identifier: BSD-3-Clause */
/* call_group.c - calls of one thread, collected until the group ends: joins are done first, then
 * group_run.c runs the calls. */
#include "rondo/bindings.h"

#include "comm/engine/call.h"
#include "comm/engine/group_run.h"
#include "comm/engine/threads.h"

#include "base/cancel.h"
#include "base/fail.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A communicator to be opened. */
struct joining {
    rondo_result (*join)(void *argument);
    void (*end)(void *argument, rondo_result result);
    void *argument;
};

/* With the usual model of thread-local storage: one variable that is found without a lookup would
 * make all of the library's static, and then dlopen() finds no room for it. */
static _Thread_local int depth;

static _Thread_local struct pending few[GROUP_FEW];
static _Thread_local struct group_path path;

static _Thread_local struct {
    rondo_result spoiled;
    struct pending *calls; /* `few`, or allocated; NULL: there are none */
    size_t call_count, call_room;
    /* Calls that were in the last group at the same place, and are not in `calls`. */
    size_t repeated;
    struct joining *joins;
    size_t join_count, join_room;
    uint32_t home; /* of the process that made the calls: fork_home() */
} group;

bool group_is_open(void)
{
    return depth > 0;
}

int rondo_group_is_open(void)
{
    return depth > 0;
}

void group_spoil(rondo_result result)
{
    if (!group.spoiled)
        group.spoiled = result;
}

/* Make room for one more in an array of `count`. It may begin in memory of the thread's own. */
static rondo_result make_room(void **array, size_t size, size_t count, size_t *room)
{
    size_t wanted = *room ? 8 * *room : 16;
    bool moves = *array == few;
    void *moved;

    if (count < *room)
        return RONDO_OK;
    moved = realloc(moves ? NULL : *array, wanted * size);
    if (!moved) {
        group_spoil(RONDO_ERROR_MEMORY);
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a group of %zu calls.", count);
    }
    if (moves)
        memcpy(moved, few, count * size);
    *array = moved;
    *room = wanted;
    return RONDO_OK;
}

/* The group is not only a repeated one, or somebody looks at its calls. */
static void write_repeated(void)
{
    size_t count = group.repeated;

    group.repeated = 0;
    for (size_t i = 0; i < count; i++)
        (void)group_add_call(path.comm, NULL, &path.tasks[i]); /* there is room in `few` */
}

rondo_result group_add_call(rondo_comm *comm, rondo_stream *stream, const struct task *task)
{
    struct pending *pending;
    rondo_result result;

    write_repeated();
    if (!group.calls) {
        group.calls = few;
        group.call_room = GROUP_FEW;
    }
    result =
        make_room((void **)&group.calls, sizeof(*group.calls), group.call_count, &group.call_room);
    if (result)
        return result;
    if (!group.home)
        group.home = fork_home();
    pending = &group.calls[group.call_count++];
    pending->comm = comm;
    pending->stream = stream;
    pending->key = task->key;
    pending->made.handle = 0;
    if (task->made.handle)
        pending->made = task->made;
    pending->input = task->input;
    pending->output = task->output;
    return RONDO_OK;
}

bool group_repeat_call(const rondo_call *call, bool *ret_open)
{
    *ret_open = depth > 0;
    if (!depth || group.call_count || !group_path_has(&path, call, group.repeated))
        return false;
    if (!group.home)
        group.home = fork_home();
    group.repeated++;
    return true;
}

rondo_result group_add_join(rondo_result (*join)(void *argument),
                            void (*end)(void *argument, rondo_result result), void *argument)
{
    rondo_result result =
        make_room((void **)&group.joins, sizeof(*group.joins), group.join_count, &group.join_room);

    if (!group.home)
        group.home = fork_home();
    if (result)
        end(argument, result);
    else
        group.joins[group.join_count++] =
            (struct joining){.join = join, .end = end, .argument = argument};
    return result;
}

bool group_look(size_t index, rondo_comm **ret_comm, struct choice_key *ret_key)
{
    const struct pending *pending;

    write_repeated();
    if (index >= group.call_count)
        return false;
    pending = &group.calls[index];
    *ret_comm = pending->comm;
    *ret_key = pending->key;
    ret_key->made = pending->made.handle ? &pending->made : NULL;
    return true;
}

bool group_has_calls(const rondo_comm *comm, const rondo_stream *stream)
{
    write_repeated();
    for (size_t i = 0; i < group.call_count; i++)
        if (group.calls[i].comm == comm || (stream && group.calls[i].stream == stream))
            return true;
    return false;
}

bool group_holds(const rondo_comm *comm, const rondo_stream *stream, const char *function,
                 const char *what)
{
    if (!group_has_calls(comm, stream))
        return false;
    group_spoil(rondo_fail(RONDO_ERROR_INVALID,
                           "%s: the open group holds a call on the %s, which stays open; end the "
                           "group first.",
                           function, what));
    return true;
}

bool group_uses(const void *memory, size_t bytes)
{
    write_repeated();
    for (size_t i = 0; i < group.call_count; i++) {
        const struct pending *call = &group.calls[i];

        if (call_uses(call->comm->size, call->comm->rank, &call->key, call->input, call->output,
                      memory, bytes))
            return true;
    }
    return false;
}

rondo_result group_check(void)
{
    return group.spoiled;
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

static void end_joins(rondo_result result)
{
    char sentence[FAIL_SENTENCE_MAX];

    snprintf(sentence, sizeof(sentence), "%s", result ? fail_sentence() : "");
    for (size_t i = 0; i < group.join_count; i++)
        group.joins[i].end(group.joins[i].argument, result);
    if (result && group.join_count)
        rondo_fail(result, "%s", sentence); /* closing may have said something else */
}

/* Runs the group if it repeats the last one. */
static bool run_repeated(rondo_result *ret_result)
{
    if (group.repeated < GROUP_PATH_CALLS || group.join_count || group.spoiled ||
        !group_path_run(&path, ret_result))
        return false;
    group.repeated = 0;
    group.home = 0;
    return true;
}

static void forget(void)
{
    if (group.calls != few)
        free(group.calls);
    free(group.joins);
    memset(&group, 0, sizeof(group));
}

static rondo_result end_group(void)
{
    CANCEL_LATER();
    rondo_result result = group.spoiled;

    write_repeated();
    if (!result && group.call_count + group.join_count && fork_is_foreign(group.home))
        result = fork_refuse("rondo_group_end", "group");
    if (!result)
        result = run_joins();
    end_joins(result);
    if (!result && group.call_count)
        result = group_run(group.calls, group.call_count, &path);
    forget();
    return result;
}

rondo_result rondo_group_end(void)
{
    rondo_result result;

    if (!depth)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_group_end: there was no rondo_group_start() on this thread.");
    if (--depth)
        return RONDO_OK;
    return run_repeated(&result) ? result : end_group();
}
