/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * left.c - what closed communicators leave behind on a device, because peers may still touch it.
 *
 * Most of what a rank shows can go when the rank closes: kernels of peers look beforehand whether
 * it is still there (gpu/leave.c). What the device touches without a look has to stay until every
 * peer has closed the communicator, which it does when its streams have ended, or has ended itself.
 * It is in a list until then, which is looked through whenever a communicator is opened or closed.
 */
#include "comm/gpu/plan.h"

#include "base/fork.h"
#include "base/lock.h"
#include "comm/failure/leave.h"
#include "cuda/module.h"

#include <stdlib.h>

static struct gpu_left *list;
static struct lock list_lock = LOCK_AT(LOCK_GPU_LEFT_BEHIND);
FORK_RENEWS({.lock = &list_lock});

/* Take those out of the list whose peers have all gone. A child's driver knows nothing of what its
 * parent had. */
static struct gpu_left *take_over(void)
{
    struct gpu_left **link = &list, *over = NULL;

    lock_take(&list_lock);
    while (*link) {
        struct gpu_left *left = *link;

        if (fork_is_foreign(left->home) || !left->lease->ops->is_over(left->lease)) {
            link = &left->next;
            continue;
        }
        *link = left->next;
        left->next = over;
        over = left;
    }
    lock_give(&list_lock);
    return over;
}

void gpu_left_reap(void)
{
    struct gpu_left *over = take_over();

    while (over) {
        struct gpu_left *left = over;
        struct cuda_launcher *launcher = left->launcher;
        struct lease *lease = left->lease;
        bool entered = !cuda_enter(&launcher->device);

        over = left->next;
        left->give(left);
        if (entered)
            cuda_leave(&launcher->device);
        cuda_launcher_close(launcher);
        lease->ops->close(lease);
    }
}

bool gpu_leave_behind(const struct gpu_plans *plans, struct gpu_left *left)
{
    left->lease = plans->comm->lease ? leave_lease(plans->comm) : NULL;
    if (!left->lease)
        return false;
    left->launcher = cuda_launcher_share(plans->launcher);
    left->home = fork_home();
    lock_take(&list_lock);
    left->next = list;
    list = left;
    lock_give(&list_lock);
    return true;
}

struct left_memory {
    struct gpu_left left; /* first: give_memory() gets it back */
    CUdeviceptr memory;
};

static void give_memory(struct gpu_left *left)
{
    cuda_stock_return(&left->launcher->stock, &left->launcher->device,
                      ((struct left_memory *)(void *)left)->memory);
    free(left);
}

void gpu_leave_memory(const struct gpu_plans *plans, CUdeviceptr memory)
{
    struct left_memory *left = calloc(1, sizeof(*left));

    if (left) {
        left->left.give = give_memory;
        left->memory = memory;
    }
    if (left && gpu_leave_behind(plans, &left->left))
        return;
    free(left);
    cuda_stock_forget(&plans->launcher->stock, memory);
}
