/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fast_path.h - a call that is the same as the one before, on the same buffers.
 *
 * Most of what a short call takes is deciding once more what was decided before: whether
 * arguments make sense, which plan, cut how, bound to what. A call that came twice in a row is
 * kept as a task that is ready to begin, and the third time begins there. Whatever a call
 * depends on besides its arguments is looked at each time: whether memory is mapped, how to
 * store, whether to look for peers' memory at all. Sends and receives, which take turns in most
 * programs, are kept apart from each other and from collectives. Over networks it is the same
 * call: only the end also waits until what was sent is on its way.
 */
#ifndef RONDO_COMM_ENGINE_FAST_PATH_H
#define RONDO_COMM_ENGINE_FAST_PATH_H

#include "comm/engine/run.h"

enum { FAST_PATHS = 3 };

struct fast_path {
    _Atomic(const void *) input; /* of `call`: without the turn this says whether to look closer */
    /* The rest belongs to the holder of the turn. */
    rondo_call call; /* the last one that was no repetition */
    bool ready;      /* `task` is what it became */
    unsigned made;   /* choices made by then */
    struct task task;
};

/* If the call is the one that is ready, runs it. The caller is in no group, and gave no stream. */
bool fast_path_run(const rondo_call *call, rondo_result *ret_result);
/* The first times: `task` is what the call was checked to be. */
rondo_result fast_path_run_new(const rondo_call *call, struct task *task);
/* A batch that has a call has ended well. Needs the turn. */
void fast_path_note(const struct batch *batch);

#endif
