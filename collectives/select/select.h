/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.h - which algorithm a call gets: the cheapest by the cost model among those that keep what
 * was promised.
 */
#ifndef RONDO_COLLECTIVES_SELECT_SELECT_H
#define RONDO_COLLECTIVES_SELECT_SELECT_H

#include "collectives/select/cost.h"

/* These numbers say what it costs to go from group to group. */
struct group_costs {
    double latency;   /* seconds of a message */
    double bandwidth; /* bytes/s of one rail, in each direction; 0: as inside of groups */
    int rails;        /* that a group has to go out by: ranks may have to share one */
};

/* Measured when the communicator opens, the same numbers on every rank. */
struct link_costs {
    double latency;   /* seconds from signal to the end of the peer's wait */
    double copy_bw;   /* bytes/s of one rank copying through slots */
    double direct_bw; /* bytes/s of one rank copying out of a peer's mapped memory */
    double reduce_bw; /* bytes/s read by one rank's reduce of two sources */
    int cores;        /* ranks / cores > 1: work of ranks that share a core adds up */
    struct group_costs across;
};

/* Reads "latency_us,copy_GBps,reduce_GBps", and what goes from group to group if it follows:
 * ",latency_us,GBps" or ",latency_us,GBps,rails". False, and nothing is changed: it is no such
 * list. */
bool costs_read(const char *text, struct link_costs *costs);

struct selection {
    rondo_collective collective;
    int size;
    double bytes;       /* count * element size */
    unsigned need;      /* promises that the plan must keep */
    unsigned forbid;    /* those it must not make: PEER_MEMORY when buffers can't be mapped */
    const char *wanted; /* name given by the user, or "auto" */
    const struct grouping *groups; /* NULL: all ranks are equally near */
    struct counts *counts;         /* of these ranks, kept between calls; NULL: not kept */
    bool quiet; /* no call of the user, or another rank says it: it is logged at debug */
};

/*
 * Pick; *ret_algorithm is a static. With a wanted name, that one or RONDO_ERROR_UNSUPPORTED with a
 * sentence saying why it can't be. Deterministic: the same selection gives the same answer on every
 * rank. Costs are logged at info level, of a quiet one at debug.
 */
rondo_result select_algorithm(const struct selection *selection, const struct link_costs *links,
                              const struct algorithm **ret_algorithm);
/* Seconds that the model predicts. */
rondo_result select_predict(const struct algorithm *algorithm, const struct selection *selection,
                            const struct link_costs *links, double *ret_seconds);

#endif
