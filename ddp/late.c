/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * late.c - which rank the others wait for.
 *
 * All ranks leave an exchange together. What a rank does from there until it waits for the next one
 * is its own time, by its own clock, so ranks of different hosts can be compared: the rank with the
 * longest own time came last, and held up the others for as long as it came after the last but one.
 */
#include "ddp/core.h"

#include <stdlib.h>

void ddp_late_arrive(rondo_ddp *ddp)
{
    struct ddp_late *late = &ddp->late;

    if (late->left > 0)
        late->own[late->passes++ % RONDO_DDP_LATE_PASSES] = clock_seconds() - late->left;
}

void ddp_late_leave(rondo_ddp *ddp)
{
    ddp->late.left = clock_seconds();
}

/* One pass: the ranks' own times, `stride` apart. */
static void count_pass(const double *own, size_t stride, int size, rondo_ddp_lateness *ret)
{
    double first = own[0], second = -1;
    int last = 0;

    for (int rank = 1; rank < size; rank++) {
        double seconds = own[(size_t)rank * stride], latest = own[(size_t)last * stride];

        first = seconds < first ? seconds : first;
        second = seconds > latest ? latest : seconds > second ? seconds : second;
        last = seconds > latest ? rank : last;
    }
    ret[last].last++;
    ret[last].held_up += size > 1 ? own[(size_t)last * stride] - second : 0;
    for (int rank = 0; rank < size; rank++) {
        double after = own[(size_t)rank * stride] - first;

        ret[rank].passes++;
        ret[rank].mean += after;
        ret[rank].most = after > ret[rank].most ? after : ret[rank].most;
    }
}

/* Collective: tells how many of the last passes every rank has. */
static rondo_result agree_on_passes(rondo_ddp *ddp, size_t *ret_count)
{
    uint64_t count =
        ddp->late.passes < RONDO_DDP_LATE_PASSES ? ddp->late.passes : RONDO_DDP_LATE_PASSES;
    rondo_result result =
        rondo_all_reduce(&count, &count, 1, RONDO_UINT64, RONDO_MIN, ddp->comm, NULL);

    *ret_count = result ? 0 : (size_t)count;
    return result ? ddp_broken(ddp, result, ddp->comm, "Asking who comes late") : RONDO_OK;
}

/* `all` holds the last `count` passes of each rank. */
static rondo_result gather(rondo_ddp *ddp, size_t count, double *all)
{
    double *mine = all + (size_t)ddp->rank * count;
    rondo_result result;

    for (size_t i = 0; i < count; i++)
        mine[i] = ddp->late.own[(ddp->late.passes - count + i) % RONDO_DDP_LATE_PASSES];
    result = rondo_all_gather(mine, all, count, RONDO_FLOAT64, ddp->comm, NULL);
    return result ? ddp_broken(ddp, result, ddp->comm, "Asking who comes late") : RONDO_OK;
}

rondo_result rondo_ddp_lateness_get(rondo_ddp *ddp, rondo_ddp_lateness *ret)
{
    double *all;
    size_t count;
    rondo_result result = ddp_check_call(ddp, "rondo_ddp_lateness_get");

    if (result)
        return result;
    if (!ret || ddp->in_pass || ddp->broken)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_ddp_lateness_get: %s.",
                        !ret           ? "no place for it"
                        : ddp->in_pass ? "a pass has begun; call rondo_ddp_wait() first"
                                       : "the communicator failed before");
    for (int rank = 0; rank < ddp->size; rank++)
        ret[rank] = (rondo_ddp_lateness){0};
    all = calloc((size_t)ddp->size * RONDO_DDP_LATE_PASSES, sizeof(*all));
    if (!all) /* told to all ranks, who ask the same */
        ddp_problem(ddp, RONDO_ERROR_MEMORY, "Rank %d is out of memory for all ranks' times.",
                    ddp->rank);
    result = ddp_agree(ddp, DDP_VOTE_PROBLEM + 1);
    if (!result)
        result = agree_on_passes(ddp, &count);
    if (!result && count)
        result = gather(ddp, count, all);
    for (size_t i = 0; !result && i < count; i++)
        count_pass(all + i, count, ddp->size, ret);
    for (int rank = 0; !result && count && rank < ddp->size; rank++)
        ret[rank].mean /= (double)count;
    free(all);
    return result;
}
