/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h - how the trace of a process lies in its file: what `rondo trace` reads.
 *
 *     0         whose it is; how much of the ring was taken so far
 *     ...       the communicators that the process had, the names of its calls, and sums of them
 *     ...       a ring of events, in pieces: event number n is at n modulo `room`, which is 0 if
 *               RONDO_PROFILE asked for the sums alone
 *
 * The process has the file mapped and stores into it, so what it wrote is there also after it was
 * killed. Each communicator takes one piece of the ring after the other, and fills it in the order
 * of its events; what is not filled yet is 0. An event that was being written when the process was
 * killed is half there: a reader takes only those whose communicator, call and kind make sense.
 */
#ifndef RONDO_BASE_TRACE_PAGE_H
#define RONDO_BASE_TRACE_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define TRACE_MAGIC 0x6563617274646e72u /* "rndtrace" */
enum {
    TRACE_VERSION = 3,
    TRACE_COMMS = 1024,
    TRACE_NAMES = 1024,
    TRACE_NAME = 120, /* bytes, with the 0 at the end */
    TRACE_LINE = 64,
    TRACE_PIECE = 64, /* events; rings have whole pieces */
};

enum trace_kind {
    TRACE_NOTHING,
    TRACE_BEGIN,        /* a call begins, or once more in another way */
    TRACE_END,          /* a call has ended */
    TRACE_STEP,         /* a step has ended that moved data or was waited for */
    TRACE_SPAN,         /* something of the program's own begins, */
    TRACE_SPAN_END,     /* and has ended */
    TRACE_SEND,         /* a send with a tag is posted, */
    TRACE_RECV,         /* or a receive; */
    TRACE_COMPLETE,     /* it has ended, with the peer, tag and bytes that its message had */
    TRACE_FAILED,       /* it has ended with an error, or was given up */
    TRACE_QUEUED,       /* a call, or a piece of one, is put into a CUDA stream, which */
    TRACE_STREAM_BEGIN, /* comes to it, */
    TRACE_STREAM_END,   /* and is through with it */
    TRACE_KINDS,
};

struct trace_event {
    uint64_t when;   /* nanoseconds of CLOCK_MONOTONIC */
    uint32_t call;   /* counts the calls, or messages, of the communicator in this process */
    uint16_t comm;   /* number in the table */
    uint8_t kind;    /* enum trace_kind */
    uint8_t program; /* of a step */
    union {
        struct {                 /* of a step */
            uint8_t verb, event; /* enum plan_verb, enum plan_event */
            uint16_t step;       /* of the plan, modulo 65536 */
        };
        int32_t tag; /* of a message; -1: any */
    };
    union {
        int32_t peer;    /* of a wait or a message, -1: any; else -1 */
        uint32_t stream; /* of a queued call: number of its CUDA stream */
    };
    union {
        uint64_t bytes; /* of a copy or reduce: its range; of a message, or of the room for it */
        struct {
            uint32_t name; /* of a call that begins, or of a span: number in the table */
            /* By which the ranks count the call, 0: a message between two ranks. Of a span: what
             * tells it from others of its name. */
            uint32_t number;
        } begun;
    } of;
};

/* The calls of one name that have ended, of all communicators; several threads add to it. */
struct trace_sum {
    /* What the name stands for; of spans, and of number 0, the algorithm is "". */
    uint64_t count;           /* elements, as the caller counts them */
    uint64_t predicted;       /* nanoseconds of a call by the cost model; 0: it does not say */
    uint8_t collective, type; /* rondo_collective, rondo_type */
    char algorithm[22];
    _Atomic uint64_t calls, nanoseconds, shortest, longest; /* 0: there was none so far */
};

struct trace_comm {
    uint64_t id;
    int32_t rank, size;
};

struct trace_header {
    uint64_t magic;
    uint32_t version, room; /* events */
    int32_t pid, rank;      /* the process's rank in its job, -1: not known */
    uint64_t machine;       /* processes with the same one read the same clock */
    uint64_t opened;        /* as `when` */
    char host[64], program[32];
    _Alignas(TRACE_LINE) _Atomic uint32_t comms;
    _Atomic uint32_t names;
    _Alignas(TRACE_LINE) _Atomic uint64_t taken; /* events of all pieces that were taken */
};

struct trace_page {
    struct trace_header header;
    struct trace_comm comm[TRACE_COMMS];
    char name[TRACE_NAMES][TRACE_NAME]; /* number 0: the table had no room */
    struct trace_sum sum[TRACE_NAMES];
    _Alignas(TRACE_LINE) struct trace_event events[];
};

#endif
