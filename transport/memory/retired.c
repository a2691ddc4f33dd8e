/* SPDX-License-Identifier: BSD-3-Clause */
/* retired.c - a list of leases, which know their spans. It is looked through whenever the heap is
 * asked for memory; it is short, and empty as long as communicators close together. */
#include "transport/memory/retired.h"

static struct lease *list;

void retired_add(size_t start, struct lease *leases)
{
    for (struct lease *lease = leases; lease; lease = lease->next)
        lease->start = start;
    list = leases_join(leases, list);
}

static bool is_retired(size_t start)
{
    const struct lease *lease = list;

    while (lease && lease->start != start)
        lease = lease->next;
    return lease;
}

void retired_reap(void (*give)(size_t start))
{
    struct lease **link = &list;

    while (*link) {
        struct lease *lease = *link;
        size_t start = lease->start;

        if (!lease->ops->is_over(lease)) {
            link = &lease->next;
            continue;
        }
        *link = lease->next;
        lease->ops->close(lease);
        if (!is_retired(start))
            give(start);
    }
}

void retired_forget(void)
{
    list = NULL;
}
