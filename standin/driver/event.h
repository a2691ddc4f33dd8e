/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * event.h - events, and the part of one that other processes see.
 */
#pragma once

#include "standin/driver/capture.h"
#include "standin/driver/queue.h"

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

/* A record is what one cuEventRecord() leads to. */
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

/* For nodes of graphs (external.c), under the lock: a new record that the event stands for from now
 * on; the one that it stands for; both with a reference, or NULL. Then what happens to one. */
struct record *event_record_anew(CUevent event);
struct record *event_latest(CUevent event);
void event_complete(struct record *record);
void event_await(struct record *record);
void event_release(struct record *record);

/* All events of the context. */
void event_close_all(CUcontext context);

/* Gives a new event a page that other processes can open (ipc.c). */
bool event_share(CUevent event);
