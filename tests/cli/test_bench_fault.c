/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_fault.c - a library for the benchmark that misbehaves: Rondo's adapter with a fault on
 * rank 1, named by TEST_BENCH_FAULT. Only the tests build it; it stands where `rondo bench` would
 * find the real worker.
 *
 *     corrupt   one bit of the last byte of every result is wrong
 *     peer      the same, of ranks that have another build preloaded (--base)
 *     overrun   a byte behind the result is written
 *     later     calls with data behind the first one leave an element out
 *     begun     so do calls that go on together, but one by one they are right
 *     hang      no call with data returns
 *     hundredth the hundredth call with data fails
 *     refuse    the library does not open
 */
#include "bench/library.h"
#include "bench/pattern.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#undef bench_the_library /* the build renames that of the real adapter */
extern const struct bench_library bench_honest_library;

struct faulty {
    void *honest;
    int rank, size, calls;
};

static bool has_fault(const struct faulty *faulty, const char *name)
{
    const char *fault = getenv("TEST_BENCH_FAULT");

    return fault && !strcmp(fault, name) && (!faulty || faulty->rank == 1);
}

static void *faulty_open(struct bench_place *place)
{
    struct faulty *faulty = calloc(1, sizeof(*faulty));

    if (faulty && !has_fault(NULL, "refuse"))
        faulty->honest = bench_honest_library.open(place);
    if (!faulty || !faulty->honest) {
        free(faulty);
        return NULL;
    }
    faulty->rank = place->rank;
    faulty->size = place->size;
    return faulty;
}

static void faulty_close(void *state)
{
    struct faulty *faulty = state;

    if (faulty)
        bench_honest_library.close(faulty->honest);
    free(faulty);
}

static void *faulty_alloc(void *state, size_t bytes, enum bench_memory memory)
{
    return bench_honest_library.alloc(((struct faulty *)state)->honest, bytes, memory);
}

static void faulty_free(void *state, void *data, enum bench_memory memory)
{
    bench_honest_library.free(((struct faulty *)state)->honest, data, memory);
}

/* The call without its last element. */
static struct bench_call shortened(const struct bench_call *call)
{
    struct bench_call less = *call;

    less.count -= less.count > 0;
    return less;
}

static int faulty_run(void *state, const struct bench_call *call, const void *input, void *output)
{
    struct faulty *faulty = state;
    size_t bytes = bench_output_elements(call, faulty->size) * pattern_type_bytes(call->type);
    unsigned char *end = (unsigned char *)output + bytes;
    struct bench_call less = shortened(call);
    int failed;

    while (bytes > 0 && has_fault(faulty, "hang"))
        pause();
    faulty->calls += bytes > 0;
    if (has_fault(NULL, "hundredth") && faulty->calls == 100)
        return -1;
    if (bytes > 0 && has_fault(NULL, "later") && faulty->calls > 1)
        failed = bench_honest_library.run(faulty->honest, &less, input, output);
    else
        failed = bench_honest_library.run(faulty->honest, call, input, output);
    if (bytes > 0 &&
        (has_fault(faulty, "corrupt") || (has_fault(faulty, "peer") && getenv("LD_PRELOAD"))))
        end[-1] ^= 1;
    if (bytes > 0 && has_fault(faulty, "overrun"))
        end[0] ^= 1;
    return failed;
}

static int faulty_begin(void *state, int communicators, bool background)
{
    return bench_honest_library.begin(((struct faulty *)state)->honest, communicators, background);
}

static int faulty_start(void *state, const struct bench_call *call, int communicator,
                        const void *input, void *output)
{
    struct bench_call less = shortened(call);

    return bench_honest_library.start(((struct faulty *)state)->honest,
                                      has_fault(NULL, "begun") ? &less : call, communicator, input,
                                      output);
}

static int faulty_finish(void *state)
{
    return bench_honest_library.finish(((struct faulty *)state)->honest);
}

static const char *faulty_error(void *state)
{
    if (has_fault(NULL, "refuse"))
        return "it does not want to";
    if (has_fault(NULL, "hundredth"))
        return "it is the hundredth";
    return bench_honest_library.error(state ? ((struct faulty *)state)->honest : NULL);
}

static void faulty_version(char *text, size_t room)
{
    bench_honest_library.version(text, room);
}

extern const struct bench_library bench_the_library;
const struct bench_library bench_the_library = {
    .open = faulty_open,
    .close = faulty_close,
    .alloc = faulty_alloc,
    .free = faulty_free,
    .run = faulty_run,
    .error = faulty_error,
    .version = faulty_version,
    .begin = faulty_begin,
    .start = faulty_start,
    .finish = faulty_finish,
};
