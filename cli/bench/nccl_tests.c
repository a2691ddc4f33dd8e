/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_tests.c - results in the format of nccl-tests, for scripts that read theirs.
 *
 * Its columns, as nccl-tests documents them: size, count, type, redop, root; then time, algbw,
 * busbw and #wrong out of place, and the same in place. Two sweeps make a line each.
 */
#include "cli/bench/report.h"

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

void bench_nccl_tests_begin(const struct bench_sweep *sweep)
{
    const struct bench_options *options = sweep->options;
    char program[64];

    snprintf(program, sizeof(program), "%s_perf", bench_collective_name(options->call.collective));
    printf("# Collective test starting: %s\n", program);
    printf("# nThread %d nGpus 1 minBytes %zu maxBytes %zu step: %g(factor) warmup iters: %d "
           "iters: %d agg iters: 1 validation: 1 graph: %d\n#\n",
           options->threads ? sweep->groups[0].size : 1, options->sizes[0],
           options->sizes[options->size_count - 1], options->factor, options->warmup,
           options->iterations, options->graph);
    printf("# %s, %d ranks (%s), memory %s%s%s\n#\n", sweep->groups[0].version,
           sweep->groups[0].size, options->threads ? "threads" : "processes",
           bench_memory_of(sweep, 0), *options->settings ? ", " : "", options->settings);
    printf("#%53s %28s %31s\n", "", "out-of-place", "in-place");
    printf("#%11s %13s %9s %7s %7s", "size", "count", "type", "redop", "root");
    for (int place = 0; place < 2; place++)
        printf(" %9s %7s %7s %6s", "time", "algbw", "busbw", "#wrong");
    printf("\n#%11s %13s %9s %7s %7s", "(B)", "(elements)", "", "", "");
    for (int place = 0; place < 2; place++)
        printf(" %9s %7s %7s %6s", "(us)", "(GB/s)", "(GB/s)", "");
    printf("\n");
}

static void print_place(const struct bench_sweep *sweep, int index)
{
    const struct bench_size *size = sweep ? &sweep->sizes[index] : NULL;

    if (!size || !size->results[0].available) {
        printf(" %9s %7s %7s %6s", "N/A", "N/A", "N/A", "N/A");
        return;
    }
    printf(" %9.2f %7.2f %7.2f", size->results[0].median * 1e6,
           bench_algorithm_bandwidth(size, 0) / 1e9, bench_bus_bandwidth(sweep, size, 0) / 1e9);
    if (size->results[0].checked)
        printf(" %6" PRIu64, size->results[0].wrong);
    else
        printf(" %6s", "N/A");
}

void bench_nccl_tests_end(const struct bench_sweep *out, const struct bench_sweep *in)
{
    const struct bench_call *call = &out->options->call;
    bool reduces = bench_collective_reduces(call->collective);
    const struct bench_sweep *const places[2] = {out, in};
    uint64_t wrong = out->wrong + (in ? in->wrong : 0);
    double sum = 0;
    int count = 0;

    for (int i = 0; i < out->size_count; i++) {
        printf("%12zu %13zu %9s %7s %7d", out->sizes[i].bytes, out->sizes[i].count,
               type_name(call->type), reduces ? pattern_op_name(call->op) : "none",
               bench_collective_is_rooted(call->collective) ? call->root : -1);
        for (int place = 0; place < 2; place++) {
            print_place(places[place], i);
            if (places[place] && places[place]->sizes[i].results[0].available) {
                sum += bench_bus_bandwidth(places[place], &places[place]->sizes[i], 0) / 1e9;
                count++;
            }
        }
        printf("\n");
    }
    printf("# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong ? "FAILED" : "OK");
    printf("# Avg bus bandwidth    : %g\n#\n", count ? sum / count : 0);
    printf("# Collective test concluded: %s_perf\n", bench_collective_name(call->collective));
    fflush(stdout);
}
