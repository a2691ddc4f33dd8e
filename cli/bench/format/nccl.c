/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl.c - results in the format of nccl-tests, for scripts that read theirs.
 *
 * Its columns, as nccl-tests prints them: size, count, type, redop, root; then time, algbw, busbw
 * and #wrong out of place, and the same in place. Two sweeps make a line each, so lines come when
 * both are done. Of those that ended early there are the lines, but no summary.
 */
#include "cli/bench/format/format.h"

#include "bench/pattern.h"
#include "cli/bench/judge.h"

#include <inttypes.h>
#include <string.h>

/* nccl-tests calls some types by the names of C. */
static const char *type_name(rondo_type type)
{
    switch (type) {
    case RONDO_FLOAT16:
        return "half";
    case RONDO_FLOAT32:
        return "float";
    case RONDO_FLOAT64:
        return "double";
    case RONDO_FLOAT8_E4M3:
        return "f8e4m3";
    case RONDO_FLOAT8_E5M2:
        return "f8e5m2";
    default:
        return pattern_type_name(type);
    }
}

/* The program of nccl-tests that measures the same. */
static const char *program_of(const struct bench_sweep *sweep)
{
    static char name[64];
    enum bench_collective collective = sweep->options->call.collective;

    snprintf(name, sizeof(name), "%s_perf",
             collective == BENCH_ALL_TO_ALL     ? "alltoall"
             : collective == BENCH_ALL_TO_ALL_V ? "alltoallv"
                                                : bench_collective_name(collective));
    return name;
}

void bench_nccl_begin(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;

    if (options->call.in_place)
        return; /* goes on with the lines of the sweep before it */
    printf("# Collective test starting: %s\n", program_of(sweep));
    printf("# nThread %d nGpus 1 minBytes %zu maxBytes %zu step: %g(factor) warmup iters: %d "
           "iters: %d agg iters: 1 validation: %d graph: %d unalign: 0\n#\n",
           options->threads ? sweep->groups[0].size : 1, options->sizes[0],
           options->sizes[options->size_count - 1], options->factor, options->warmup,
           options->iterations, options->check, options->graph);
    printf("# %s, %d ranks (%s), memory %s%s%s\n#\n", sweep->groups[0].version,
           sweep->groups[0].size, options->threads ? "threads" : "processes",
           bench_memory_of(sweep, 0), *options->settings ? ", " : "", options->settings);
    printf("# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place     "
           "     \n",
           "", "", "", "", "");
    printf("# %10s  %12s  %8s  %6s  %6s", "size", "count", "type", "redop", "root");
    for (int place = 0; place < 2; place++)
        printf("  %7s  %6s  %6s  %6s", "time", "algbw", "busbw", "#wrong");
    printf(" \n# %10s  %12s  %8s  %6s  %6s", "(B)", "(elements)", "", "", "");
    for (int place = 0; place < 2; place++)
        printf("  %7s  %6s  %6s  %6s", "(us)", "(GB/s)", "(GB/s)", "");
    printf(" \n");
}

/* Prints two places behind the point, or as many as the width has room for. */
static void print_figure(double value, int width)
{
    int places = 2;

    while (places > 0 && snprintf(NULL, 0, "%*.*f", width, places, value) > width)
        places--;
    printf("  %*.*f", width, places, value);
}

/* Returns the size of a sweep that was measured; NULL: it was not, or is not available. */
static const struct bench_size *known_size(const struct bench_sweep *sweep, int index)
{
    bool done = sweep && index < sweep->size_count;

    return done && sweep->sizes[index].results[0].available ? &sweep->sizes[index] : NULL;
}

static void print_place(const struct bench_sweep *sweep, const struct bench_size *size)
{
    if (!size) {
        printf("  %7s  %6s  %6s  %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    print_figure(size->results[0].median * 1e6, 7);
    print_figure(bench_algorithm_bandwidth(size, 0) / 1e9, 6);
    print_figure(bench_bus_bandwidth(sweep, size, 0) / 1e9, 6);
    if (size->results[0].checked)
        printf("  %6g", (double)size->results[0].wrong);
    else
        printf("  %6s", "N/A");
}

static void print_summary(const struct bench_sweep *out, const struct bench_sweep *in, double mean)
{
    uint64_t wrong = out->wrong + (in ? in->wrong : 0);

    printf("# %-20s : %" PRIu64 " %s\n", "Out of bounds values", wrong, wrong ? "FAILED" : "OK");
    printf("# %-20s : %g \n", "Avg bus bandwidth", mean);
    printf("#\n# Collective test concluded: %s\n", program_of(out));
}

/* `in`: NULL if there are no calls in place. */
static void print_lines(const struct bench_sweep *out, const struct bench_sweep *in)
{
    const struct bench_call *call = &out->options->call;
    bool reduces = bench_collective_reduces(call->collective);
    const struct bench_sweep *const places[2] = {out, in};
    double sum = 0;
    int count = 0;

    for (int i = 0; i < out->size_count; i++) {
        printf("%12zu  %12zu  %8s  %6s  %6d", out->sizes[i].bytes, out->sizes[i].count,
               type_name(call->type), reduces ? pattern_op_name(call->op) : "none",
               bench_collective_is_rooted(call->collective) ? call->root : -1);
        for (int place = 0; place < 2; place++) {
            const struct bench_size *size = known_size(places[place], i);

            print_place(places[place], size);
            sum += size ? bench_bus_bandwidth(places[place], size, 0) / 1e9 : 0;
            count += size != NULL;
        }
        printf("\n");
    }
    if (out->complete && (!in || in->complete))
        print_summary(out, in, count ? sum / count : 0);
    fflush(stdout);
}

void bench_nccl_end(const struct bench_sweep *sweep)
{
    if (sweep->options->call.in_place)
        print_lines(sweep - 1, sweep);
    else if (!bench_collective_has_in_place(sweep->options->call.collective) || !sweep->complete)
        print_lines(sweep, NULL);
}
