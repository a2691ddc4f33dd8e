/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * execution.h - what the host and the executor on the device share: the launch argument, the form
 * of short messages, and the words in which teams of blocks and the host are kept informed.
 *
 * struct plan, exec_world, execution and the links are those of the host's executor; the pointers
 * in them are addresses on the device.
 */
#ifndef RONDO_CUDA_KERNELS_EXECUTION_H
#define RONDO_CUDA_KERNELS_EXECUTION_H

#include "base/caller/times.h"
#include "cuda/kernels/calls.h"
#include "plan/exec.h"

/*
 * A short message: the flag as in every message (transport/link/link.h), and beside it words of 16
 * bytes, two halves of 8. Each half has 4 bytes of payload and the message's number, and is stored
 * whole, so who finds the number has the payload: nothing is waited for twice.
 *
 *     | number | 4 bytes | number | 4 bytes |
 *
 * Numbers wrap. So that no number of long ago is met again, all words of an entry are written
 * whenever the low 30 bits of the number come round.
 */
enum {
    CUDA_WORD_PAYLOAD = 8,
    CUDA_PACKED_WORDS = 1024,
    CUDA_PACKED_BYTES = CUDA_PACKED_WORDS * CUDA_WORD_PAYLOAD,
    CUDA_PACKED_ROOM = 8, /* messages of this form under way; no link may have more slots */
};
enum {
    CUDA_LINKS_NEAR = 40, /* links of a direction that a launch keeps in shared memory */
    CUDA_PEERS_NEAR = 16, /* ranks whose words it does */
};
#define CUDA_NUMBERS_FRESH UINT32_C(0x3fffffff)

struct cuda_word {
    uint64_t halves[2]; /* number in the low half of each */
};
struct cuda_packed {
    struct link_line head;
    struct cuda_word words[CUDA_PACKED_WORDS];
};
struct cuda_ll {
    struct cuda_packed entries[CUDA_PACKED_ROOM];
};

/* The tasks that all lanes of a block, or of a team of blocks, do together. */
enum cuda_command { CUDA_COPY, CUDA_COMBINE, CUDA_PACK, CUDA_UNPACK, CUDA_QUIT };
struct cuda_task {
    uint32_t command; /* enum cuda_command */
    uint32_t blocks;  /* that take part */
    int32_t kind;     /* enum cuda_kind */
    int32_t sources, destinations;
    uint32_t number; /* pack, unpack: of the message */
    uint64_t count;  /* copy: bytes; combine: elements; pack, unpack: words */
    struct cuda_arithmetic arithmetic;
    uint64_t operands[CUDA_OPERANDS_MAX];
};

/* In memory of the device, one for each program: how its first block leads the others. */
struct cuda_team {
    alignas(LINK_LINE) uint32_t posted; /* tasks of this launch; the leader's */
    alignas(LINK_LINE) uint32_t done;   /* sum over helpers of the tasks they have done */
    struct cuda_task task;
};

/* In memory of the host, one for each program: where it is, and how it ended. */
struct cuda_status {
    alignas(LINK_LINE) uint32_t state; /* enum exec_state; EXEC_BLOCKED while it runs */
    uint32_t step;                     /* index in the plan, as of some 50 microseconds ago */
    uint32_t blamed;                   /* a rank */
    uint32_t foreign;
    uint64_t segment; /* its first element */
    uint32_t inside;  /* other than 0: it may be touching memory of peers */
};

/* The words that have the kernels of a device communicator touch nothing of peers any more, and
 * end; and why the first of them stopped by itself. */
struct cuda_halt {
    alignas(LINK_LINE) uint32_t stop;
    uint32_t hold;
    uint32_t program;          /* of what `failed` says */
    struct cuda_status failed; /* state: EXEC_DONE until there was a failure */
};

/* How long the user buffers of a rank are, in blocks. */
struct cuda_extent {
    uint32_t inputs, outputs;
};

/* In memory of the device: a region, and the number of changes of the table (plus 1, so that 0 is
 * never) under which it was read there. */
struct cuda_known_region {
    struct cuda_region region;
    uint64_t changes;
};

enum { CUDA_ADDRESS_NONE, CUDA_ADDRESS_WORD }; /* kinds in struct link_addresses */

struct cuda_execute_argument {
    struct execution execution; /* `plan`, `world`: addresses; `op`: NULL or not */
    struct kernel_op op;
    struct cuda_arithmetic arithmetic; /* of the operation */
    uint64_t scratch;
    uint64_t teams;   /* struct cuda_team, by program */
    uint64_t status;  /* struct cuda_status, by program */
    uint64_t halt;    /* struct cuda_halt in memory of the host; stop other than 0: give up */
    uint64_t extents; /* struct cuda_extent, by rank */
    uint64_t regions; /* struct cuda_region: regions_each for every rank */
    /* A 32-bit word that grows whenever regions or gates have changed; 0: they are looked at each
     * time. And struct cuda_known_region, as regions. */
    uint64_t changes, known;
    uint64_t gates; /* 32-bit words, gate_stride apart, for every rank; 0: there are none */
    uint64_t error; /* a word for CUDA_CALL_BAD_PEER and a rank that cannot be reached, or 0 */
    uint32_t gate_stride;
    uint32_t regions_each;
    uint32_t awaited[PLAN_PROGRAMS_MAX]; /* messages with addresses, by program */
    /* By program: bits of the links that it uses, of the first CUDA_LINKS_NEAR. */
    uint64_t out_used[PLAN_PROGRAMS_MAX], in_used[PLAN_PROGRAMS_MAX];
    uint32_t blocks; /* of a team */
    uint32_t alone;  /* bytes of a piece that its leader moves alone */
    int32_t kind;    /* enum cuda_kind */
};

#endif
