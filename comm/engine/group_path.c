/* SPDX-License-Identifier: BSD-3-Clause */
/* group_path.c - the short way of a repeated group, see group_path.h. */
#include "comm/engine/group_path.h"

#include "comm/engine/choose.h"
#include "comm/engine/life.h"
#include "comm/failure/error.h"

#include "base/collective.h"

static _Atomic uint64_t last_serial;

/* Without the turn: whether `comm`, which is open, is the one of the note. */
static bool is_noted(const struct group_path *path, const rondo_comm *comm)
{
    return path->comm == comm &&
           atomic_load_explicit(&comm->group_serial, memory_order_relaxed) == path->serial;
}

bool group_path_has(const struct group_path *path, const rondo_call *call, size_t index)
{
    const struct task *task = &path->tasks[index < GROUP_PATH_CALLS ? index : 0];

    return index < GROUP_PATH_CALLS && path->ready && is_noted(path, call->comm) &&
           !call->algorithm && task->key.collective == call->collective &&
           task->key.root == call->root && task->key.count == call->count &&
           task->key.type == call->type && task->input == call->input &&
           task->output == call->output;
}

static bool is_bound(const struct group_path *path)
{
    bool bound = path->made == path->comm->choices.made;

    for (int i = 0; i < GROUP_PATH_CALLS; i++)
        bound = bound && path->tasks[i].choice->valid && !path->tasks[i].again &&
                path->tasks[i].key.no_peer_memory == task_backs_off(path->comm, &path->tasks[i]);
    return bound;
}

bool group_path_run(struct group_path *path, rondo_result *ret_result)
{
    rondo_comm *comm = path->comm;
    struct batch batch = {
        .comm = comm, .tasks = path->tasks, .count = GROUP_PATH_CALLS, .left = GROUP_PATH_CALLS};

    if (comm_check(comm) || !turn_take_idle(&comm->turn, &batch.ticket))
        return false;
    if (!is_bound(path) || !is_noted(path, comm)) {
        turn_pass(&comm->turn);
        return false;
    }
    for (int i = 0; i < GROUP_PATH_CALLS; i++)
        path->tasks[i].suspect = 0;
    *ret_result = run_ready_messages(&batch);
    path->ready = !*ret_result;
    return true;
}

/* Only messages, which begin side by side, and what cannot mean something else the next time. */
static bool may_repeat(const struct task *tasks)
{
    for (int i = 0; i < GROUP_PATH_CALLS; i++)
        if (!collective_is_pair(tasks[i].key.collective) || tasks[i].key.algorithm ||
            tasks[i].again || tasks[i].backend != &thread_backend)
            return false;
    return tasks[0].key.collective != tasks[1].key.collective ||
           tasks[0].key.root != tasks[1].key.root;
}

static bool is_same(const struct task *a, const struct task *b)
{
    return a->input == b->input && a->output == b->output &&
           a->key.collective == b->key.collective && a->key.root == b->key.root &&
           a->key.count == b->key.count && a->key.type == b->key.type;
}

void group_path_note(struct group_path *path, rondo_comm *comm, const struct task *tasks)
{
    unsigned ticket;
    bool again;

    path->ready = false;
    if (comm_gpu(comm) || comm_backend(comm) != &thread_backend || !may_repeat(tasks) ||
        !turn_take_idle(&comm->turn, &ticket))
        return;
    again = is_noted(path, comm) && is_same(&path->tasks[0], &tasks[0]) &&
            is_same(&path->tasks[1], &tasks[1]);
    for (int i = 0; i < GROUP_PATH_CALLS; i++) {
        if (again)
            path->tasks[i] = tasks[i];
        else
            task_init(&path->tasks[i], &tasks[i].key, tasks[i].input, tasks[i].output);
    }
    if (!again) {
        path->comm = comm;
        path->serial = atomic_fetch_add_explicit(&last_serial, 1, memory_order_relaxed) + 1;
        atomic_store_explicit(&comm->group_serial, path->serial, memory_order_relaxed);
    }
    path->made = comm->choices.made;
    path->ready = again && choice_fits(tasks[0].choice, &tasks[0].key) &&
                  choice_fits(tasks[1].choice, &tasks[1].key);
    turn_pass(&comm->turn);
}
