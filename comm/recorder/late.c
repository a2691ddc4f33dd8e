/* SPDX-License-Identifier: BSD-3-Clause */
/* late.c - see late.h. */
#include "comm/recorder/late.h"

#include "comm/recorder/chain.h"

#include <stdlib.h>
#include <string.h>

struct arrival {
    uint32_t call;
    uint64_t begun;
    int rank; /* index of its lateness */
};

const char *late_bin_name(int bin)
{
    static const char *const names[LATE_BINS] = {"<10us",  "<100us", "<1ms", "<10ms",
                                                 "<100ms", "<1s",    ">=1s"};

    return names[bin];
}

static int compare_arrivals(const void *a, const void *b)
{
    const struct arrival *one = a, *other = b;

    if (one->call != other->call)
        return one->call < other->call ? -1 : 1;
    return one->begun < other->begun ? -1 : one->begun > other->begun;
}

static int compare_lateness(const void *a, const void *b)
{
    const struct lateness *one = a, *other = b;

    return one->held_up > other->held_up ? -1 : one->held_up < other->held_up;
}

static int bin_of(double seconds)
{
    double end = 10e-6;
    int bin = 0;

    for (; bin < LATE_BINS - 1 && seconds >= end; bin++)
        end *= 10;
    return bin;
}

/* One call, in which `count` ranks arrived, in this order. */
static void note_call(const struct arrival *arrivals, int count, struct lateness *late)
{
    struct lateness *last = &late[arrivals[count - 1].rank];

    for (int i = 0; i < count; i++) {
        struct lateness *one = &late[arrivals[i].rank];
        double seconds = 1e-9 * (double)(arrivals[i].begun - arrivals[0].begun);

        one->calls++;
        one->mean += seconds;
        one->most = seconds > one->most ? seconds : one->most;
        one->bins[bin_of(seconds)]++;
    }
    last->last++;
    last->held_up += 1e-9 * (double)(arrivals[count - 1].begun - arrivals[count - 2].begun);
}

/* All arrivals of ranks that share the clock of sighting `of`; the number of these ranks. */
static int collect(const struct sightings *sightings, int first, int end, int of,
                   struct arrival *arrivals, int *ret_count)
{
    int ranks = 0, count = 0;

    for (int i = first; i < end; i++) {
        const struct sighting_record *record = &sightings->at[i]->record;

        if (strcmp(sightings->at[i]->where, sightings->at[of]->where) != 0 ||
            sightings->at[i]->process.life == SIGHTING_ENDED)
            continue;
        ranks++;
        for (int k = 0; k < record->arrivals_count; k++)
            arrivals[count++] =
                (struct arrival){record->arrivals[k].call, record->arrivals[k].begun, i - first};
    }
    *ret_count = count;
    return ranks;
}

static bool is_first_of_host(const struct sightings *sightings, int first, int of)
{
    for (int i = first; i < of; i++)
        if (strcmp(sightings->at[i]->where, sightings->at[of]->where) == 0)
            return false;
    return true;
}

static void compare_host(const struct sightings *sightings, int first, int of,
                         struct arrival *arrivals, struct lateness *late)
{
    int count, ranks = collect(sightings, first, sightings_comm_end(sightings, first), of, arrivals,
                               &count);

    qsort(arrivals, (size_t)count, sizeof(*arrivals), compare_arrivals);
    for (int i = 0, end; i < count; i = end) {
        for (end = i; end < count && arrivals[end].call == arrivals[i].call;)
            end++;
        if (end - i == ranks && ranks > 1)
            note_call(arrivals + i, ranks, late);
    }
}

int late_make(const struct sightings *sightings, int first, struct lateness **ret_late)
{
    int end = sightings_comm_end(sightings, first), kept = 0;
    size_t size = (size_t)(end - first);
    struct arrival *arrivals = calloc(size * RECORDER_ARRIVALS + 1, sizeof(*arrivals));
    struct lateness *late = calloc(size + 1, sizeof(*late));

    for (int i = first; arrivals && late && i < end; i++) {
        late[i - first].sighting = i;
        if (is_first_of_host(sightings, first, i))
            compare_host(sightings, first, i, arrivals, late);
    }
    free(arrivals);
    for (size_t i = 0; late && i < size; i++)
        if (late[i].calls) {
            late[i].mean /= late[i].calls;
            late[kept++] = late[i];
        }
    if (!kept) {
        free(late);
        late = NULL;
    }
    if (kept)
        qsort(late, (size_t)kept, sizeof(*late), compare_lateness);
    *ret_late = late;
    return kept;
}
