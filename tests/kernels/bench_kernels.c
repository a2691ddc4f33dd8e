/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_kernels.c - how fast the passes are: `bench_kernels [LEVEL]`.
 *
 * GB/s counts all bytes that are read and written (sources + destinations), so that memcpy is the
 * measure of all rows.
 */
#include "base/clock.h"
#include "kernels/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 9, BUFFER_BYTES = 64 << 20 };

static void *buffer[BUFFERS + 2];

/* Seconds of one call: the best of several batches. */
static double time_of(const struct kernel_op *op, const struct kernel_call *call, size_t bytes)
{
    size_t times = bytes > 0 ? ((size_t)32 << 20) / (bytes + 256) + 1 : 100000;
    double best = 1e9;

    for (int batch = 0; batch < 5; batch++) {
        double start = clock_seconds();
        for (size_t i = 0; i < times; i++)
            kernel_reduce(op, call);
        double each = (clock_seconds() - start) / (double)times;
        best = each < best ? each : best;
    }
    return best;
}

static double gigabytes(rondo_type type, enum kernel_function function, int k, int m, size_t count)
{
    static const size_t sizes[RONDO_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};
    const struct kernel_op op = {.type = type, .function = function, .divisor = 3};
    struct kernel_call call = {
        (const void *const *)buffer, buffer + BUFFERS, k, m, count, KERNEL_FOLD, -1, false};
    double seconds = time_of(&op, &call, count * sizes[type] * (size_t)(k + m));

    return (double)(count * sizes[type] * (size_t)(k + m)) / seconds * 1e-9;
}

static void print_small(void)
{
    static const rondo_type types[] = {RONDO_FLOAT32, RONDO_BFLOAT16, RONDO_FLOAT16, RONDO_INT8};
    static const char *names[] = {"float32", "bfloat16", "float16", "int8"};

    printf("\nns of a call, sum of 2 to 1:  count");
    for (int count = 1; count <= 64; count *= 2)
        printf(" %6d", count);
    for (int t = 0; t < 4; t++) {
        printf("\n%35s", names[t]);
        for (size_t count = 1; count <= 64; count *= 2) {
            const struct kernel_op op = {.type = types[t], .function = KERNEL_SUM};
            struct kernel_call call = {
                (const void *const *)buffer, buffer + BUFFERS, 2, 1, count, KERNEL_FOLD, -1, false};
            printf(" %6.1f", 1e9 * time_of(&op, &call, 0));
        }
    }
    printf("\n");
}

static void print_types(size_t bytes)
{
    static const char *names[RONDO_TYPES] = {
        "int8",   "uint8",   "int16",    "uint16",  "int32",   "uint32",      "int64",
        "uint64", "float16", "bfloat16", "float32", "float64", "float8_e4m3", "float8_e5m2"};
    static const size_t sizes[RONDO_TYPES] = {1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};

    printf("\n%zu KiB per buffer   sum 2>1  3>1  4>1  8>1  2>2   prod    min  Gelem/s(2>1)\n",
           bytes >> 10);
    for (int t = 0; t < RONDO_TYPES; t++) {
        size_t count = bytes / sizes[t];
        double two = gigabytes((rondo_type)t, KERNEL_SUM, 2, 1, count);
        printf("%-18s %8.1f %5.1f %5.1f %5.1f %5.1f  %5.1f  %5.1f  %6.2f\n", names[t], two,
               gigabytes((rondo_type)t, KERNEL_SUM, 3, 1, count),
               gigabytes((rondo_type)t, KERNEL_SUM, 4, 1, count),
               gigabytes((rondo_type)t, KERNEL_SUM, 8, 1, count),
               gigabytes((rondo_type)t, KERNEL_SUM, 2, 2, count),
               gigabytes((rondo_type)t, KERNEL_PROD, 2, 1, count),
               gigabytes((rondo_type)t, KERNEL_MIN, 2, 1, count), two / (double)(3 * sizes[t]));
    }
}

static void print_copies(void)
{
    printf("\nGB/s of copies (read + write)    memcpy  kernel_copy\n");
    for (size_t bytes = 4096; bytes <= BUFFER_BYTES; bytes *= 4) {
        size_t times = ((size_t)128 << 20) / bytes;
        double best[2] = {1e9, 1e9};

        for (int batch = 0; batch < 6; batch++) {
            double start = clock_seconds();
            for (size_t i = 0; i < times; i++) {
                if (batch % 2)
                    kernel_copy(buffer[1], buffer[0], bytes);
                else
                    memcpy(buffer[1], buffer[0], bytes);
                __asm__ volatile("" ::: "memory");
            }
            double each = (clock_seconds() - start) / (double)times;
            best[batch % 2] = each < best[batch % 2] ? each : best[batch % 2];
        }
        printf("%10zu KiB %24.1f %12.1f\n", bytes >> 10, 2e-9 * (double)bytes / best[0],
               2e-9 * (double)bytes / best[1]);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !kernel_use_level(argv[1])) {
        fprintf(stderr, "bench_kernels: this machine has no level %s\n", argv[1]);
        return 1;
    }
    for (int i = 0; i < BUFFERS + 2; i++) {
        buffer[i] = aligned_alloc(4096, BUFFER_BYTES);
        if (buffer[i] == NULL)
            return 1;
        memset(buffer[i], 0, BUFFER_BYTES);
    }
    printf("level %s\n", kernel_level());
    print_small();
    print_types((size_t)16 << 10);
    print_types((size_t)16 << 20);
    print_copies();
    return 0;
}
