/* SPDX-License-Identifier: BSD-3-Clause */
/* retired.c - a list, looked through whenever the heap is asked for memory; it is short, and empty
 * as long as communicators close together. */
#include "transport/retired.h"

#include <stdlib.h>

struct retired {
    struct retired *next;
    size_t start; /* page */
    struct lease *leases;
};

static struct retired *list;

void retired_add(size_t start, struct lease *leases)
{
    struct retired *retired = malloc(sizeof(*retired));

    if (!retired)
        return;
    *retired = (struct retired){.next = list, .start = start, .leases = leases};
    list = retired;
}

void retired_reap(void (*give)(size_t start))
{
    struct retired **link = &list;

    while (*link) {
        struct retired *retired = *link;

        retired->leases = leases_reap(retired->leases);
        if (retired->leases) {
            link = &retired->next;
            continue;
        }
        *link = retired->next;
        give(retired->start);
        free(retired);
    }
}

void retired_forget(void)
{
    while (list) {
        struct retired *retired = list;

        list = retired->next;
        free(retired);
    }
}
