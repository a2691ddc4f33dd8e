/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lease.h - until when peers may still touch pages of the heap that their owner has done with.
 *
 * A peer that was stopped in the middle of a call goes on where it stood, whatever has become of
 * the call meanwhile. Nobody can stop its stores; but the pages they go to need not be used for
 * anything else until it is known that none will come: until the lease on them is over.
 */
#ifndef RONDO_TRANSPORT_MEMORY_LEASE_H
#define RONDO_TRANSPORT_MEMORY_LEASE_H

#include <stdbool.h>
#include <stddef.h>

struct lease;
struct lease_ops {
    /* True if no peer will touch the pages any more; it stays so. Takes no lock of the heap. */
    bool (*is_over)(const struct lease *lease);
    void (*close)(struct lease *lease);
};

/* Embedded in what knows the peers; owned by whatever holds the pages back. */
struct lease {
    const struct lease_ops *ops;
    struct lease *next; /* in a list of whoever owns it */
    size_t start;       /* of a retired span: its first page */
};

/* Close those of a list that are over; returns what is left of it. */
static inline struct lease *leases_reap(struct lease *list)
{
    struct lease **link = &list;

    while (*link) {
        struct lease *lease = *link;

        if (lease->ops->is_over(lease)) {
            *link = lease->next;
            lease->ops->close(lease);
        } else {
            link = &lease->next;
        }
    }
    return list;
}

/* Join two lists of leases into one. */
static inline struct lease *leases_join(struct lease *list, struct lease *more)
{
    struct lease **end = &list;

    while (*end)
        end = &(*end)->next;
    *end = more;
    return list;
}

#endif
