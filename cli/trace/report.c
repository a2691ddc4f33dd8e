/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - where the time of a traced job went, as text: by rank, by whom was waited for, and by
 * who came late. */
#include "cli/trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 10 };

const char *traced_seconds(double seconds)
{
    static char texts[8][24];
    static unsigned next;
    char *text = texts[next++ % 8];
    double size = fabs(seconds);

    if (size >= 1)
        snprintf(text, sizeof(texts[0]), "%.3f s", seconds);
    else if (size >= 1e-3)
        snprintf(text, sizeof(texts[0]), "%.3g ms", seconds * 1e3);
    else
        snprintf(text, sizeof(texts[0]), "%.3g us", seconds * 1e6);
    return text;
}

static void write_head(const struct traced *traced)
{
    uint64_t lost = 0, calls = 0;
    double first, last;

    for (int i = 0; i < traced->file_count; i++) {
        lost += traced->files[i].lost;
        calls += traced_sum_calls(&traced->files[i]);
    }
    traced_moments(traced, &first, &last);
    printf("%d process%s on %d machine%s, ", traced->file_count, traced->file_count > 1 ? "es" : "",
           traced->machines, traced->machines > 1 ? "s" : "");
    if (last > first)
        printf("%u calls in %s, from the first call or span to the last.\n", traced->call_count,
               traced_seconds(last - first));
    else
        printf("%llu calls, of which only the sums are known.\n", (unsigned long long)calls);
    if (traced->machines > 1)
        printf("Clocks of the machines are put on one by their calls, to within %s.\n",
               traced_seconds(traced->within));
    if (lost)
        printf("%llu events are lost, the oldest: RONDO_TRACE_BYTES makes room for more.\n",
               (unsigned long long)lost);
    if (traced->left_out)
        printf("%d files of earlier jobs are left out.\n", traced->left_out);
}

/* ---- By rank --------------------------------------------------------------------------------- */

static void write_ranks(const struct traced *traced)
{
    double first, last, whole;

    traced_moments(traced, &first, &last);
    whole = last - first;

    printf("\n  rank  host                calls     in calls          waiting           moving\n");
    for (int i = 0; i < traced->file_count; i++) {
        double inside = 0, waited = 0, moved = 0;
        unsigned calls = 0;

        for (uint32_t j = 0; j < traced->call_count; j++) {
            const struct traced_call *call = &traced->calls[j];

            if (call->file != i)
                continue;
            calls++;
            inside += call->end - call->begin;
            waited += call->end - call->begin - call->moved;
            moved += call->moved;
        }
        printf("  %4d  %-16.16s %8u  %9s %3.0f %%  %9s %3.0f %%  %9s %3.0f %%\n",
               traced_rank(&traced->files[i]), traced->files[i].page->header.host, calls,
               traced_seconds(inside), whole > 0 ? 100 * inside / whole : 0, traced_seconds(waited),
               whole > 0 ? 100 * waited / whole : 0, traced_seconds(moved),
               whole > 0 ? 100 * moved / whole : 0);
    }
}

/* ---- By whom was waited for ------------------------------------------------------------------ */

struct wait {
    int file, peer;
    uint16_t comm;
    uint32_t longest_call, count;
    double seconds, longest;
};

static int by_pair(const void *a, const void *b)
{
    const struct wait *one = a, *other = b;

    if (one->file != other->file)
        return one->file - other->file;
    if (one->comm != other->comm)
        return one->comm - other->comm;
    return one->peer < other->peer ? -1 : one->peer > other->peer;
}

static int by_length(const void *a, const void *b)
{
    const struct wait *one = a, *other = b;

    return one->seconds < other->seconds ? 1 : one->seconds > other->seconds ? -1 : 0;
}

/* Adds up those of one pair of ranks; returns how many are left. */
static size_t add_up(struct wait *waits, size_t count)
{
    size_t sums = 0;

    for (size_t i = 0; i < count; i++) {
        struct wait *sum = sums ? &waits[sums - 1] : NULL;

        if (!sum || by_pair(sum, &waits[i])) {
            waits[sums++] = waits[i];
            continue;
        }
        sum->seconds += waits[i].seconds;
        sum->count++;
        if (waits[i].longest > sum->longest) {
            sum->longest = waits[i].longest;
            sum->longest_call = waits[i].longest_call;
        }
    }
    return sums;
}

static void write_waits(const struct traced *traced)
{
    struct wait *waits = calloc((size_t)traced->step_count + 1, sizeof(*waits));
    size_t count = 0;

    for (uint32_t i = 0; i < traced->step_count && waits; i++) {
        const struct traced_step *step = &traced->steps[i];
        const struct traced_call *call = &traced->calls[step->call];
        double seconds = step->end - step->begin;

        if (!step_moves(step))
            waits[count++] =
                (struct wait){call->file, step->peer, call->comm, step->call, 1, seconds, seconds};
    }
    if (count) {
        qsort(waits, count, sizeof(*waits), by_pair);
        count = add_up(waits, count);
        qsort(waits, count, sizeof(*waits), by_length);
        printf("\nLongest waits:\n");
    }
    for (size_t i = 0; i < count && i < MOST_ROWS; i++) {
        const struct traced_call *call = &traced->calls[waits[i].longest_call];
        const struct trace_comm *comm = traced_comm(traced, call);

        printf(
            "  rank %d for rank %d of communicator %04llx: %s in %u waits, the longest %s in call "
            "%u, %s\n",
            comm->rank, waits[i].peer, (unsigned long long)(comm->id >> 48),
            traced_seconds(waits[i].seconds), waits[i].count, traced_seconds(waits[i].longest),
            call->number, traced_name(traced, call));
    }
    free(waits);
}

/* ---- By who came late ------------------------------------------------------------------------ */

struct lateness {
    unsigned last;  /* calls to which it came last */
    double held_up; /* seconds that all the others waited for it alone */
};

/* One collective, of all ranks: the last one holds the others up since the last but one came. */
static void note_last(const struct traced *traced, const struct traced_joint *joints, int count,
                      struct lateness *late)
{
    const struct traced_call *last = &traced->calls[joints[0].call];
    double before = -INFINITY;

    for (int i = 1; i < count; i++) {
        const struct traced_call *call = &traced->calls[joints[i].call];

        before = fmax(before, fmin(call->begin, last->begin));
        if (call->begin > last->begin)
            last = call;
    }
    late[last->file].last++;
    late[last->file].held_up += last->begin - before;
}

static void write_late(const struct traced *traced)
{
    struct lateness *late = calloc((size_t)traced->file_count, sizeof(*late));
    struct traced_joint *joints;
    uint32_t count = traced_joints(traced, &joints), compared = 0;

    for (uint32_t first = 0, end; first < count && late; first = end) {
        int ranks = traced_comm(traced, &traced->calls[joints[first].call])->size;

        end = joint_end(joints, count, first);
        if (ranks > 1 && end - first == (uint32_t)ranks) {
            note_last(traced, &joints[first], ranks, late);
            compared++;
        }
    }
    if (compared)
        printf("\nWho came last to %u collectives, and how long all others waited for it alone:\n",
               compared);
    for (int i = 0; i < traced->file_count && compared; i++)
        printf("  rank %d: %u times, %s\n", traced_rank(&traced->files[i]), late[i].last,
               traced_seconds(late[i].held_up));
    free(joints);
    free(late);
}

void traced_report(const struct traced *traced)
{
    write_head(traced);
    if (traced->call_count)
        write_ranks(traced);
    traced_report_kinds(traced);
    traced_report_spans(traced);
    traced_report_messages(traced);
    traced_report_streams(traced);
    write_waits(traced);
    write_late(traced);
}
