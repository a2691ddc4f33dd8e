/* SPDX-License-Identifier: BSD-3-Clause */
/* stage.c - see stage.h. */
#include "comm/stage.h"

#include "base/log.h"

rondo_result comm_stage_run(rondo_comm *comm, const struct comm_stage *stage)
{
    log_debug("rank %d of %d: open, stage '%s'", comm->rank, comm->size, stage->name);
    return stage->run(comm);
}
