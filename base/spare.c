/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/spare.h"

#include <stdalign.h>
#include <stdlib.h>

/* The head stands before the memory. */
struct spare {
    alignas(max_align_t) struct spare *next;
    size_t bytes; /* behind this */
};

/* The first that is long enough, or else the first, which will be made longer. */
static struct spare *take_fitting(struct spares *spares, size_t bytes)
{
    struct spare **at = &spares->first, *found;

    while (*at && (*at)->bytes < bytes)
        at = &(*at)->next;
    if (!*at)
        at = &spares->first;
    found = *at;
    if (found)
        *at = found->next;
    return found;
}

void *spare_take(struct spares *spares, size_t bytes)
{
    struct spare *spare = take_fitting(spares, bytes), *longer;

    if (spare && spare->bytes >= bytes)
        return spare + 1;
    longer = realloc(spare, sizeof(*spare) + bytes);
    if (!longer) {
        free(spare);
        return NULL;
    }
    longer->bytes = bytes;
    return longer + 1;
}

void spare_give(struct spares *spares, void *memory)
{
    struct spare *spare = memory;

    if (!spare)
        return;
    spare--;
    spare->next = spares->first;
    spares->first = spare;
}

void spare_free(void *memory)
{
    struct spare *spare = memory;

    if (spare)
        free(spare - 1);
}

void spares_done(struct spares *spares)
{
    while (spares->first) {
        struct spare *spare = spares->first;

        spares->first = spare->next;
        free(spare);
    }
}
