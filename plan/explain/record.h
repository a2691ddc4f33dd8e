/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h - what happens in a symbolic run, as a list of events; explain.c prints them by
 * level.
 *
 * An item is what a column of the page is about. Sums: a position (block and atom), which holds a
 * set of ranks. Collectives that move data: a leaf, that is one atom of one rank's input, which is
 * there or not.
 */
#ifndef RONDO_PLAN_EXPLAIN_RECORD_H
#define RONDO_PLAN_EXPLAIN_RECORD_H

#include "plan/verify/machine.h"

enum explain_use { USE_ADDED = 1, USE_KEPT = 2, USE_PASSED = 4 };

/* A message: `count` values from `first` in record->values. */
struct explain_message {
    int level, from, to, channel;
    int link;
    uint32_t number;      /* on its link */
    uint32_t sent, taken; /* steps: of the sender's signal, of the receiver's last use; 0: none */
    size_t first;
    uint32_t count;
    uint8_t flags; /* PLAN_ADDRESSES */
    uint8_t use;   /* enum explain_use, by the receiver */
};

/* From `level` on `rank` has `value`. */
struct explain_hold {
    int level, rank;
    int by; /* the rank whose step it was */
    uint32_t step;
    bool kept; /* in a buffer of the rank, not in a slot on its way */
    verify_value value;
};

/* A step that touches a peer's memory. */
struct explain_access {
    int level, rank;
    uint32_t step;
};

struct explain_list {
    void *items;
    size_t count, room;
};

struct explain_record {
    struct verify_machine machine;
    struct verify_report report;
    struct explain_list messages, values, holds, accesses;
    int levels; /* the highest */
    bool out_of_memory;
};

/* Run one call in one segment. RONDO_OK, or an error with its sentence; to be closed in any
 * case. */
rondo_result explain_record_open(struct explain_record *record, struct plan *const *plans,
                                 int size);
void explain_record_close(struct explain_record *record);

#endif
