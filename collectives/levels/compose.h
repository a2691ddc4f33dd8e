/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compose.h - a plan over some of the ranks, taken into a plan over all of them.
 *
 * An algorithm writes a plan for a subset of ranks as it always does: 0 .. size-1, with an input
 * and an output of its own. That inner plan is then copied step by step, and every name is replaced
 * by what it stands for outside:
 *
 *     rank of the subset   the rank that it is
 *     channel              moved on, so that inner plans that overlap do not meet
 *     block of a buffer    a list of places: runs of atoms in the outer plan's buffers or scratch
 *
 *     inner:  copy input[block 1] -> slot(1)     block 1 = output, atoms 4..7, scratch 2
 *     outer:  copy output[0: 4..7] -> slot(5)    one message, now of two pieces
 *             copy scratch[2: all] -> slot(5)
 *
 * An algorithm that has scratch of its own keeps it, in a plan whose blocks stand for one place
 * each. A block may stand for nothing at all; steps and messages for it vanish. Lists must be the
 * same on all ranks of the subset but for the buffers that they name, because pieces are taken from
 * a slot as they were put in.
 */
#ifndef RONDO_COLLECTIVES_COMPOSE_H
#define RONDO_COLLECTIVES_COMPOSE_H

#include "collectives/algorithm.h"
#include "collectives/levels/grouping.h"

struct place {
    enum plan_buffer buffer;
    int block, first;
    int atoms; /* that one atom of the inner plan stands for */
};

/* Each block of a buffer stands for a list of places. */
struct places {
    struct place *items;
    int *ends; /* [block]: behind its last item */
    int blocks, count, block_room, room;
};

/* Begin the next block; what is added then belongs to it. */
void places_next(struct plan *plan, struct places *places);
void places_add(struct plan *plan, struct places *places, struct place place);

struct inner {
    const struct algorithm *algorithm;
    rondo_collective collective;
    int size, rank, root; /* in the subset */
    const int *ranks;     /* [rank of the subset]: outside; NULL: those of a rail */
    const struct grouping *groups;
    int rail;
    /*
     * By block; where every rank has one block which differs from that of the others (the input of
     * all_gather and gather, the output of reduce_scatter and scatter) by rank of the subset.
     */
    struct places input, output;
    int channel;       /* that the inner plan's first one becomes */
    bool finish;       /* sums are complete afterwards */
    bool side_by_side; /* its programs stay programs: the outer plan has no other */
    bool introduced;   /* all ranks have said before where their buffers are */
};

/*
 * Append the inner plan to the program that is being written, its programs one behind the other
 * unless they are to run side by side.
 * Closes inner->input and inner->output.
 */
void compose(struct plan *plan, struct inner *inner);
/* Appends one program of the inner plan only: the others are appended elsewhere. */
void compose_part(struct plan *plan, struct inner *inner, int part);

/*
 * A further program that goes on, in each segment, where this one ends: it waits for a message of
 * the rank to itself.
 */
void compose_next_program(struct plan *plan, int channel);

#endif
