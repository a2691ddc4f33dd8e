/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.h - how the record of a rank lies in its file: what `rondo ps` reads while the rank runs, is
 * stopped or has crashed.
 *
 *     0      who it is: process, rank, host; it does not change after opening
 *            the communicator, and how far it is; how it failed
 *            two waits: of calls by the host, and on CUDA streams
 *     4096   the last 64 calls, a cache line each
 *     8192   when the last 256 calls began that were timed
 *
 * One thread at a time writes: the holder of the turn; the watchdog the second wait; whoever breaks
 * the communicator how it failed. Readers are other processes, which may find anything there: they
 * take a copy of the bytes and go through that (read.h). What is more than a word is guarded by a
 * number that is odd while it changes.
 */
#ifndef RONDO_COMM_RECORDER_PAGE_H
#define RONDO_COMM_RECORDER_PAGE_H

#include "comm/recorder/call.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RECORDER_MAGIC 0x646e6f722d6f6472u /* "rdo-rond" */
enum {
    RECORDER_VERSION = 2,
    RECORDER_WORLD_MAX = 1 << 20, /* ranks of a job */
    RECORDER_CALLS = 64,
    RECORDER_ARRIVALS = 256,
    RECORDER_WAITS = 2,
    RECORDER_PEERS = 8,
    RECORDER_NAME = 2, /* words of an algorithm's name */
};

/* A communicator is so far. */
enum recorder_stage { RECORDER_OPENING, RECORDER_OPEN };

/* The low byte of a mark says how the call is. */
enum recorder_state { RECORDER_EMPTY, RECORDER_BEGUN, RECORDER_DONE, RECORDER_REPEATED };

struct recorder_identity {
    uint64_t magic;
    uint32_t version, bytes; /* of the file */
    int32_t pid, tid;        /* tid: the thread that opened the communicator */
    int32_t rank, size;
    int32_t world, unused;     /* rank of the process in its job, -1: not known */
    uint64_t started;          /* the process, in the kernel's ticks since the machine's start */
    uint64_t namespace_id;     /* of process numbers */
    uint64_t opened;           /* nanoseconds, as all times here, of CLOCK_MONOTONIC */
    unsigned char host_id[16]; /* ranks with the same one share memory */
    char host[64], program[32];
};

/* A wait that lasts. */
struct recorder_waiting {
    uint64_t call;          /* number of the call, 0: send, receive */
    uint64_t since, looked; /* when it began, and when the rank last looked whether it is over */
    uint32_t step, steps;   /* from 1, of the program that waits; 0: none is known */
    int32_t culprit;        /* who the rank holds to be the cause, -1: it doesn't know */
    int32_t peers_count;
    int32_t peers[RECORDER_PEERS];
    char what[96]; /* the step in words */
};
enum { RECORDER_WAITING_WORDS = sizeof(struct recorder_waiting) / 8 };

struct recorder_failure {
    int32_t result, culprit; /* culprit -1: unknown */
    uint64_t when;
    char sentence[512];
};
enum { RECORDER_FAILURE_WORDS = sizeof(struct recorder_failure) / 8 };

/* A mark is call << 32 | number << 8 | state, where `number` counts all records of the rank, in 24
 * bits. The words belong to it while the state is not RECORDER_EMPTY. */
enum { RECORDER_NUMBERS = 1 << 24, RECORDER_STATES = 1 << 8 };
struct recorder_call {
    _Atomic uint64_t mark;
    _Atomic uint64_t words[CALL_RECORD_WORDS];
    _Atomic uint64_t algorithm[RECORDER_NAME];
    uint64_t unused[2];
};

struct recorder_arrival {
    _Atomic uint64_t call; /* 0 while it changes */
    _Atomic uint64_t begun;
};

struct recorder_page {
    struct recorder_identity identity;
    _Atomic uint64_t comm; /* identity of the communicator, the same on all ranks; 0: none yet */
    _Atomic uint64_t stage;
    _Atomic uint64_t internal; /* calls that no user made */
    _Atomic uint64_t told;     /* when a table was last written because of this rank */
    struct {
        _Atomic uint64_t changes;
        _Atomic uint64_t words[RECORDER_FAILURE_WORDS];
    } failure;
    struct {
        _Atomic uint64_t changes;
        _Atomic uint64_t words[RECORDER_WAITING_WORDS];
    } waits[RECORDER_WAITS];
    _Alignas(4096) struct recorder_call calls[RECORDER_CALLS];
    struct recorder_arrival arrivals[RECORDER_ARRIVALS];
};
_Static_assert(sizeof(struct recorder_page) == 12288, "the layout of version 2");
_Static_assert(sizeof(struct recorder_waiting) % 8 == 0 && sizeof(struct recorder_failure) % 8 == 0,
               "they are copied by words");

#endif
