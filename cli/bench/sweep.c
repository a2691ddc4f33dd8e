/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep.c - for every size: check each library once, find how many calls fill a millisecond,
 * then let the libraries take turns for some rounds, so that whatever else the machine does hits
 * all alike.
 *
 * A batch is long enough that reading the clock does not matter. The time of a batch is that of its
 * slowest rank; the reported one is the median over all batches of all rounds.
 */
#include "cli/bench/sweep.h"

#include "bench/pattern.h"
#include "cli/bench/pace.h"
#include "cli/bench/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void progress(const struct bench_sweep *sweep, int library, int round)
{
    if (isatty(STDERR_FILENO) && !sweep->watch)
        fprintf(stderr, "\r\033[K%s %zu bytes, size %d of %d, round %d of %d\r",
                sweep->groups[library].kind->name, sweep->sizes[sweep->size_count].bytes,
                sweep->size_count + 1, sweep->options->size_count, round + 1,
                sweep->options->rounds);
}

/* A round of the row: its batches, and what they say together. */
static enum bench_status run_round(struct bench_sweep *sweep, int library, struct pace *pace,
                                   struct bench_reply *replies)
{
    struct bench_result *result = &sweep->sizes[sweep->size_count].results[library];
    int before = pace->count;
    enum bench_status status = pace_run(pace, &sweep->groups[library], replies);

    noise_add_round(&result->noise, pace->batches + before, pace->count - before);
    memcpy(result->ran, replies[0].ran, sizeof(result->ran));
    return status;
}

/* The middle batch of a part of the step alone, which is not kept; negative: it failed. */
static double time_part(struct bench_sweep *sweep, int library, struct pace *pace,
                        struct bench_reply *replies, enum bench_part part)
{
    int before = pace->count;
    double ratios = pace->rank_ratios;
    enum bench_status status;
    double median = -1;

    pace->command.part = part;
    status = pace_run(pace, &sweep->groups[library], replies);
    if (status == BENCH_OK)
        median = bench_median(pace->batches + before, pace->count - before);
    pace->command.part = BENCH_ALL_LINES;
    pace->count = before;
    pace->rank_ratios = ratios;
    return median;
}

/*
 * A round beside computing: calls alone, computing alone, then both, one soon after the other. What
 * both take longer than computing is what was not hidden.
 */
static enum bench_status run_overlap(struct bench_sweep *sweep, int library, struct pace *pace,
                                     struct bench_reply *replies)
{
    struct bench_result *result = &sweep->sizes[sweep->size_count].results[library];
    double pure = time_part(sweep, library, pace, replies, BENCH_CALLS_ONLY);
    double work = pure < 0 ? -1 : time_part(sweep, library, pace, replies, BENCH_WORK_ONLY);
    enum bench_status status = work < 0 ? BENCH_FAILED : run_round(sweep, library, pace, replies);
    double both, hidden;

    if (status != BENCH_OK || pace->round_count == NOISE_ROUNDS_MAX)
        return status;
    both = result->noise.rounds[result->noise.round_count - 1];
    hidden = pure > 0 ? 1 - (both - work) / pure : 0;
    pace->pure[pace->round_count] = pure;
    pace->work[pace->round_count] = work;
    pace->hidden[pace->round_count++] = hidden < 0 ? 0 : hidden > 1 ? 1 : hidden;
    return status;
}

/* Mean of what the ranks say of their memory; negative: they do not know. */
static void note_memory(struct bench_result *result, const struct bench_reply *replies, int size)
{
    double rank_bytes = 0, communicator_bytes = 0;
    bool known = true, each_known = true;

    for (int rank = 0; rank < size; rank++) {
        rank_bytes += replies[rank].rank_bytes / size;
        communicator_bytes += replies[rank].communicator_bytes / size;
        known = known && replies[rank].rank_bytes >= 0;
        each_known = each_known && replies[rank].communicator_bytes >= 0;
    }
    result->rank_bytes = known ? rank_bytes : -1;
    result->communicator_bytes = each_known ? communicator_bytes : -1;
}

static enum bench_status check(struct bench_sweep *sweep, int library, struct pace *pace,
                               struct bench_reply *replies)
{
    struct bench_group *group = &sweep->groups[library];
    struct bench_result *result = &sweep->sizes[sweep->size_count].results[library];
    enum bench_status status;

    pace->command.check = true;
    status = bench_group_run(group, &pace->command, replies);
    pace->command.check = false;
    if (status == BENCH_UNAVAILABLE && sweep->size_count == 0)
        fprintf(stderr, "rondo bench: %s is left out: %s\n", group->kind->name,
                replies[0].sentence);
    result->available = status == BENCH_OK;
    if (status == BENCH_OK)
        note_memory(result, replies, group->size);
    result->predicted = status == BENCH_OK ? replies[0].predicted_us / 1e6 : -1;
    result->checked = sweep->options->check && bench_steps_are_exact(&pace->command, group->size);
    for (int rank = 0; status == BENCH_OK && result->checked && rank < group->size; rank++)
        result->wrong += replies[rank].wrong;
    sweep->wrong += result->wrong;
    return status;
}

static enum bench_status prepare(struct bench_sweep *sweep, int library, struct pace *pace,
                                 struct bench_reply *replies)
{
    enum bench_status status = check(sweep, library, pace, replies);

    return status == BENCH_OK ? pace_warm_up(pace, sweep->options, &sweep->groups[library], replies)
                              : status;
}

static void conclude(struct bench_result *result, struct pace *pace)
{
    if (pace->count == 0)
        return;
    result->median = bench_median(pace->batches, pace->count);
    result->min = pace->batches[0]; /* sorted now */
    result->noise.rank_spread = pace->rank_ratios / pace->count;
    result->pure = result->work = result->overlap = -1;
    if (pace->round_count) {
        result->pure = bench_median(pace->pure, pace->round_count);
        result->work = bench_median(pace->work, pace->round_count);
        result->overlap = bench_median(pace->hidden, pace->round_count);
    }
    noise_conclude(&result->noise, pace->batches, pace->count);
}

/* The first so many libraries are measured; the limit of device memory is computed. */
static int measured(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;

    return options->library_count - (options->memory == BENCH_MEMORY_CUDA && sweep->limit.measured);
}

static void compute(const struct bench_sweep *sweep, struct bench_result *result)
{
    struct bench_call call = sweep->options->call;

    call.count = sweep->sizes[sweep->size_count].count;
    result->median = bench_limit_seconds(&sweep->limit, &call, sweep->groups[0].size);
    result->min = result->median;
    result->available = call.collective < BENCH_COLLECTIVES;
    if (!result->available && sweep->size_count == 0)
        fprintf(stderr, "rondo bench: limit is left out: only collectives and sendrecv have one\n");
}

/* All compute as long as the slowest of them calls: what can be hidden can be hidden by all. */
static void share_work(const struct bench_sweep *sweep, struct pace *paces, int libraries)
{
    const struct bench_result *results = sweep->sizes[sweep->size_count].results;
    double slowest = 0;

    for (int i = 0; i < libraries; i++)
        if (results[i].available && paces[i].call_seconds > slowest)
            slowest = paces[i].call_seconds;
    for (int i = 0; i < libraries; i++) {
        bench_steps_set_work(sweep->options, &paces[i].command, slowest);
        if (results[i].available)
            pace_set(&paces[i], sweep->options, paces[i].call_seconds + slowest);
    }
}

/* Shows the figures of the rounds so far. */
static void look(struct bench_sweep *sweep, struct pace *paces, int libraries)
{
    for (int library = 0; library < libraries; library++)
        conclude(&sweep->sizes[sweep->size_count].results[library], &paces[library]);
    sweep->watch(sweep);
}

/* One size: everybody is prepared, then they take turns. */
static int measure_size(struct bench_sweep *sweep, struct pace *paces, struct bench_reply *replies)
{
    struct bench_size *size = &sweep->sizes[sweep->size_count];
    int libraries = measured(sweep);
    enum bench_status (*round_of)(struct bench_sweep * sweep, int library, struct pace *pace,
                                  struct bench_reply *replies) =
        sweep->options->overlap ? run_overlap : run_round;

    for (int library = 0; library < libraries; library++) {
        progress(sweep, library, 0);
        if (prepare(sweep, library, &paces[library], replies) == BENCH_FAILED)
            return -1;
    }
    if (sweep->options->overlap)
        share_work(sweep, paces, libraries);
    for (int round = 0; round < sweep->options->rounds; round++) {
        for (int turn = 0; turn < libraries; turn++) {
            int library = (turn + round) % libraries; /* nobody is always first */

            progress(sweep, library, round);
            if (size->results[library].available &&
                round_of(sweep, library, &paces[library], replies) != BENCH_OK)
                return -1;
        }
        if (sweep->watch)
            look(sweep, paces, libraries);
    }
    for (int library = 0; library < libraries; library++)
        conclude(&size->results[library], &paces[library]);
    for (int library = libraries; library < sweep->options->library_count; library++)
        compute(sweep, &size->results[library]);
    return 0;
}

/* The counts of the sweep, without those of less than an element per rank and without repeats. */
static int list_sizes(struct bench_sweep *sweep, uint64_t *ret_largest)
{
    const struct bench_options *options = sweep->options;
    enum bench_collective collective = options->call.collective;
    size_t element = pattern_type_bytes(options->call.type);
    int ranks = sweep->groups[0].size;
    int listed = 0;

    *ret_largest = 0;
    if (options->trace) {
        sweep->sizes[0].count = (size_t)options->trace->calls;
        sweep->sizes[0].bytes = bench_trace_bytes(options->trace, ranks);
        return 1;
    }
    for (int i = 0; i < options->size_count; i++) {
        size_t count = bench_count(collective, options->sizes[i], element, ranks);
        size_t bytes = bench_bytes(collective, count, element, ranks);

        if ((count == 0 && bench_collective_has_size(collective)) ||
            (listed > 0 && sweep->sizes[listed - 1].count == count))
            continue;
        sweep->sizes[listed].count = count;
        sweep->sizes[listed++].bytes = bytes;
        if (bytes > *ret_largest)
            *ret_largest = bytes;
    }
    return listed;
}

static int run_sizes(struct bench_sweep *sweep, void (*each)(const struct bench_sweep *sweep),
                     struct bench_reply *replies, struct pace *paces)
{
    uint64_t largest;
    int listed = list_sizes(sweep, &largest);

    if (listed == 0) {
        fprintf(stderr, "rondo bench: --bytes gives less than one element per rank; ask for at "
                        "least ranks * element size\n");
        return -1;
    }
    while (sweep->size_count < listed) {
        for (int library = 0; library < sweep->options->library_count; library++)
            pace_init(&paces[library], sweep, library, largest);
        if (measure_size(sweep, paces, replies))
            return -1;
        if (isatty(STDERR_FILENO))
            fprintf(stderr, "\r\033[K");
        each(sweep);
        sweep->size_count++;
    }
    return 0;
}

int bench_sweep_run(struct bench_sweep *sweep, void (*each)(const struct bench_sweep *sweep))
{
    const struct bench_options *options = sweep->options;
    static struct pace paces[BENCH_LIBRARIES];
    struct bench_reply *replies = calloc((size_t)sweep->groups[0].size, sizeof(*replies));
    int failed = -1;

    sweep->size_count = 0;
    sweep->wrong = 0;
    sweep->sizes = calloc((size_t)options->size_count, sizeof(*sweep->sizes));
    if (sweep->sizes && replies)
        failed = run_sizes(sweep, each, replies, paces);
    else
        fprintf(stderr, "rondo bench: out of memory\n");
    for (int library = 0; library < BENCH_LIBRARIES; library++)
        pace_done(&paces[library]);
    free(replies);
    return failed;
}

void bench_sweep_done(struct bench_sweep *sweep)
{
    free(sweep->sizes);
    sweep->sizes = NULL;
}
