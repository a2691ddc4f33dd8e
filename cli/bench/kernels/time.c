/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * time.c - the reduction and memcpy() take turns over the same memory, a batch each;
 * the fastest batch counts, for what else the machine does can only slow them down.
 */
#include "cli/bench/kernels/kernels.h"

#include "base/clock.h"
#include "bench/pattern.h"
#include "cli/bench/workers.h"
#include "kernels/kernels.h"

#include <stdlib.h>
#include <string.h>

enum {
    SOURCES_MAX = 8,
    PAGE = 4096,
    SKEW = 5 * 64, /* so that the buffers do not begin at the same place of a page */
    FILL = 0x3c    /* a normal number in every type, near 1 in most */
};

#define CALLS_MAX 1000000

/* Work that is timed: the reduction, or the copy of as many bytes as it touches. The copy goes to
 * where the result is, so that sources keep what they were filled with. */
struct work {
    const struct kernel_op *op;
    const struct kernel_call *call; /* NULL: the copy */
    unsigned char *arena;
    size_t bytes; /* read and written */
};

static size_t stride_of(size_t bytes)
{
    return (bytes + 63) / 64 * 64 + SKEW;
}

void *kernels_arena(size_t bytes)
{
    void *arena = NULL;

    if (bytes > SIZE_MAX / (2 * SOURCES_MAX) - SKEW ||
        posix_memalign(&arena, PAGE, (SOURCES_MAX + 1) * stride_of(bytes)))
        return NULL;
    return memset(arena, FILL, (SOURCES_MAX + 1) * stride_of(bytes));
}

/* Seconds of a call, over `calls` in a row. */
static double batch(const struct work *work, int calls)
{
    double start = clock_seconds();

    for (int i = 0; i < calls; i++) {
        if (work->call)
            kernel_reduce(work->op, work->call);
        else
            memcpy(work->arena, work->arena + work->bytes / 2, work->bytes / 2);
        __asm__ volatile("" ::: "memory"); /* somebody might look at the result */
    }
    return (clock_seconds() - start) / calls;
}

/* How many calls make a batch, if one takes `seconds`. */
static int calls_of(double seconds)
{
    double calls = MEASURE_KERNELS / (seconds + 1e-9);

    return calls < 1 ? 1 : calls > CALLS_MAX ? CALLS_MAX : (int)calls;
}

static bool in_time(double start, double seconds)
{
    return clock_seconds() - start < seconds && !bench_caught_signal();
}

/* The first call of each is the slowest and does not count. Two turns, then as time allows. */
static void take_turns(const struct work *work, const struct work *copy, double seconds,
                       struct bench_record *ret_record)
{
    double first = batch(work, 1);
    int least = first > seconds ? 1 : 2; /* one will do where a call takes that long */
    int calls = calls_of(first);
    int copies = calls_of(batch(copy, 1));
    double start = clock_seconds();
    double best = 1e9;
    double best_copy = 1e9;

    for (int turn = 0; turn < least || in_time(start, seconds); turn++) {
        double now = batch(work, calls);
        double now_copy = batch(copy, copies);

        best = now < best ? now : best;
        best_copy = now_copy < best_copy ? now_copy : best_copy;
    }
    ret_record->GBps = (double)work->bytes / best / 1e9;
    ret_record->copy_GBps = (double)copy->bytes / best_copy / 1e9;
    if (copy->bytes > 0)
        ret_record->percent_of_copy = 100 * ret_record->GBps / ret_record->copy_GBps;
}

static struct kernel_op op_of(const struct kernels_options *options, rondo_type type, int sources)
{
    static const enum kernel_function functions[RONDO_OPS] = {
        [RONDO_SUM] = KERNEL_SUM, [RONDO_PROD] = KERNEL_PROD, [RONDO_MIN] = KERNEL_MIN,
        [RONDO_MAX] = KERNEL_MAX, [RONDO_AVG] = KERNEL_SUM,   [RONDO_BAND] = KERNEL_BAND,
        [RONDO_BOR] = KERNEL_BOR, [RONDO_BXOR] = KERNEL_BXOR,
    };

    return (struct kernel_op){.type = type,
                              .function = functions[options->bench.call.op],
                              .divisor =
                                  options->bench.call.op == RONDO_AVG ? (unsigned)sources : 0};
}

struct bench_record kernels_time(const struct kernels_options *options, void *arena,
                                 rondo_type type, size_t bytes, int sources)
{
    size_t element = pattern_type_bytes(type);
    struct kernel_op op = op_of(options, type, sources);
    const void *from[SOURCES_MAX];
    void *to[1] = {arena};
    struct kernel_call call = {.sources = from,
                               .destinations = to,
                               .source_count = sources,
                               .destination_count = 1,
                               .count = bytes / element,
                               .order = KERNEL_FOLD,
                               .scaled = -1,
                               .finish = options->bench.call.op == RONDO_AVG};
    size_t touched = call.count * element * (size_t)(sources + 1);
    struct work work = {&op, &call, arena, touched};
    struct work copy = {NULL, NULL, arena, touched / 2 * 2};
    struct bench_record record = {.dtype = pattern_type_name(type),
                                  .op = pattern_op_name(options->bench.call.op),
                                  .bytes = (long long)bytes,
                                  .sources = sources};

    for (int i = 0; i < SOURCES_MAX; i++)
        from[i] = (unsigned char *)arena + (size_t)(i + 1) * stride_of(bytes);
    take_turns(&work, &copy, options->bench.seconds, &record);
    return record;
}
