/* SPDX-License-Identifier: BSD-3-Clause */
/* group_run.h - running what call_group.c has collected. */
#ifndef RONDO_COMM_ENGINE_GROUP_RUN_H
#define RONDO_COMM_ENGINE_GROUP_RUN_H

#include "comm/engine/call.h"
#include "comm/engine/group_path.h"

/* A call, with what its task begins with. */
struct pending {
    rondo_comm *comm;
    rondo_stream *stream;
    struct choice_key key;
    struct operation made;
    const void *input;
    void *output;
};

/* A group of so many calls, one message each way, allocates nothing; so has one that is repeated
 * always room to be written out. */
enum { GROUP_FEW = GROUP_PATH_CALLS };

/* Runs the calls, whose array is used up by it: the first error of any. Notes those that may be
 * repeated. */
rondo_result group_run(struct pending *pending, size_t count, struct group_path *path);
/* This thread queues the calls of a group with several communicators, stream after stream. */
bool group_is_of_many(void);

#endif
