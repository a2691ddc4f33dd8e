/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.h - memory that an adapter may read and write, registered once and kept.
 *
 * Registering pins pages and costs microseconds to milliseconds, so a range that was given back
 * stays registered until its memory goes away, until something else needs the room, or until too
 * much lies idle. A wish is served by any range that holds it and allows as much. Thread-safe.
 */
#ifndef RONDO_TRANSPORT_VERBS_MEMORY_H
#define RONDO_TRANSPORT_VERBS_MEMORY_H

#include "base/lock.h"
#include "transport/memory/intervals.h"
#include "transport/verbs/calls.h"

struct verbs_region {
    struct interval range; /* first member: the tree gives it back */
    struct ibv_mr *mr;
    int access;
    unsigned users;
    bool forgotten; /* its memory went away while it was used: not in the tree */
    struct verbs_region *previous, *next; /* of the idle ones, longest idle first */
};

struct verbs_memory {
    const struct verbs_calls *calls;
    struct ibv_pd *pd;
    const char *device; /* for sentences */
    struct lock lock;
    struct intervals regions;
    struct verbs_region idle; /* head of the ring of idle ones */
    size_t idle_bytes, idle_most;
    unsigned long made; /* registrations so far */
};

void verbs_memory_init(struct verbs_memory *memory, const struct verbs_calls *calls,
                       struct ibv_pd *pd, const char *device);
/* All regions have been given back. */
void verbs_memory_done(struct verbs_memory *memory);

/* A range that was registered before and holds it, to be given back as the others; NULL: none. */
struct verbs_region *verbs_memory_find(struct verbs_memory *memory, const void *at, size_t bytes,
                                       int access);
/*
 * Memory that the adapter may use as `access` says (IBV_ACCESS_...); give it back with
 * verbs_memory_put(). RONDO_ERROR_MEMORY with a sentence that names the limit and the remedy.
 */
rondo_result verbs_memory_get(struct verbs_memory *memory, void *at, size_t bytes, int access,
                              struct verbs_region **ret_region);
void verbs_memory_put(struct verbs_memory *memory, struct verbs_region *region); /* accepts NULL */
/* The memory is about to be freed or moved: what is idle of it is not kept, and what is used will
 * not be given to others. */
void verbs_memory_forget(struct verbs_memory *memory, const void *at, size_t bytes);

#endif
