/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.h - running a plan on memory.
 *
 * An execution is a plan bound to buffers and a count. It never blocks: exec_advance() runs every
 * program until it has to wait and says so, which lets one thread run many executions side by side
 * (groups, many ranks per thread). A program's counter and segment are the answer to "where does it
 * hang".
 */
#ifndef RONDO_PLAN_EXEC_H
#define RONDO_PLAN_EXEC_H

#include "base/collective.h"
#include "kernels/kernels.h"
#include "plan/plan.h"
#include "transport/link/link.h"

/* The user buffers of a rank during a call, as its message with PLAN_ADDRESSES said. */
struct exec_peer {
    char *input, *output;  /* mapped here; NULL: they are not, or are not used */
    uint64_t remote_input; /* address in the peer's memory, for reads across processes; 0: none */
};

struct exec_world;
struct execution;
struct exec_world_ops {
    /* Turn what `peer` said (not trusted) into `ret_peer`.
     * `bytes`: how long its input and output are. */
    void (*resolve)(struct exec_world *world, int peer, const struct link_addresses *said,
                    const size_t bytes[2], struct exec_peer *ret_peer);
    /* Copy from the memory of a peer that is not mapped. */
    rondo_result (*read)(struct exec_world *world, int peer, void *to, uint64_t from, size_t bytes);
    /* The alarm is on: has a rank of this host left the collective in progress or, of a message
     * that is received, has its sender failed? */
    bool (*is_left)(const struct execution *x);
};

/* The part of a communicator that the executions of one rank use. */
struct exec_world {
    const struct exec_world_ops *ops;
    int rank, size;
    size_t slot_bytes;
    struct link_depths ll_depths;
    struct link_out *out; /* [channel * size + peer] */
    struct link_in *in;
    /* [rank], of the collective in progress; and then [rank], of messages that are received */
    struct exec_peer *peers;
    const void **sources; /* room for the operands of the longest step */
    void **destinations;
    char *packed; /* memory that the links pack their short messages in */
    char *scratch;
    size_t scratch_bytes;
    /* Ranks touch each other's memory only under these (failure/leave.h). NULL: they never do. */
    LINK_ATOMIC(uint32_t) * inside; /* how many executions may be touching memory of peers */
    /* Nonzero: some rank of this host has left a call with an error */
    LINK_ATOMIC(uint32_t) * alarm;
    struct trace *trace; /* of this rank's steps; NULL: they are not traced */
    bool zcopies;        /* some links take payload from memory of the caller: zcopy.h */
    struct connection *zcopy_connection; /* one that did; NULL: none has */
};

/* Stores of an execution that go past the cache, and the length of a piece from which on they
 * do. */
enum {
    PAST_CACHE_SLOTS = 1,
    PAST_CACHE_OUTPUTS = 2,
    PAST_CACHE_FROM = 4096 /* bytes of a piece */
};

/* A shape says how a count is cut; it is worked out once per plan, count and element size. */
struct exec_shape {
    size_t count;      /* elements per block */
    size_t element;    /* bytes */
    size_t segment;    /* elements per block and segment, 0: the count is 0 */
    size_t grain;      /* chunk boundaries lie on multiples of so many elements */
    size_t longest;    /* bytes of user data in the longest message */
    size_t each, rest; /* in a whole segment: grains per atom, and how many atoms get one more */
    unsigned lines;    /* LL lines of every message; 0: messages are plain */
    bool parted;       /* messages are; `lines` is 1 then, of which only the flag is used */
    /* Payloads that are much shorter than a slot use its places in turn. */
    size_t place;        /* bytes from one to the next */
    uint32_t last_place; /* counted from 0; their number is a power of 2 */
};

struct exec_program {
    uint32_t at, begin, end; /* program counter and its bounds */
    bool done;
    bool expects;      /* messages from here on may come to where they are wanted (zcopy.h) */
    int blamed;        /* the peer that it waits for */
    uint32_t blocked;  /* of a traced execution: 1 + the step that had to wait, or 0 */
    size_t start;      /* first element of the segment */
    size_t length;     /* of the segment */
    size_t each, rest; /* grains per atom, and how many atoms get one more */
};

enum exec_state {
    EXEC_DONE,
    EXEC_MOVED,    /* something happened, call again */
    EXEC_BLOCKED,  /* every program waits */
    EXEC_FALLBACK, /* memory can't be reached: all ranks see this before any data moved */
    EXEC_MISMATCH, /* a message of another call came from `blamed` */
    EXEC_FAILED,   /* reading a peer's memory failed; the sentence is set */
    EXEC_LEFT,     /* a rank has left the call: its memory is its own again */
};

struct execution {
    const struct plan *plan;
    struct exec_world *world;
    const struct kernel_op *op; /* NULL: nothing is reduced */
    struct exec_shape shape;
    const char *input;
    char *output;
    struct link_addresses own; /* what PLAN_ADDRESSES messages say */
    uint32_t fingerprint;
    uint32_t traced;     /* number of the call in the trace, if there is one */
    unsigned past_cache; /* a sum of PAST_CACHE_...; no result depends on it */
    uint32_t foreign;    /* EXEC_MISMATCH: the fingerprint that came */
    int blamed;          /* EXEC_BLOCKED, EXEC_MISMATCH: the peer */
    bool zcopies;        /* its messages are long enough, and some link does */
    bool unreachable; /* some rank's memory can't be reached; set by the caller for this rank's */
    uint32_t awaited; /* address messages of the first segment still to come; wraps in later ones */
    bool entered;     /* from here on memory of peers is touched */
    /* The thread is known to have the mode of base/caller/float_mode.h. It stays known because the
     * thread that started an execution which reduces is the one that advances it, and because a
     * user's operation leaves the mode as it found it. */
    bool our_mode;
    struct exec_program programs[PLAN_PROGRAMS_MAX];
};

/* Returns what a peer's message with addresses has said. */
static inline struct exec_peer *exec_peer(const struct execution *execution, int rank)
{
    const struct plan *plan = execution->plan;

    return &execution->world->peers[(collective_is_pair(plan->collective) ? plan->size : 0) + rank];
}

/* RONDO_ERROR_UNSUPPORTED if the slots are too small for one element per message. */
rondo_result exec_shape_plan(const struct plan *plan, size_t count, size_t element,
                             size_t slot_bytes, struct exec_shape *ret_shape);
/* Has short messages use so many parts of a slot in turn, if the slots of this shape are as long as
 * that, so that as many times more of them may be under way. */
void exec_shape_in_parts(struct exec_shape *shape, size_t slot_bytes, uint32_t parts);
/* Bytes of scratch that an execution of this shape needs. */
size_t exec_scratch_bytes(const struct plan *plan, const struct exec_shape *shape);

/* Begin. The fields plan .. fingerprint and `unreachable`
 * are set by the caller; scratch is large enough. */
void exec_start(struct execution *execution);
enum exec_state exec_advance(struct execution *execution);
/* True if an execution that is about to begin can send all its messages before it waits for one:
 * its first exec_advance() does so. */
bool exec_sends_first(const struct execution *execution);
/*
 * Blocked: look up to `looks` times whether a message is there that some program waits for. A look
 * is a load, where exec_advance() takes as long as tens of them. If all programs wait for room for
 * inlined messages, true after a few pauses: half of many have to be taken until there is, and each
 * look at the counter takes its line from the reader, who counts every message.
 */
bool exec_poll(const struct execution *execution, int looks);
/*
 * Blocked: has a message come in another form than the one that is waited for, so from another
 * call? Sets `blamed` and `foreign`. For suspicious waits only; exec_advance() does not look there.
 */
bool exec_has_unexpected(struct execution *execution);
/* True if any peer has sent a message of this call's form on those channels (a set of bits). Ranks
 * that wait for no message ask this. */
bool exec_unexpected(const struct execution *execution, unsigned channels);
/* The channels on which a plan sends, if it waits for no message; 0: it waits for some. */
unsigned exec_deaf_channels(const struct plan *plan);
/* Writes the step at which the execution waits: "step 17 of ring all_reduce: wait for a message
 * from rank 2". */
void exec_describe(const struct execution *execution, char *text, size_t size);

#endif
