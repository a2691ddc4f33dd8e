/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.h - many small jobs in which one rank fails, and what must hold in each of them.
 *
 * A seed is a scene: ranks, a call, the memory of its buffers, a victim and its fate. The ranks
 * make the call; at a random step of the victim's plan, also in the middle of a copy, it strikes.
 * As soon as a rank's call has ended, the rank poisons its buffers, gives them back and uses new
 * ones, and watches all of them until every rank is done. Then
 *
 *     no word of the poison has changed               no peer touches memory after an error
 *     RONDO_OK came with every element right          OK means right
 *     every call has ended, no process has crashed    no call blocks for ever
 *     each sentence names the victim                  a culprit is named on every survivor
 *
 *     soak.c    seeds side by side        scene.c   a seed becomes a scene
 *     stage.c   starts and watches ranks  rank.c    what a rank does
 *     fate.c    strikes the victim        memory.c  buffers, their poison and their reuse
 *     judge.c   what was wrong            report.c  summary and table of runs
 */
#ifndef RONDO_TESTS_FAILURE_SOAK_H
#define RONDO_TESTS_FAILURE_SOAK_H

#include "../world.h"

#include <stdatomic.h>
#include <stdio.h>

enum { SOAK_RANKS = 6, SOAK_TEXT = WORLD_SENTENCE };

/* ---- The scene ------------------------------------------------------------------------------- */

enum soak_transport {
    SOAK_SHM,
    SOAK_TCP,
    SOAK_MIXED, /* two "hosts" */
    SOAK_GPU,   /* calls on CUDA streams, on one host */
    SOAK_TRANSPORTS
};

enum soak_fate {
    FATE_STOP,  /* SIGSTOP at a step, SIGCONT later: mostly when the others have given up */
    FATE_KILL,  /* SIGKILL at a step */
    FATE_ABORT, /* another thread aborts while the call is at a step */
    FATE_SLOW,  /* a step takes longer than the others' timeout */
    FATE_LATE,  /* the call is made when the others have given up */
    FATE_CLOSE, /* the communicator is closed instead of making the call */
    SOAK_FATES
};

enum soak_memory {
    MEMORY_MALLOC,
    MEMORY_MAPPED,
    MEMORY_HEAP,
    MEMORY_REGISTERED,
    HOST_MEMORIES,
    MEMORY_CUDA = HOST_MEMORIES, /* cuMemAlloc() */
    MEMORY_CUDA_SHARED,          /* rondo_cuda_mem_alloc() */
    SOAK_MEMORIES
};

/* The ending says when a rank closes the communicator after its call. */
enum soak_ending { CLOSES_FIRST, CLOSES_AFTER_REUSE, KEEPS_OPEN, SOAK_ENDINGS };

/* A part is what one rank brings, and what it does after its call. */
struct part {
    enum soak_memory input, output;
    size_t input_offset, output_offset; /* bytes from the beginning of its memory */
    bool renews;      /* gives its buffers back and takes new ones; else it keeps them */
    bool deregisters; /* of the buffers that it keeps */
    enum soak_ending ending;
    unsigned skew; /* microseconds between the start of the others and its call */
};

enum { FATE_PARTS = 16 };

struct fate {
    enum soak_fate kind;
    int victim;
    bool at_data;   /* at a step that moves data, if there is one; else at any */
    uint64_t draw;  /* which step: modulo their number, as counted in the call before */
    unsigned parts; /* so many of FATE_PARTS of that step's data are moved before it strikes */
    bool in_time;   /* it goes on after `pause`, else when all others have done with their memory */
    double pause;   /* in timeouts */
    bool lingers;   /* abort: in the middle of the step until the others have ended */
};

struct scene {
    uint64_t seed;
    enum soak_transport transport;
    int size;
    bool threads; /* of one process */
    rondo_collective collective;
    const char *algorithm; /* NULL: as Rondo chooses */
    rondo_type type;
    rondo_op op;
    int root;
    size_t count;
    bool in_place, shares_page; /* input and output; the latter: one after the other */
    unsigned warm_ups;          /* the same call before; at least one, if an algorithm is named */
    size_t slot_bytes;
    int slots, deterministic;
    const char *cma, *stream, *cuda, *cuda_piece; /* settings of these names */
    struct fate fate;
    struct part parts[SOAK_RANKS];
    double timeout; /* seconds; depends on the machine's load, all else on the seed alone */
};

/* `patience` stretches short timeouts: 1, or more on a second attempt. */
void scene_make(uint64_t seed, enum soak_transport transport, double patience,
                struct scene *ret_scene);
void scene_describe(const struct scene *scene, char *text, size_t size);
/* The memory of the buffers in a word: a kind, or "mixed". */
const char *scene_memory(const struct scene *scene);
/* Elements of the buffers of a rank; 0 where it has none. */
void scene_lengths(const struct scene *scene, int rank, size_t *ret_input, size_t *ret_output);

extern const char *const soak_transports[SOAK_TRANSPORTS],
    *const soak_fates[SOAK_FATES], *const soak_memories[SOAK_MEMORIES],
                                       *const soak_endings[SOAK_ENDINGS];

/* ---- One run --------------------------------------------------------------------------------- */

enum phase {
    PHASE_OPENING,
    PHASE_READY,   /* the calls before have been made */
    PHASE_ENDED,   /* its call has returned, or will not be made */
    PHASE_SETTLED, /* its memory is given back or poisoned, and watched */
    PHASE_GONE,    /* it has reported, or died */
};

/* The steps of a call, as fate.c sees them. */
struct steps {
    unsigned all, data; /* data: those that move some */
};

struct rank_report {
    char early[SOAK_TEXT]; /* what went wrong before the fate could strike */
    rondo_result result;
    bool called;
    char sentence[SOAK_TEXT];
    char wrong[SOAK_TEXT]; /* RONDO_OK, but this */
    bool untold;    /* RONDO_OK of the stream, an error of the communicator, and a wrong result */
    size_t changed; /* words */
    char touched[SOAK_TEXT]; /* which */
    struct steps steps;      /* of the call before */
    unsigned moment;         /* which step was chosen */
    char where[64];          /* the victim: what was struck */
    bool missed;             /* the call ended before that step */
    bool after_errors;       /* the victim went on when a call elsewhere had failed */
    double ended;            /* seconds from the start of the calls */
};

/* The stage is what all ranks of a run see, and who watches them. */
struct stage {
    rondo_unique_id id;
    _Atomic int id_state; /* 0: not yet, 1: there, 2: failed */
    _Atomic int go, over;
    double began;
    _Atomic int phases[SOAK_RANKS];
    struct rank_report reports[SOAK_RANKS];
};

enum defect {
    DEFECT_CHANGED, /* memory was written after its owner's call had ended */
    DEFECT_WRONG,   /* RONDO_OK with a wrong result */
    DEFECT_UNTOLD,  /* the same of rondo_stream_synchronize(), but rondo_comm_query() knows */
    DEFECT_HUNG,
    DEFECT_CRASHED,
    DEFECT_UNNAMED, /* a survivor's sentence does not name the victim */
    DEFECT_SPOILED, /* failed before the fate could strike, twice */
    SOAK_DEFECTS
};
extern const char *const soak_defects[SOAK_DEFECTS];

struct outcome {
    uint64_t seed;
    bool ran;
    unsigned defects;             /* bit 1 << defect */
    bool missed, late_ok, spared; /* no defects: the step did not come; OK after errors elsewhere;
                                     all calls returned RONDO_OK */
    size_t changed;
    double seconds;
    char text[3 * SOAK_TEXT]; /* of the defects */
};

double soak_now(void);
/* True if all ranks but this one have come so far. */
bool stage_others_reached(struct stage *stage, int size, int rank, enum phase phase);
/* Start the ranks of a scene and watch them. In a process of its own without threads. */
void stage_run(const struct scene *scene, bool verbose, struct outcome *ret_outcome);
/* Where a rank's calls run, if not on the host. */
struct soak_device {
    int number;
    void *cuda_stream;
    rondo_stream *stream; /* NULL: they run on the host */
};
/* A rank from its start to its end. */
void rank_run(const struct scene *scene, struct stage *stage, int rank, rondo_comm *comm,
              const struct soak_device *device);
/* Finds what is wrong with a run in which nothing hung or crashed; adds to the outcome. */
void judge_run(const struct scene *scene, const struct stage *stage, struct outcome *outcome);
/* Note a defect with a sentence. */
void outcome_add(struct outcome *outcome, enum defect defect, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- Fates (of the calling thread) ----------------------------------------------------------- */

/* Count the steps of the calls from now on. */
void fate_count(void);
struct steps fate_counted(void);
struct fate_post {
    const struct scene *scene;
    struct stage *stage;
    int rank;
    _Atomic int aborts, aborted; /* for the thread that aborts */
};
/* The fate strikes at step number `moment` of the calls from now on; or at that of those which move
 * data. */
void fate_arm(struct fate_post *post, bool data_only, unsigned moment);
/* The fate strikes now, if it has not yet; the text says where. */
void fate_strike(const char *where);
/* The call has ended; if the step has not come, the fate strikes now. */
void fate_finish(void);
/* The victim waits as its fate says. */
void fate_linger(struct fate_post *post);

/* ---- Memory ---------------------------------------------------------------------------------- */

enum { MEMORY_ARENAS = 8 };

struct arena {
    enum soak_memory kind;
    char *base;
    size_t bytes;
    size_t begin, end; /* of what is registered */
    rondo_registration *registration;
};

struct memory {
    uint64_t salt;
    struct arena arenas[MEMORY_ARENAS];
    int count;
    char *input, *output; /* NULL: none */
    /* The same on the host: themselves, or copies of device memory. */
    char *input_view, *output_view;
    bool input_is_far, output_is_far; /* on a device */
    size_t input_count, output_count, element;
};

rondo_result memory_open(const struct scene *scene, int rank, rondo_comm *comm,
                         struct memory *ret_memory);
/* Device memory needs these: bring what the views have there, bring what is there to the views. */
void memory_push(struct memory *memory);
void memory_pull(struct memory *memory);
/* Fill all of it with numbers that depend on the place. */
void memory_poison(struct memory *memory);
/* Give the buffers back as its part says, and use what the allocators hand out next. */
rondo_result memory_reuse(struct memory *memory, const struct part *part, rondo_comm *comm);
/* Words that are not poison; the text says which. */
size_t memory_changed(const struct memory *memory, char *text, size_t size);
/* The communicator has been closed, and its registrations with it. */
void memory_forget_registrations(struct memory *memory);
void memory_close(struct memory *memory, rondo_comm *comm);

/* ---- Report ---------------------------------------------------------------------------------- */

struct report_options {
    enum soak_transport transport;
    FILE *csv; /* NULL: none */
};

void report_csv_head(FILE *csv);
void report_run(const struct report_options *options, const struct outcome *outcome);
/* Counts per fate, memory and transport; returns how many runs had a defect. */
int report_summary(const struct report_options *options, const struct outcome *outcomes, int count);

#endif
