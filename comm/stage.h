/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage.h - opening a communicator is tables of stages: comm_prepare(), comm_connect(),
 * comm_measure() and comm_assemble() run one each, and stop at the first stage that fails. Its
 * sentence is the cause; comm_free() frees what the stages before it, and it, have made.
 */
#ifndef RONDO_COMM_STAGE_H
#define RONDO_COMM_STAGE_H

#include "comm/state/comm.h"

struct comm_stage {
    const char *name; /* NULL: the end of the table */
    rondo_result (*run)(rondo_comm *comm);
};

/* Says in the log which stage it is, and runs it. The linker leads this to tests/comm/test_stages.c
 * there, which lets every stage fail: so calls come from other files than its own. */
rondo_result comm_stage_run(rondo_comm *comm, const struct comm_stage *stage);

static inline rondo_result comm_stages_run(rondo_comm *comm, const struct comm_stage *stages)
{
    rondo_result result = RONDO_OK;

    for (; stages->name && !result; stages++)
        result = comm_stage_run(comm, stages);
    return result;
}

#endif
