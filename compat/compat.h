/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compat.h - what the files of this room share.
 *
 * An ncclComm holds two communicators of Rondo over the same ranks: `calls` carries the calls of
 * the client, `control` only what makes new communicators out of this one. So a communicator that
 * was aborted or revoked, or whose calls a dead rank holds up, can still be split and shrunk: its
 * survivors talk on `control`, where nobody waits for the dead.
 */
#ifndef RONDO_COMPAT_COMPAT_H
#define RONDO_COMPAT_COMPAT_H

#include "compat/nccl_abi.h"

#include "rondo/cuda.h"
#include "rondo/rondo.h"

#include <pthread.h>
#include <stdatomic.h>

/*
 * Begins the definition of a public function: pncclX() is the function, ncclX() a weak name for it,
 * so that a profiler may put its own in front, as with NCCL.
 */
#define NCCL_API(type, name, ...)                                                          \
    __attribute__((visibility("default"))) type p##name(__VA_ARGS__);                      \
    __attribute__((visibility("default"), weak, alias("p" #name))) type name(__VA_ARGS__); \
    type p##name(__VA_ARGS__)

ncclResult_t pncclGetUniqueId(ncclUniqueId *uniqueId);
ncclResult_t pncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId commId, int rank,
                                     ncclConfig_t *config);
ncclResult_t pncclGroupStart(void);
ncclResult_t pncclGroupEnd(void);

enum { SENTENCE_MAX = 1024, SCALAR_MAX = 8 };

struct made_operation {
    bool used;
    ncclDataType_t type;
    const void *scalar; /* on the device, read at each call; NULL: `op` knows it */
    rondo_op op;
};

/* The memory for which ncclCommRegister() or ncclCommWindowRegister() has given out a handle. */
struct registered {
    struct registered *next;
    void *memory;
    bool is_window;
    rondo_registration *registration; /* NULL: noted, but nothing was to be gained */
};

/* These are the fields of a client's configuration that are honoured: the table in config.c. */
struct wishes {
    int blocking;               /* 0 or 1 */
    int min_blocks, max_blocks; /* of kernels; 0: not set */
    int policy;                 /* NCCL_CTA_POLICY_*, with '|' between */
    int traffic_class;          /* 0: the system's */
    const char *network;        /* Rondo's name of it, static; NULL: any */
    char name[64];              /* with which sentences about the communicator begin; "": none */
};

/* An ncclResult_t, and above it which jobs make communicators out of this one. They are one word: a
 * thread that finds the communicator ready may make the next one, and takes no job's end for that
 * of another. */
enum {
    STATE_RESULT = 0xff,
    STATE_SPLITS = 0x100,  /* a split or a growth, which other ranks tell apart by their order */
    STATE_SHRINKS = 0x200, /* this needs no order among the others, and one at a time */
    STATE_JOBS = STATE_SPLITS | STATE_SHRINKS,
    IN_BACKGROUND = 4, /* times STATE_JOBS: the client asks for the end of these */
};

struct ncclComm {
    uint64_t magic;
    pid_t maker;        /* the process; a forked child has neither its threads nor their calls */
    atomic_int holders; /* the client, jobs, calls; the last one frees it */
    atomic_int calling; /* calls in progress */
    int size, rank;
    int device; /* of CUDA; -1: host memory only */
    struct wishes wishes;
    rondo_comm *calls, *control;
    atomic_bool joined;   /* `calls` and `control` are there, for good */
    atomic_int state;     /* in progress, or the error of the last job; and bits of STATE_* */
    atomic_bool aborted;  /* by the client, here */
    atomic_bool revoked;  /* no more calls, but splits */
    atomic_bool finished; /* by the client, or destroyed: no more calls */
    atomic_bool shrunk;   /* its calls were ended for ncclCommShrink(): no error of its own */
    atomic_bool released; /* the client has given it back, or never got it */
    ncclUniqueId grow_id;
    bool has_grow_id;
    pthread_mutex_t lock; /* of all below */
    struct made_operation *operations;
    int operation_count;
    struct registered *registered;
    struct background *jobs; /* that make it in the background, or derive others; job.c */
    bool jobs_left;          /* nobody will wait for the end of one that starts now */
    char error[SENTENCE_MAX];
    ncclComm_t next; /* of all that there are, under the lock of error.c */
};

/* ---- error.c --------------------------------------------------------------------------------- */

/* Remember the sentence for ncclGetLastError(), of `comm` too unless it is NULL. */
ncclResult_t compat_fail(ncclComm_t comm, ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
ncclResult_t compat_translate(rondo_result result);
/* The client may ask for the last error of communicators between these two. */
void compat_error_begin(ncclComm_t comm);
void compat_error_end(ncclComm_t comm);
/* Translates what a function of Rondo returned on this thread, and keeps its sentence. */
ncclResult_t compat_result(ncclComm_t comm, rondo_result result);

/* ---- device.c: the CUDA driver, if there is one ---------------------------------------------- */

/* The device that the calling thread works on; -1: there is no CUDA. */
int compat_device_current(void);
int compat_device_count(void);
/* An error where this thread works on a device that Rondo cannot use. */
ncclResult_t compat_device_check(void);
/* Bytes from device memory, in the order of `stream`; waits for them. */
ncclResult_t compat_device_read(ncclComm_t comm, void *to, const void *from, size_t bytes,
                                cudaStream_t stream);

/* ---- communicator.c -------------------------------------------------------------------------- */

/* NULL: out of memory. State ncclInProgress, one holder. */
ncclComm_t communicator_new(int size, int rank, int device, const struct wishes *wishes);
/* True in a child of the process that made it. */
bool communicator_is_forked(ncclComm_t comm);
void communicator_hold(ncclComm_t comm);
void communicator_drop(ncclComm_t comm);
/* Drops the client's share, once: who aborts a communicator that is being made has done so. */
void communicator_release(ncclComm_t comm);
/* ncclInProgress as long as a job makes it, or others out of it in the background. */
ncclResult_t communicator_state(ncclComm_t comm);
/* The sentence names `function` where this is no communicator, or one that is not ready. */
ncclResult_t communicator_check(ncclComm_t comm, const char *function);
/* Does the same, but lets pass where others are made out of it. */
ncclResult_t communicator_check_made(ncclComm_t comm, const char *function);
/* Does as communicator_check(), for calls: they hold the communicator until they leave. */
ncclResult_t communicator_enter(ncclComm_t comm, const char *function);
/* A call on it begins that has been checked before; it is left like one that was entered. */
void communicator_call_begin(ncclComm_t comm);
void communicator_leave(ncclComm_t comm);

/* ---- stream.c -------------------------------------------------------------------------------- */

/* Rondo's stream over the client's; NULL for a communicator without a device. */
ncclResult_t compat_stream(ncclComm_t comm, cudaStream_t stream, rondo_stream **ret_stream);

/* ---- config.c -------------------------------------------------------------------------------- */

/* The wishes in the client's configuration, and where it has none, those inherited; both may be
 * NULL. */
ncclResult_t compat_config_read(const ncclConfig_t *config, const struct wishes *inherited,
                                struct wishes *ret_wishes);
/* The configurations for the two communicators of Rondo in this one. */
rondo_config compat_config_of_calls(ncclComm_t comm);
rondo_config compat_config_of_control(ncclComm_t comm);
/* The algorithm that the options of one call name; NULL: whatever is best. */
ncclResult_t compat_config_algorithm(ncclComm_t comm, const ncclCollConfig_t *config,
                                     const char **ret_algorithm);

/* ---- job.c: what makes a communicator, and may take long ------------------------------------- */

struct job {
    rondo_result (*run)(struct job *job); /* opens job->comm->calls */
    ncclComm_t comm;                      /* to be made; NULL: this rank gets none */
    ncclComm_t parent;                    /* NULL: none */
    ncclComm_t *ret_comm;
    rondo_unique_id id;
    bool has_id;
    int color, key; /* of a split */
    int *ranks;     /* of the parent, who go on, when it shrinks; else NULL */
    bool aborts;    /* when it shrinks: it ends the parent's calls, and splits that hang */
    /* Does what a call that is refused must not do, once the parent is ours; or NULL. */
    void (*begin)(struct job *job);
    int claim; /* of the last job of a chain: the bits in the parent's state that are its own */
};

/* Run it, here, in the background or at the end of the group; takes what the job holds. */
ncclResult_t compat_job_submit(const struct job *job);
/* Run many side by side. */
ncclResult_t compat_job_run_all(struct job *jobs, int count);
/* Give back what it holds, without having been run. */
void compat_job_discard(struct job *job);
/* The client destroys the communicator: wait until no thread is about to end that made it. Those
 * that still wait for other ranks, and those that start later, are left behind. */
void compat_jobs_end(ncclComm_t comm);

/* ---- group.c --------------------------------------------------------------------------------- */

bool compat_in_group(void);
ncclResult_t compat_group_add_job(const struct job *job);
/* The group's calls are Rondo's from here; `comm` is held until the group ends. */
ncclResult_t compat_group_add_call(ncclComm_t comm);
/* An error of a call in a group is the group's. Returns `result`. */
ncclResult_t compat_spoil(ncclResult_t result);

/* ---- operation.c ----------------------------------------------------------------------------- */

bool compat_type_of(ncclDataType_t type, rondo_type *ret_type);
/* `ret_made` says whether it is to be destroyed after the call. */
ncclResult_t compat_operation_of(ncclComm_t comm, ncclRedOp_t op, ncclDataType_t type,
                                 cudaStream_t stream, rondo_op *ret_op, bool *ret_made);

/* ---- memory.c -------------------------------------------------------------------------------- */

void compat_memory_forget(ncclComm_t comm);

#endif
