/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h - events, and the part of one that other processes see.
 */
#pragma once

#include "capture.h"
#include "queue.h"

#include <cuda.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { EVENT_RECORDS = 500 }; /* so many records of a shared event may be under way at a time */

/* In a file that processes share. A record takes the next number; when it is reached, its slot
 * gets the number. */
struct event_page {
    _Atomic uint64_t issued;
    _Atomic uint64_t reached[EVENT_RECORDS];
};

/* What one cuEventRecord() leads to. */
struct record {
    unsigned references; /* under the lock */
    bool done;
    int64_t time; /* nanoseconds, when it was done */
    pthread_cond_t over;
};

struct CUevent_st {
    struct CUevent_st *next; /* all live ones */
    CUcontext context;
    unsigned flags;
    struct record *latest;
    struct event_page *page; /* interprocess events; latest is not used then */
    int fd;                  /* of the page */
    uint64_t id;
    bool imported;
    struct capture *capture; /* it was last recorded in this one ... */
    CUgraphNode *nodes;      /* ... behind these */
    size_t nodes_count;
};

/* Under the lock: a new event, in the table; NULL when memory is out. */
CUevent event_open(CUcontext context, unsigned flags);
CUevent event_find(CUevent handle);

/* All events of the context. */
void event_close_all(CUcontext context);

/* Gives a new event a page that other processes can open (ipc.c). */
bool event_share(CUevent event);
