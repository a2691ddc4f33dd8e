/* SPDX-License-Identifier: BSD-3-Clause */
/* predict.c - `rondo explain --predict`: what the choice of an algorithm goes by, as a table. */
#include "cli/explain/predict.h"

#include "base/fail.h"
#include "cli/common/gnuplot.h"

#include <stdlib.h>

static const double LARGEST = 64 * 1048576.0;

/* The model counts the bytes of a block: of these collectives a vector has one for each rank. */
static double blocks_of(const struct subject *subject)
{
    switch (subject->collective) {
    case RONDO_ALL_GATHER:
    case RONDO_REDUCE_SCATTER:
    case RONDO_ALL_TO_ALL:
    case RONDO_GATHER:
    case RONDO_SCATTER:
        return subject->ranks;
    default:
        return 1;
    }
}

double predict_seconds(struct prediction *prediction, int i, double bytes)
{
    double seconds;

    prediction->selection.bytes = bytes / blocks_of(prediction->subject);
    if (select_predict(prediction->algorithms[i], &prediction->selection, prediction->costs,
                       &seconds))
        return -1;
    return seconds;
}

static bool reads_peers(const struct prediction *prediction, int i)
{
    return prediction->algorithms[i]->forms[prediction->subject->collective].promises &
           PROMISE_PEER_MEMORY;
}

/* Finds the fastest, of all or of those that send messages; -1: there is none. */
static int fastest(struct prediction *prediction, double bytes, bool peers)
{
    int best = -1;
    double least = 0;

    for (int i = 0; i < prediction->count; i++) {
        double seconds = predict_seconds(prediction, i, bytes);

        if ((!peers && reads_peers(prediction, i)) || (best >= 0 && seconds >= least))
            continue;
        best = i;
        least = seconds;
    }
    return best;
}

/* The first size, in steps of `unit`, from which on `after` is the fastest: it is above `low`. */
static double crossing(struct prediction *prediction, double low, double high, double unit,
                       int after, bool peers)
{
    while (high - low > unit) {
        double middle = low + unit * (double)(long long)((high - low) / unit / 2);

        if (fastest(prediction, middle, peers) == after)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* "direct up to 5.1 kB, ring above": sizes are looked at closely, as two lines may cross twice. */
static void print_fastest(struct prediction *prediction, bool peers)
{
    double unit = ELEMENT_BYTES * blocks_of(prediction->subject), before = unit;
    int best = fastest(prediction, unit, peers);

    printf("%s", prediction->algorithms[best]->name);
    for (double bytes = 2 * unit; bytes <= LARGEST;
         bytes += unit * (double)(1 + (long long)(bytes / unit / 16))) {
        int next = fastest(prediction, bytes, peers);
        char text[40];

        if (next != best) {
            subject_bytes(crossing(prediction, before, bytes, unit, next, peers), text,
                          sizeof(text));
            printf(", from %s on %s", text, prediction->algorithms[next]->name);
        }
        best = next;
        before = bytes;
    }
    printf(".\n");
}

static const struct predict_point *point_of(const struct prediction *prediction, int i,
                                            double bytes)
{
    for (int p = 0; p < prediction->point_count; p++)
        if (prediction->points[p].algorithm == prediction->algorithms[i] &&
            prediction->points[p].bytes == bytes)
            return &prediction->points[p];
    return NULL;
}

static void print_row(struct prediction *prediction, double bytes)
{
    int best = fastest(prediction, bytes, true);
    char size[40];

    gnuplot_size((size_t)bytes, size, sizeof(size));
    printf("%10s", size);
    for (int i = 0; i < prediction->count; i++) {
        const struct predict_point *point = point_of(prediction, i, bytes);
        char text[40];

        double microseconds = 1e6 * predict_seconds(prediction, i, bytes);

        snprintf(text, sizeof(text), microseconds < 1000 ? "%s%.4g" : "%s%.0f",
                 i == best ? "*" : "", microseconds);
        printf(" %*s", point ? 9 : 19, text);
        if (point)
            printf(point->microseconds < 1000 ? " (%7.4g)" : " (%7.0f)", point->microseconds);
    }
    printf("\n");
}

static void print_table(struct prediction *prediction)
{
    const struct link_costs *costs = prediction->costs;
    bool peers = false, messages = false;

    printf("%s over %d ranks by the cost model, in us; *: the fastest%s\n"
           "A message takes %.3g us, a rank copies %.3g GB/s and reduces %.3g GB/s (--costs).\n\n"
           "%10s",
           rondo_collective_name(prediction->subject->collective), prediction->subject->ranks,
           prediction->measured ? "; (measured)" : "", 1e6 * costs->latency, costs->copy_bw / 1e9,
           costs->reduce_bw / 1e9, "bytes");
    for (int i = 0; i < prediction->count; i++) {
        printf(" %19s", prediction->algorithms[i]->name);
        peers = peers || reads_peers(prediction, i);
        messages = messages || !reads_peers(prediction, i);
    }
    printf("\n");
    for (int s = 0; s < prediction->size_count; s++)
        print_row(prediction, prediction->sizes[s]);
    printf("\nFastest%s: ", peers ? " where ranks reach each other's memory" : "");
    print_fastest(prediction, true);
    if (peers && messages) {
        printf("Where they can't: ");
        print_fastest(prediction, false);
    }
}

/* Those that auto would look at: two levels need groups. */
static void list_algorithms(struct prediction *prediction)
{
    for (int i = 0; algorithms[i] && prediction->count < PREDICT_ALGORITHMS; i++)
        if (algorithms[i]->forms[prediction->subject->collective].write &&
            (!algorithms[i]->levels || grouping_has_levels(prediction->groups)))
            prediction->algorithms[prediction->count++] = algorithms[i];
}

static rondo_result open_prediction(struct prediction *prediction)
{
    const struct subject *subject = prediction->subject;

    if (subject->group_text) {
        rondo_result result =
            grouping_parse(subject->group_text, subject->ranks, &prediction->groups);

        if (result)
            return result;
    }
    prediction->selection.collective = subject->collective;
    prediction->selection.size = subject->ranks;
    prediction->selection.groups = prediction->groups;
    list_algorithms(prediction);
    for (double bytes = 8; bytes <= LARGEST; bytes *= bytes < LARGEST / 4 ? 4 : 2)
        prediction->sizes[prediction->size_count++] = bytes;
    return RONDO_OK;
}

int subject_predict(const struct subject *subject, const struct link_costs *costs, const char *plot,
                    const char *measured)
{
    struct counts counts = {0};
    struct prediction prediction = {.subject = subject,
                                    .costs = costs,
                                    .selection = {.counts = &counts, .quiet = true},
                                    .measured = measured};
    int status = 1;

    if (open_prediction(&prediction))
        fprintf(stderr, "rondo explain: %s\n", fail_sentence());
    else if (!measured || measured_read(&prediction, measured)) {
        print_table(&prediction);
        status = plot && !prediction_plot(&prediction, plot);
    }
    counts_done(&counts);
    free(prediction.points);
    grouping_close(prediction.groups);
    return status;
}
