/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simulate.h - what a collective would take on a machine that nobody here has.
 *
 * The plans of all ranks run as plan/exec.c runs them: programs side by side, slots, credits,
 * segments. Only nothing is moved; a copy or reduce step takes the time that its machine needs for
 * so many bytes, and a message that of the links on its way, which it shares (share.h). An event is
 * the end of a step, of a message's way, or of a wait. The same call always gives the same times.
 *
 * Segments behind the first `segments_most` are not run: each takes as long as those of the middle
 * half of them did, and `doubt` is by how much the quarters of that half differ.
 */
#ifndef RONDO_PLAN_SIMULATE_SIMULATE_H
#define RONDO_PLAN_SIMULATE_SIMULATE_H

#include "plan/simulate/program.h"

struct simulate_slow {
    int rank;
    double factor; /* its steps take so many times as long */
};

struct simulate_call {
    double block_bytes; /* of a block (plan.h) */
    int segments_most;  /* 0: all, negative: as many as take little time */
    double jitter;      /* by how much steps last longer, on average: 0.1 is 10 % */
    uint64_t seed;      /* of the jitter */
    const struct simulate_slow *slow;
    int slow_count;
    bool records; /* keep what is needed for a path and a time line */
};

enum record_kind { RECORD_MOVE, RECORD_FLOW };

/* Something that took time. */
struct record {
    double begin, end;
    uint32_t before; /* the record that it had to wait for, from 1 on; 0: none */
    int32_t track;
    int32_t what; /* the link that set the pace of a flow; -1: none did, the rank itself */
    int32_t rank; /* that moves, or sends */
    int32_t to;   /* whom a flow is for */
    uint8_t kind;
};

struct simulate_result {
    double seconds;
    int segments, simulated;
    double doubt; /* of the time of segments that were not run, 0.01: 1 % */
    unsigned long events;
    unsigned long cut;     /* times that rates were not worked out everywhere (share.h) */
    double sent, received; /* bytes of messages, of the segments that were simulated */
    double end;            /* when those were over */
    double *link_bytes;    /* [link of programs->share] */
    struct record *records;
    uint32_t record_count;
    bool records_complete;
    uint32_t last; /* the record that ended last */
    int last_rank;
    double *rank_ends; /* [kind of rank] when it was through */
};

/*
 * Run. RONDO_ERROR_UNSUPPORTED if slots are too small for the plan, or a link that has failed stops
 * it: the sentence names the rank that waits. The result is closed in the end.
 */
rondo_result simulate_run(struct programs *programs, const struct simulate_call *call,
                          struct simulate_result *ret_result);
void simulate_close(struct simulate_result *result);

#endif
