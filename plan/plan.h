/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - a collective as data: what one rank does, step by step, over fractions of the buffers.
 *
 * Four verbs, and nothing else decides what becomes of user data:
 *
 *   copy    one source range to one or more destinations
 *   reduce  k source ranges combined into one or more destinations
 *   signal  publish what was written into the outgoing slot (PLAN_DATA), or give an incoming slot
 *           back (PLAN_CREDIT)
 *   wait    for a message from a peer (PLAN_DATA), or for a free outgoing slot (PLAN_CREDIT); or,
 *           with PLAN_SETTLED, until the peer has given back all slots
 *
 * Copies may be carried out by others than the executor: a network may send from the buffer what a
 * step stores into a slot, and put what a step takes out of one into the output before the wait for
 * it ends (zcopy.h). The verifier proves that no other step can tell.
 *
 * A plan knows no counts. The vector is processed in *segments*, which are as long as slots allow,
 * or, of a message that its receiver reads where it is, as one step shall last (plan/exec.c); in
 * each segment every block is cut into `parts` *atoms* by the one remainder rule (base/range.h),
 * and a range is a run of atoms of one block. So any count works, and what is proved for atoms
 * holds for every count.
 *
 *      input of an all_gather or all_reduce: one block      ranges:  block 0, first 1, atoms 2
 *      |......|######|######|......|       parts = 4                         ^ the two marked ones
 *      in/outputs of n * count elements: n blocks of `count` elements; the segment is the same part
 *      of each
 *
 * Messages between two ranks travel on numbered *channels*; (from, to, channel) is a first-in
 * first-out *link* with a few slots. A slot has no addresses: pieces are appended by the sender and
 * taken in the same order by the receiver. A plan has one or more *programs* that run side by side
 * in one rank; each walks through all segments on its own. Rules, checked by plan/verify: one
 * program per rank uses an end of a link; a rank ends its plan with all slots given back; what
 * peers read or write in my user buffers they do between my first and my last step.
 */
#ifndef RONDO_PLAN_PLAN_H
#define RONDO_PLAN_PLAN_H

#include "rondo/rondo.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    PLAN_PROGRAMS_MAX = 5, /* per rank */
    PLAN_CHANNELS = 5,     /* per ordered pair of ranks; 0..3 are for collectives */
    /* 2 and 3: where ranks share cores they have fewer slots than others, and need less cache */
    PLAN_CHANNEL_SHALLOW = 2,
    PLAN_CHANNEL_P2P = 4, /* for send and recv */
};

enum plan_verb { PLAN_COPY, PLAN_REDUCE, PLAN_SIGNAL, PLAN_WAIT };
enum plan_event { PLAN_DATA, PLAN_CREDIT };
enum plan_buffer { PLAN_INPUT, PLAN_OUTPUT, PLAN_SCRATCH, PLAN_SLOT };

enum plan_flag {
    /* reduce, copy: the result is complete; what the operation does at the end is due (average) */
    PLAN_FINISH = 1,
    /* reduce: associate as a balanced tree over the sources; otherwise from left to right */
    PLAN_BALANCED = 2,
    /* signal, wait: the message tells where the sender's input and output are */
    PLAN_ADDRESSES = 4,
    /* wait, credit: for all messages of the link to be given back; no slot is opened. What the
     * peer did before it gave the last one back is done. */
    PLAN_SETTLED = 8,
};

struct plan_operand {
    uint8_t buffer;  /* enum plan_buffer; a source's slot is incoming, a destination's outgoing */
    uint8_t channel; /* PLAN_SLOT: of which link to the peer */
    int32_t rank;    /* whose buffer; PLAN_SLOT: the peer */
    uint32_t block;  /* not for PLAN_SLOT */
    /* First atom; of PLAN_SLOT only where a step has slots alone, to know its length. */
    uint32_t first;
};

struct plan_step {
    uint8_t verb;         /* enum plan_verb */
    uint8_t event;        /* signal, wait: enum plan_event */
    uint8_t flags;        /* enum plan_flag */
    uint8_t channel;      /* signal, wait */
    int32_t peer;         /* signal, wait */
    uint32_t atoms;       /* copy, reduce: length of every operand */
    int32_t sources;      /* copy, reduce; as many as there are ranks, or a few more */
    int32_t destinations; /* copy, reduce */
    uint32_t operand;     /* index into plan->operands: sources, then destinations */
};

struct plan_program {
    uint32_t begin, end; /* its steps */
};

struct grouping;
struct recipe;
struct plan;

/* A reader is told each step as it is written; a plan that has one keeps no steps. */
struct plan_reader {
    void (*read)(struct plan_reader *reader, const struct plan *plan, const struct plan_step *step);
};

struct plan {
    rondo_collective collective;
    const char *algorithm;
    int size, rank, root;          /* root: or the peer of send and recv */
    const struct grouping *groups; /* of ranks, for the writer: collectives/levels/grouping.h */
    const struct recipe *recipe; /* of two levels, for the writer: collectives/levels/hierarchy.h */
    const struct plan *given;    /* of a file, for the writer: collectives/file/file.h */
    struct plan_reader *reader;  /* of what is written; NULL: steps are kept */
    unsigned parts;              /* atoms per block in a segment */
    unsigned message_atoms; /* the most in any message of any rank; 0: none carries user data */
    unsigned scratch_blocks;
    unsigned address_messages; /* how many PLAN_ADDRESSES messages this rank waits for */
    unsigned address_signals;  /* and how many it sends */
    int programs;
    struct plan_program program[PLAN_PROGRAMS_MAX];
    struct plan_step *steps;
    struct plan_operand *operands;
    uint32_t step_count, step_room, operand_count, operand_room;
    uint32_t *lines;    /* [step]: where a file has it; NULL: it is of none */
    uint32_t taken;     /* the step that verify_drop_step() took out, and 1; 0: none */
    bool out_of_memory; /* sticky: builders below do nothing more */
};

/* ---- Building: called by collectives/ -------------------------------------------------------- */

/* An empty plan for one rank, with one empty program on which builders append. */
rondo_result plan_open(rondo_collective collective, const char *algorithm, int size, int rank,
                       int root, struct plan **ret_plan);
void plan_close(struct plan *plan);

/* Set by the algorithm, the same on every rank. */
void plan_shape(struct plan *plan, unsigned parts, unsigned message_atoms, unsigned scratch_blocks);
/* Begin a further program of this rank: steps appended from now on belong to it. */
void plan_next_program(struct plan *plan);

struct plan_list {
    int count;
    const struct plan_operand *operands;
};
#define PLAN_LIST(...)                                                 \
    ((struct plan_list){sizeof((struct plan_operand[]){__VA_ARGS__}) / \
                            sizeof(struct plan_operand),               \
                        (struct plan_operand[]){__VA_ARGS__}})

/* Operands. `channel` of a slot says which link to the peer. */
struct plan_operand plan_input(const struct plan *plan, int block, int first);
struct plan_operand plan_output(const struct plan *plan, int block, int first);
struct plan_operand plan_scratch(const struct plan *plan, int block, int first);
struct plan_operand plan_slot(int peer, int channel);
/* The slot in a step that only passes slots on; `first` is the atom that its piece begins with. */
struct plan_operand plan_slot_piece(int peer, int channel, int first);
/* A peer's own user buffer; only between messages that
 * carry PLAN_ADDRESSES and the peer's last wait. */
struct plan_operand plan_peer_input(int rank, int block, int first);
struct plan_operand plan_peer_output(int rank, int block, int first);

/*
 * The usual step. Combine sources (1: copy, more: reduce) into destinations. A slot among the
 * sources is a whole message: it is waited for before and given back after; a slot among the
 * destinations is acquired before and signalled after. So {input} -> {slot(right)} is a send,
 * {slot(left)} -> {output} a receive, and {slot(left), input} -> {slot(right), output} receives,
 * reduces, keeps and passes on in one go.
 */
void plan_combine(struct plan *plan, unsigned atoms, unsigned flags, struct plan_list sources,
                  struct plan_list destinations);

/* The parts of plan_combine(), for messages of several pieces. */
void plan_acquire(struct plan *plan, int peer, int channel);                /* wait, credit */
void plan_signal(struct plan *plan, int peer, int channel, unsigned flags); /* signal, data */
void plan_wait(struct plan *plan, int peer, int channel, unsigned flags);   /* wait, data */
void plan_release(struct plan *plan, int peer, int channel);                /* signal, credit */
void plan_move(struct plan *plan, unsigned atoms, unsigned flags, struct plan_list sources,
               struct plan_list destinations); /* copy or reduce alone */

/* A step as another plan has it. `operands` are its sources and destinations; NULL: it has none. */
void plan_append(struct plan *plan, const struct plan_step *step,
                 const struct plan_operand *operands);

/* Wait until the peer has given back every message. */
void plan_settle(struct plan *plan, int peer, int channel);

/*
 * acquire + signal of an empty message, and wait + release of one: a flag between two ranks. With
 * PLAN_ADDRESSES every rank must tell every other before any of them touches memory of peers: then
 * all know alike whether all is reachable. A sender tells its receiver alone, and knows by itself.
 */
void plan_notify(struct plan *plan, int peer, int channel, unsigned flags);
void plan_await(struct plan *plan, int peer, int channel, unsigned flags);

/* ---- Reading --------------------------------------------------------------------------------- */

/* True if ranks that run the plan touch user buffers of peers, or have theirs touched. */
static inline bool plan_reaches(const struct plan *plan)
{
    return plan->address_messages || plan->address_signals;
}

/* Blocks of `count` elements in the user's buffers of this rank; 0: the buffer is not used. */
int plan_input_blocks(rondo_collective collective, int size, int rank, int root);
int plan_output_blocks(rondo_collective collective, int size, int rank, int root);

/* Kernels for GPUs read plans, too. */
#ifdef __CUDACC__
#define PLAN_READER static __host__ __device__ inline
#else
#define PLAN_READER static inline
#endif

PLAN_READER const struct plan_operand *plan_sources(const struct plan *plan,
                                                    const struct plan_step *step)
{
    return plan->operands + step->operand;
}
PLAN_READER const struct plan_operand *plan_destinations(const struct plan *plan,
                                                         const struct plan_step *step)
{
    return plan->operands + step->operand + step->sources;
}

/* One step as a line of text, "reduce input[0:2] + slot(3)
 * -> output[0:2]"; for messages and `rondo explain`. */
void plan_describe_step(const struct plan *plan, const struct plan_step *step, char *text,
                        size_t size);

#endif
