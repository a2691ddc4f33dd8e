/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * close.c - the end of a rank's part of a team.
 *
 * A kernel of any rank stores to the memory that all have bound, and adds it up; where one has
 * taken its own away, that is a fault of the device. A peer may have such a kernel under way when
 * this rank closes: its call has failed here and it has not heard yet, or it makes a call that this
 * rank does not. So memory stays bound until all peers have closed the communicator.
 */
#include "comm/gpu/nvls/nvls.h"

#include <stdlib.h>

struct left_team {
    struct gpu_left left; /* first: give_team() gets it back */
    struct cuda_nvls *team;
};

static void give_team(struct gpu_left *left)
{
    cuda_nvls_close(((struct left_team *)(void *)left)->team);
    free(left);
}

/* Notes a team whose memory peers may still use. One that cannot be noted is never closed. */
static void leave_behind(const struct gpu_plans *plans, struct cuda_nvls *team)
{
    struct left_team *left = calloc(1, sizeof(*left));

    if (!left)
        return;
    left->left.give = give_team;
    left->team = team;
    if (!gpu_leave_behind(plans, &left->left))
        free(left);
}

void gpu_nvls_close(struct gpu_plans *plans)
{
    struct cuda_nvls *team = plans->nvls ? plans->nvls->team : NULL;

    free(plans->nvls);
    plans->nvls = NULL;
    cuda_nvls_leave(team);
    if (cuda_nvls_is_bound(team))
        leave_behind(plans, team);
    else
        cuda_nvls_close(team);
}
