/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - inside `rondo trace`: the command (trace.c), what the files of a job hold (read.c,
 * events.c), one clock for all its hosts (align.c, joint.c), where the time went (report.c,
 * spans.c, messages.c, streams.c), calls by what they are (sums.c), and time lines (chrome.c,
 * svg.c).
 */
#ifndef RONDO_CLI_TRACE_TRACE_H
#define RONDO_CLI_TRACE_TRACE_H

#include "base/trace/page.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct traced_call {
    int file;
    uint16_t comm;     /* in the table of its file */
    uint32_t name;     /* the same */
    uint32_t number;   /* by which its ranks count it; 0: a message between two ranks */
    bool ended;        /* else it was under way when the trace ended */
    double begin, end; /* seconds, of one clock after align() */
    double moved;      /* seconds of its copies and reductions; else it waited */
    double program_end[PLAN_PROGRAMS_MAX]; /* of the last step of each; begin: none so far */
};

/* Steps lie in the order in which they ended, file after file. */
struct traced_step {
    uint32_t call;
    uint8_t program, verb, event;
    uint16_t step;
    int32_t peer; /* rank in the communicator; -1: it is a copy or reduce */
    uint64_t bytes;
    double begin, end;
};

struct traced_span {
    int file;
    uint32_t name, number;
    bool ended;
    double begin, end;
};

/* A send or receive with a tag, from when it was posted. */
struct traced_message {
    int file;
    uint16_t comm; /* in the table of its file */
    bool sends;
    bool ended, failed; /* not ended: it was under way when the trace ended */
    int32_t peer, tag;  /* -1: any, of a receive that has no message so far */
    uint64_t bytes;     /* of the message, or of the room for it */
    double begin, end;
};

/* A call on a CUDA stream, or a piece of one. */
struct traced_queued {
    int file;
    uint16_t comm; /* in the table of its file */
    uint32_t name; /* the same */
    uint32_t number, stream;
    bool begun, ended;         /* as far as the trace knows */
    double queued, begin, end; /* the last two by the device's clock, put on that of its host */
};

struct traced_file {
    char path[512];
    struct trace_page *page; /* mapped, and only read */
    size_t mapped;
    uint64_t lost;  /* events that were overwritten, or were half written */
    double forward; /* seconds by which its clock is behind that of the first file */
};

struct traced {
    struct traced_file *files;
    int file_count;
    int left_out; /* files of other jobs */
    struct traced_call *calls;
    uint32_t call_count, call_room;
    struct traced_step *steps;
    uint32_t step_count, step_room;
    struct traced_span *spans;
    uint32_t span_count, span_room;
    struct traced_message *messages;
    uint32_t message_count, message_room;
    struct traced_queued *queued;
    uint32_t queued_count, queued_room;
    int machines;
    double within; /* clocks of two machines agree that well, in seconds; 0: there is one machine */
};

/* Reads FILE.RANK of all ranks. False, with a sentence on stderr: there is none, or no memory. */
bool traced_read(const char *file, struct traced *ret_traced);
void traced_done(struct traced *traced);
/* Adds what the events of one of the files say. False: out of memory. */
bool traced_take_events(struct traced *traced, int file);
uint32_t traced_comms(const struct trace_page *page); /* that have an entry in its table */

/* A call that is a rank's part of a collective. */
struct traced_joint {
    uint64_t comm;
    uint32_t number, call;
};
/* Lists them so that those of one collective follow each other. Returns how many there are; the
 * caller frees. NULL: out of memory. */
uint32_t traced_joints(const struct traced *traced, struct traced_joint **ret_joints);
/* Returns one more than the last one of the collective whose first one is `first`. */
uint32_t joint_end(const struct traced_joint *joints, uint32_t count, uint32_t first);

/* A stretch of time in which a process was in at least one call. */
struct stretch {
    double begin, end;
    double before; /* seconds of all stretches before this one */
};
/* Lists those of a file in the order of time, at most one for each call. Returns how many there
 * are. */
size_t traced_stretches(const struct traced *traced, int file, struct stretch *stretches);

/* Puts all times on one clock. False: a machine's clock can't be compared, which is then said. */
bool traced_align(struct traced *traced);

const char *traced_name(const struct traced *traced, const struct traced_call *call);
const struct trace_comm *traced_comm(const struct traced *traced, const struct traced_call *call);
/* A number for a file that people know: its rank, else that of its first communicator. */
int traced_rank(const struct traced_file *file);
/* True: it is a copy or reduce; else it is a wait. */
bool step_moves(const struct traced_step *step);

/* Writes "1.203 s", "17.2 ms" or "3.1 us" into one of a few buffers that are used in turn. */
const char *traced_seconds(double seconds);
void traced_report(const struct traced *traced);
/* Says what the program's own spans took, and how long calls went on meanwhile. */
void traced_report_spans(const struct traced *traced);

/* Says what messages with tags took, by rank and peer. */
void traced_report_messages(const struct traced *traced);
/* Has messages that are still under way last until the end of the trace, whose clock is one. */
void traced_prolong_messages(struct traced *traced);
/* Writes "send to rank 1" or the like. */
void traced_name_message(const struct traced_message *message, char *text, size_t size);

enum {
    TRACED_STREAM_ROWS = 1 << 20
}; /* in the time line, rows of streams have numbers from here */

/* Has calls that their streams have not come to, or not ended, last until the end of the trace. */
void traced_prolong_queued(struct traced *traced);
/* Says how long calls waited in their streams, and ran. */
void traced_report_streams(const struct traced *traced);
/* Writes a row of the time line for each stream. */
void traced_chrome_streams(const struct traced *traced, double zero, FILE *to);

/* The calls of one name, of all ranks. */
/* Returns what has that name in a table of TRACE_NAMES, whose structs have their names first; it is
 * added if it was not there. NULL: the table is full. */
void *traced_of_name(void *table, size_t size, int *count, const char *name);

struct traced_kind {
    const char *name;
    uint64_t calls; /* that have ended */
    unsigned unfinished;
    double seconds, shortest, longest; /* of those: together, and of one */
    double predicted;                  /* of one, by the cost model; 0: it does not say */
    double traced,
        waited; /* of those whose events are there: seconds, and of them without moving */
};
/* Returns them, those that took most first; the caller frees. NULL: out of memory. */
struct traced_kind *traced_kinds(const struct traced *traced, int *ret_count);
void traced_report_kinds(const struct traced *traced);
uint64_t traced_sum_calls(const struct traced_file *file); /* that have ended */
/* Write the sums of each rank to a file, "-" is stdout. False, with a sentence. */
bool traced_json(const struct traced *traced, const char *file);
bool traced_prometheus(const struct traced *traced, const char *file);

/* When the first call, span or message begins, and the last one ends; 0 and 0: there are none. */
void traced_moments(const struct traced *traced, double *ret_first, double *ret_last);
/* Draws what ranks did when, and calls beside what is expected of them. False, with a sentence. */
bool traced_svg(const struct traced *traced, const char *file);
/* Writes the time line to a file, "-" is stdout. False, with a sentence. */
bool traced_chrome(const struct traced *traced, const char *file);

#endif
