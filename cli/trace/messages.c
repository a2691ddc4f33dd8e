/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.c - messages with tags: what they took from when they were posted, by rank and peer. */
#include "cli/trace/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ROWS = 10 };

void traced_name_message(const struct traced_message *message, char *text, size_t size)
{
    const char *what = message->sends ? "send to" : "receive from";

    if (message->peer < 0)
        snprintf(text, size, "%s any rank", what);
    else
        snprintf(text, size, "%s rank %d", what, message->peer);
}

void traced_prolong_messages(struct traced *traced)
{
    double first, last;

    traced_moments(traced, &first, &last);
    for (uint32_t i = 0; i < traced->message_count; i++)
        if (!traced->messages[i].ended)
            traced->messages[i].end = last;
}

/* Those of one communicator in one direction between two ranks. */
struct pair {
    struct traced_message of; /* the first of them */
    unsigned count, failed, under_way;
    double bytes, seconds, longest;
};

static int by_pair(const void *a, const void *b)
{
    const struct traced_message *one = &((const struct pair *)a)->of;
    const struct traced_message *other = &((const struct pair *)b)->of;

    if (one->file != other->file)
        return one->file - other->file;
    if (one->comm != other->comm)
        return one->comm - other->comm;
    if (one->sends != other->sends)
        return one->sends ? -1 : 1;
    return one->peer < other->peer ? -1 : one->peer > other->peer;
}

static int by_seconds(const void *a, const void *b)
{
    const struct pair *one = a, *other = b;

    return one->seconds < other->seconds ? 1 : one->seconds > other->seconds ? -1 : by_pair(a, b);
}

/* Only a message that has come has bytes. */
static struct pair pair_of(const struct traced_message *message)
{
    double seconds = message->end - message->begin;

    return (struct pair){.of = *message,
                         .count = 1,
                         .failed = message->failed,
                         .under_way = !message->ended,
                         .bytes = message->ended && !message->failed ? (double)message->bytes : 0,
                         .seconds = seconds,
                         .longest = seconds};
}

/* Returns how many are left. */
static size_t add_up(struct pair *pairs, size_t count)
{
    size_t sums = 0;

    for (size_t i = 0; i < count; i++) {
        struct pair *sum = sums ? &pairs[sums - 1] : NULL;

        if (!sum || by_pair(sum, &pairs[i])) {
            pairs[sums++] = pairs[i];
            continue;
        }
        sum->count++;
        sum->failed += pairs[i].failed;
        sum->under_way += pairs[i].under_way;
        sum->bytes += pairs[i].bytes;
        sum->seconds += pairs[i].seconds;
        sum->longest = fmax(sum->longest, pairs[i].longest);
    }
    return sums;
}

static void write_pair(const struct traced *traced, const struct pair *pair)
{
    const struct trace_comm *comm = &traced->files[pair->of.file].page->comm[pair->of.comm];
    char name[64];

    traced_name_message(&pair->of, name, sizeof(name));
    printf("  %8u  %10.4g  %9s  %9s  %9s  rank %d of communicator %04llx, %s", pair->count,
           pair->bytes, traced_seconds(pair->seconds), traced_seconds(pair->seconds / pair->count),
           traced_seconds(pair->longest), comm->rank, (unsigned long long)(comm->id >> 48), name);
    if (pair->failed)
        printf("; %u failed", pair->failed);
    if (pair->under_way)
        printf("; %u under way at the end", pair->under_way);
    printf("\n");
}

void traced_report_messages(const struct traced *traced)
{
    struct pair *pairs = calloc((size_t)traced->message_count + 1, sizeof(*pairs));
    size_t count = 0;

    for (uint32_t i = 0; i < traced->message_count && pairs; i++)
        pairs[count++] = pair_of(&traced->messages[i]);
    if (count) {
        qsort(pairs, count, sizeof(*pairs), by_pair);
        count = add_up(pairs, count);
        qsort(pairs, count, sizeof(*pairs), by_seconds);
        printf(
            "\n  messages       bytes   together       mean    longest  with tags, from when they "
            "were posted\n");
    }
    for (size_t i = 0; i < count && i < MOST_ROWS; i++)
        write_pair(traced, &pairs[i]);
    free(pairs);
}
