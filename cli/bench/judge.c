/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.c - who is faster, at one size and over all of them. */
#include "cli/bench/judge.h"

#include <math.h>

double bench_algorithm_bandwidth(const struct bench_size *size, int library)
{
    double median = size->results[library].median;

    return median > 0 ? (double)size->bytes / median : 0;
}

double bench_bus_bandwidth(const struct bench_sweep *sweep, const struct bench_size *size,
                           int library)
{
    return bench_algorithm_bandwidth(size, library) *
           bench_bus_factor(sweep->options->call.collective, sweep->groups[0].size);
}

bool bench_counts(const struct bench_size *size, int library)
{
    return size->results[library].available && !size->results[library].wrong;
}

double bench_ratio(const struct bench_size *size, int library)
{
    double ours = size->results[0].median;

    return bench_counts(size, 0) && bench_counts(size, library) && ours > 0
               ? size->results[library].median / ours
               : 0;
}

uint64_t bench_wrong_values(const struct bench_sweep *sweep, int library)
{
    uint64_t wrong = 0;

    for (int i = 0; i < sweep->size_count; i++)
        wrong += sweep->sizes[i].results[library].wrong;
    return wrong;
}

bool bench_is_unsteady(const struct bench_size *size, int library)
{
    return size->results[0].noise.unsteady || size->results[library].noise.unsteady;
}

bool bench_is_limit(const struct bench_sweep *sweep, int library)
{
    return sweep->options->libraries[library] == BENCH_LIMIT;
}

int bench_peer_count(const struct bench_sweep *sweep)
{
    int count = 0;

    for (int i = 1; i < sweep->options->library_count; i++)
        count += !bench_is_limit(sweep, i);
    return count;
}

int bench_best_peer(const struct bench_sweep *sweep, const struct bench_size *size)
{
    int best = -1;

    for (int i = 1; i < sweep->options->library_count; i++)
        if (!bench_is_limit(sweep, i) && bench_counts(size, i) &&
            (best < 0 || size->results[i].median < size->results[best].median))
            best = i;
    return best;
}

double bench_ratio_to(const struct bench_sweep *sweep, const struct bench_size *size, int library)
{
    if (library == BENCH_BEST_PEER)
        library = bench_best_peer(sweep, size);
    return library < 0 ? 0 : bench_ratio(size, library);
}

void bench_verdict_add(struct bench_verdict *verdict, double ratio, size_t bytes, int library)
{
    if (ratio <= 0)
        return;
    if (!verdict->count || ratio < verdict->lowest) {
        verdict->lowest = ratio;
        verdict->lowest_bytes = bytes;
        verdict->lowest_library = library;
    }
    verdict->count++;
    verdict->faster += ratio > 1;
    verdict->logarithms += log(ratio);
}

double bench_verdict_mean(const struct bench_verdict *verdict)
{
    return verdict->count ? exp(verdict->logarithms / verdict->count) : 0;
}

struct bench_verdict bench_judge(const struct bench_sweep *sweep, int library)
{
    struct bench_verdict verdict = {0};

    for (int i = 0; i < sweep->size_count; i++) {
        const struct bench_size *size = &sweep->sizes[i];
        int whose = library == BENCH_BEST_PEER ? bench_best_peer(sweep, size) : library;

        if (whose >= 0 && bench_is_unsteady(size, whose))
            verdict.left_out++;
        else
            bench_verdict_add(&verdict, bench_ratio_to(sweep, size, library), size->bytes, whose);
    }
    return verdict;
}
