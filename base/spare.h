/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spare.h - memory of calls that have ended, kept for those to come: so a call of which one like it
 * came before allocates nothing. There is as much of it as was ever in use at a time.
 *
 * A list is guarded by whoever has it.
 */
#ifndef RONDO_BASE_SPARE_H
#define RONDO_BASE_SPARE_H

#include <stddef.h>

struct spare;
struct spares {
    struct spare *first;
};

/* Memory of at least that many bytes, which say nothing; NULL: there is none. */
void *spare_take(struct spares *spares, size_t bytes);
void spare_give(struct spares *spares, void *memory); /* accepts NULL */
/* Free what is on the list; what was taken from it is freed by spare_free(). */
void spares_done(struct spares *spares);
void spare_free(void *memory); /* accepts NULL */

#endif
