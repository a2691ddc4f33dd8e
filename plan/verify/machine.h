/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * machine.h - the machine that runs the plans of all ranks on symbols.
 *
 *   member   a rank: its plan, its user's buffers in each segment, and the scratch of all segments
 *   actor    one program of a member, walking through segments and calls on its own
 *   link     (from, to, channel) with its few slots
 *
 * Programs only wait for given links and never choose, so every schedule leads to the same values,
 * the same deadlock and the same order of events; one greedy run stands for all. Order is kept in
 * vector clocks: verify/race.c.
 *
 * Each call is run in two segments, so that programs may be in different ones, and two calls follow
 * back to back. Between them "the user" of a rank reads its output and overwrites everything, as
 * soon as this rank's programs are through.
 */
#ifndef RONDO_PLAN_VERIFY_MACHINE_H
#define RONDO_PLAN_VERIFY_MACHINE_H

#include "plan/verify/value.h"
#include "plan/verify/verify.h"

#include <stddef.h>

enum { VERIFY_SEGMENTS = 2, VERIFY_NOBODY = -1, VERIFY_NO_LINK = -1 };

/*
 * An atom of memory. Epochs (actor and its clock in one word) say who touched it last, 0: nobody.
 */
struct verify_cell {
    uint64_t write, read;
    uint32_t readers;    /* further reads since the last write: a list in the machine, 0: none */
    uint32_t written_in; /* scratch: lap in which the value was written */
    verify_value value;
};

struct verify_reader {
    uint64_t epoch;
    uint32_t next;
};

struct verify_member {
    const struct plan *plan; /* NULL: takes no part */
    int32_t *step_links;     /* [step]: of signal and wait */
    int32_t *operand_links;  /* [operand]: of slots */
    int32_t *posted;         /* [step]: verify/posted.c */
    int32_t notes;           /* clocks per program, beside one */
    size_t first_note;       /* in the machine's */
    struct verify_cell *memory;
    struct verify_cell *input[VERIFY_SEGMENTS], *output[VERIFY_SEGMENTS], *scratch;
    uint32_t input_blocks, output_blocks;
    int actor, programs; /* its actors are actor .. actor + programs - 1 */
    int done;            /* programs that are through with this call */
    int call;
};

struct verify_actor {
    int member, program;
    uint32_t step; /* index into the plan's steps */
    int call, segment;
    int met;         /* other ranks that have said where their buffers are, in this segment */
    int open;        /* slots in its hands */
    int32_t blocked; /* link it waits for */
    bool done;       /* with this call */
    bool queued;
    int level; /* length of the longest chain of messages that led here */
};

/* An atom in a slot. */
struct verify_parcel {
    verify_value value;
    uint32_t atom; /* its index in its block, which decides its length */
    bool begins;   /* a piece */
};

struct verify_slot {
    struct verify_parcel *parcels;
    uint32_t *sent_clock;  /* what the sender knew */
    uint32_t *freed_clock; /* what the receiver knew when it gave it back; the same memory */
    uint32_t length;
    uint32_t lap;  /* call and segment it belongs to */
    uint32_t step; /* that signalled it */
    uint8_t flags;
    int level, freed_level;
};

struct verify_link {
    int from, to, channel;   /* ranks */
    int sender, receiver;    /* actors, VERIFY_NOBODY */
    uint32_t sent, received; /* messages published, given back */
    bool writing, reading;   /* a slot is open at this end */
    uint32_t taken;          /* atoms of the message that is being read */
    int level;               /* of the last message */
    struct verify_slot *slot;
};

/* A source or destination of the step that is being run: cells, or parcels. */
struct verify_range {
    struct verify_cell *cells;
    struct verify_parcel *parcels;
    enum { RANGE_INPUT, RANGE_OUTPUT, RANGE_SCRATCH, RANGE_SLOT } kind;
};

struct verify_machine;
struct verify_observer {
    void *context;
    /* After each step that was run. */
    void (*stepped)(void *context, const struct verify_machine *machine,
                    const struct verify_actor *actor, const struct plan_step *step);
};

struct verify_machine {
    struct plan *const *plans;
    int size; /* members */
    int ranks;
    int slots, calls, segments;
    bool in_place;
    bool reduces; /* the collective adds up */
    rondo_collective collective;
    uint32_t parts;
    const struct verify_observer *observer; /* NULL: none */

    struct verify_member *members;
    int *member_of; /* [rank] */
    int actor_count;
    struct verify_actor *actors;
    uint32_t *clocks;    /* [actor][actor] */
    uint32_t *notes;     /* [note][actor]: what programs knew where they posted receives */
    uint8_t *introduced; /* [actor][rank]: lap in which the rank's addresses came */
    int link_count, link_room;
    struct verify_link *links;
    int32_t *link_index; /* [from][to][channel] */
    struct verify_slot *slot_pool;
    struct verify_parcel *parcel_pool;
    uint32_t *clock_pool;
    struct value_table values;
    struct verify_reader *readers;
    uint32_t reader_count, reader_room, reader_free;

    struct verify_range *ranges; /* operands of the step being run */
    verify_value *sums;
    int *queue; /* of actors that can go on, a ring */
    int queue_head, queue_length;
    /* [position]: the result of the first rank; all_reduce gives everybody the same */
    verify_value *first_result;

    struct verify_report *report;
    bool out_of_memory;
};

/* ---- verify/machine.c: making and running it ------------------------------------------------- */

/* Sets report->failure (and returns false) if the plans are not well formed. */
bool verify_machine_open(struct verify_machine *machine, struct plan *const *plans, int size,
                         const struct verify_options *options, struct verify_report *report);
void verify_machine_close(struct verify_machine *machine);
/* verify/run.c: run to the end; false if something failed, see the report. */
bool verify_machine_run(struct verify_machine *machine);
void verify_wake(struct verify_machine *machine, int actor);

/* Two laps never meet in one memory: a number per call and segment, from 1. */
static inline uint32_t verify_lap(const struct verify_machine *machine,
                                  const struct verify_actor *actor)
{
    return (uint32_t)(actor->call * machine->segments + actor->segment + 1);
}

/* ---- verify/shape.c: checks that need no run ------------------------------------------------- */

bool verify_shape(struct verify_machine *machine);
/* Find both ends of every link. */
bool verify_connect(struct verify_machine *machine);

/* ---- verify/link.c, verify/step.c: steps ----------------------------------------------------- */

enum verify_state { VERIFY_MOVED, VERIFY_BLOCKED, VERIFY_FAILED };

enum verify_state verify_wait(struct verify_machine *machine, struct verify_actor *actor);
bool verify_signal(struct verify_machine *machine, struct verify_actor *actor);
bool verify_move(struct verify_machine *machine, struct verify_actor *actor);
/* The next atoms of the incoming message, or room for them in the outgoing one; NULL: failed. */
struct verify_parcel *verify_take(struct verify_machine *machine, struct verify_actor *actor,
                                  int link, uint32_t atoms);
struct verify_parcel *verify_append(struct verify_machine *machine, struct verify_actor *actor,
                                    int link, uint32_t atoms);

/* ---- verify/posted.c: receives of a network -------------------------------------------------- */

/* The copy of a message that a network may have put in its place before. */
struct verify_posting {
    const struct plan_operand *place;
    const uint32_t *known[2]; /* clocks: where it was posted, where it was sent */
};

bool verify_post(struct verify_machine *machine);
/* The actor has its message and has learnt nothing from it yet. */
void verify_note(const struct verify_machine *machine, const struct verify_actor *actor);
/* False: the actor's step is no such copy. */
bool verify_is_posted(const struct verify_machine *machine, const struct verify_actor *actor,
                      struct verify_posting *ret_posting);

/* ---- verify/race.c: order -------------------------------------------------------------------- */

static inline uint32_t *verify_clock(const struct verify_machine *machine, int actor)
{
    return machine->clocks + (size_t)actor * (size_t)machine->actor_count;
}
void verify_join(const struct verify_machine *machine, uint32_t *into, const uint32_t *from);
/*
 * Note that `actor` reads or writes the cell now. 0, or the epoch of an access that is not ordered
 * with it.
 */
uint64_t verify_reads(struct verify_machine *machine, int actor, struct verify_cell *cell);
uint64_t verify_writes(struct verify_machine *machine, int actor, struct verify_cell *cell);
/* Does as verify_writes() where only `known` is known, and without noting anything. */
uint64_t verify_places(const struct verify_machine *machine, const struct verify_cell *cell,
                       const uint32_t *const known[2]);
/* True if the very step that `actor` is at wrote the cell. */
bool verify_written_now(const struct verify_machine *machine, int actor,
                        const struct verify_cell *cell);
/* Clock of an actor at the start of a call; steps of the call follow. */
uint32_t verify_call_clock(const struct verify_machine *machine, int actor, int call);
/* Says where that was as verify_place() does, or "the user of rank 2, between calls". */
void verify_describe_epoch(const struct verify_machine *machine, uint64_t epoch, char *text,
                           size_t size);

/* ---- verify/user.c: before and after a call -------------------------------------------------- */

bool verify_user_start(struct verify_machine *machine, int member);
/* The programs are through: is the result right? Then the user takes its buffers back. */
bool verify_user_end(struct verify_machine *machine, int member);

/* ---- Failing --------------------------------------------------------------------------------- */

/* The sentence begins with the actor's rank, program and step. Returns false. */
bool verify_fail(struct verify_machine *machine, const struct verify_actor *actor,
                 const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The sentence as it is. */
bool verify_refuse(struct verify_machine *machine, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool verify_no_memory(struct verify_machine *machine);
/* "rank 2, program 0, step 5 (...)"; of a file "step 5 in line 18 (...)". */
void verify_place(const struct verify_machine *machine, const struct verify_actor *actor,
                  uint32_t step, char *text, size_t size);
/* "rank 3", "ranks 0..3, 5": those in the sum, or those that it lacks. */
void verify_describe_ranks(const struct verify_machine *machine, verify_value value, bool missing,
                           char *text, size_t size);

#endif
