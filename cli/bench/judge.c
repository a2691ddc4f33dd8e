/* SPDX-License-Identifier: BSD-3-Clause */
/* judge.c - who is faster, at one size and over all of them. */
#include "cli/bench/judge.h"

#include <math.h>
#include <string.h>

bool bench_is_limit(const struct bench_sweep *sweep, int library)
{
    return !strcmp(sweep->options->libraries[library], "limit");
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
        if (!bench_is_limit(sweep, i) && size->results[i].available &&
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

struct bench_verdict bench_judge(const struct bench_sweep *sweep, int library)
{
    struct bench_verdict verdict = {0};
    double sum = 0;

    for (int i = 0; i < sweep->size_count; i++) {
        const struct bench_size *size = &sweep->sizes[i];
        double ratio = bench_ratio_to(sweep, size, library);

        if (ratio <= 0)
            continue;
        sum += log(ratio);
        verdict.sizes++;
        verdict.faster += ratio > 1;
        if (verdict.lowest_size && ratio >= verdict.lowest)
            continue;
        verdict.lowest = ratio;
        verdict.lowest_size = size;
        verdict.lowest_library =
            library == BENCH_BEST_PEER ? bench_best_peer(sweep, size) : library;
    }
    if (verdict.sizes)
        verdict.mean = exp(sum / verdict.sizes);
    return verdict;
}
