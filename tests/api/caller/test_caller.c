/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_caller.c - what the caller's process is like does not matter, and stays: closed standard
 * streams, the floating-point mode, memory that others share.
 */
#include "tests/api/bodies.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

static struct world_report report;

/* ---- Standard streams ------------------------------------------------------------------------ */

static rondo_result own_descriptors_are_above_two(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_comm *part;
    rondo_result result = bodies_all_reduce(comm, 20000, sentence);

    if (!result)
        result = rondo_comm_split(comm, 0, 0, NULL, &part);
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    result = bodies_all_reduce(part, 10, sentence);
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) >= 0)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "descriptor %d is open", fd);
    rondo_comm_close(part);
    return result;
}

Test(caller, printing_reaches_nothing_of_ours_where_standard_streams_are_closed)
{
    for (int fd = 0; fd <= 2; fd++)
        close(fd);
    cr_assert(world_run_processes(3, own_descriptors_are_above_two, NULL, &report) == 0, "%s",
              report.summary);
}

/* ---- The floating-point mode ----------------------------------------------------------------- */

enum { MOST = 20000 };

/* `output` has `bytes` on each rank: are they the same on all of them? */
static rondo_result compare(rondo_comm *comm, const void *output, size_t bytes, char *sentence)
{
    int size = rondo_comm_size(comm);
    char *all = malloc(bytes * (size_t)size);
    rondo_result result =
        all ? rondo_all_gather(output, all, bytes, RONDO_UINT8, comm, NULL) : RONDO_ERROR_MEMORY;

    for (int rank = 1; rank < size && !result; rank++)
        if (memcmp(all, all + (size_t)rank * bytes, bytes) != 0)
            result = world_say(sentence, RONDO_ERROR_INTERNAL,
                               "rank %d has other bits than rank 0, of %zu bytes", rank, bytes);
    free(all);
    return result;
}

#if defined(__SSE2__)
enum { CALLS = 4, FLUSHES = 0x8040, ROUNDS_UP = 0x4000, MASKS_OF_FAULTS = 0x680, FLAGS = 0x3f };

/* Rank 0 has the mode `*argument`. */
static rondo_result sum_in_a_mode(rondo_comm *comm, void *argument, char *sentence)
{
    static const size_t counts[] = {1, 10, 1000, MOST};
    unsigned before = _mm_getcsr(), mode = before;
    int rank = rondo_comm_rank(comm);
    float *input = malloc(MOST * sizeof(float)), *output = malloc(MOST * sizeof(float));
    rondo_result result = input && output ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (size_t k = 0; k < MOST && !result; k++)
        input[k] = (k % 3 == 0 ? 1e-39F : k % 3 == 1 ? 3e38F : 0.1F) * (float)(rank + 1);
    if (rank == 0)
        mode = *(const unsigned *)argument;
    for (size_t i = 0; i < sizeof(counts) / sizeof(*counts) && !result; i++) {
        /* The call before was the same, in the usual mode. */
        for (int call = 1; call <= CALLS && !result; call++) {
            _mm_setcsr(call == CALLS ? mode : before);
            result =
                rondo_all_reduce(input, output, counts[i], RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        }
        if (!result && (_mm_getcsr() & ~(unsigned)FLAGS) != (mode & ~(unsigned)FLAGS))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "the mode is another one");
        _mm_setcsr(before);
        if (!result)
            result = compare(comm, output, counts[i] * sizeof(float), sentence);
    }
    free(input);
    free(output);
    return world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(caller, every_rank_has_the_same_bits_in_any_floating_point_mode)
{
    static unsigned modes[] = {0x1f80 | FLUSHES, 0x1f80 | ROUNDS_UP, 0x1f80 & ~MASKS_OF_FAULTS};

    for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
        for (int size = 2; size <= 4; size++)
            cr_expect(world_run_threads(size, sum_in_a_mode, &modes[i], &report) == 0,
                      "mode %#x, %d ranks: %s", modes[i], size, report.summary);
}
#endif

/* ---- Averages -------------------------------------------------------------------------------- */

/* Numbers in float16, which goes up to 65504. */
enum { TENTH = 0x2e66, ONE = 0x3c00, SIXTY_THOUSAND = 0x7b53 };

/* By each algorithm that has them. */
static rondo_result average_of_large_numbers(rondo_comm *comm, void *argument, char *sentence)
{
    uint16_t *input = malloc(2 * MOST), *output = malloc(2 * MOST);
    rondo_call call = {
        .struct_size = sizeof(call),
        .collective = RONDO_ALL_REDUCE,
        .type = RONDO_FLOAT16,
        .op = RONDO_AVG,
        .input = input,
        .output = output,
        .count = MOST,
        .comm = comm,
        .algorithm = argument,
    };
    rondo_result result = input && output ? RONDO_OK : RONDO_ERROR_MEMORY;

    for (size_t k = 0; k < MOST && !result; k++)
        input[k] = k % 2 ? SIXTY_THOUSAND : TENTH;
    if (!result)
        result = rondo_collective_call(&call);
    for (size_t k = 1; k < MOST && !result; k += 2)
        if (output[k] != SIXTY_THOUSAND)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "%s: element %zu is %#x, not 60000",
                               (const char *)argument, k, output[k]);
    if (!result)
        result = compare(comm, output, 2 * MOST, sentence);
    free(input);
    free(output);
    return result == RONDO_ERROR_UNSUPPORTED
               ? RONDO_OK
               : world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(caller, an_average_of_float16_overflows_only_where_the_exact_one_does)
{
    static const char *const algorithms[] = {"auto",     "ring",     "tree",
                                             "direct",   "one_shot", "doubling",
                                             "binomial", "halving",  "hierarchy_zero_copy"};

    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); i++)
        for (int size = 2; size <= 4; size++)
            cr_expect(world_run_threads(size, average_of_large_numbers, (void *)algorithms[i],
                                        &report) == 0,
                      "%d ranks: %s", size, report.summary);
}

/* Averages by one that reads inputs of peers as they are, which in float16 is no way. */
static rondo_result average_of_ones(rondo_comm *comm, void *argument, char *sentence)
{
    uint16_t input[10], output[10] = {0};
    rondo_result result;

    (void)argument;
    for (size_t k = 0; k < 10; k++)
        input[k] = ONE;
    result = rondo_all_reduce(input, output, 10, RONDO_FLOAT16, RONDO_AVG, comm, NULL);
    for (size_t k = 0; k < 10 && !result; k++)
        if (output[k] != ONE)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "element %zu is %#x, not 1", k,
                               output[k]);
    return world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(caller, an_algorithm_that_is_set_gives_way_where_it_has_no_average)
{
    if (getenv("RONDO_TRANSPORT"))
        cr_skip_test("Peers' memory is not mapped.");
    setenv("RONDO_ALGORITHM", "hierarchy_zero_copy", 1);
    cr_assert(world_run_processes(4, average_of_ones, NULL, &report) == 0, "%s", report.summary);
}

/* ---- Memory of others ------------------------------------------------------------------------ */

enum { BYTES = 1 << 20 };

static int *map_memory(int rights, int how, int fd)
{
    int *memory = mmap(NULL, BYTES, rights, how, fd, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static rondo_result register_what_is_not_ours(rondo_comm *comm, void *argument, char *sentence)
{
    const int both = PROT_READ | PROT_WRITE;
    FILE *file = tmpfile();
    int *kinds[] = {
        file && !ftruncate(fileno(file), BYTES) ? map_memory(both, MAP_SHARED, fileno(file)) : NULL,
        file ? map_memory(both, MAP_PRIVATE, fileno(file)) : NULL,
        map_memory(both, MAP_SHARED | MAP_ANONYMOUS, -1),
        map_memory(PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1),
        map_memory(both, MAP_PRIVATE | MAP_ANONYMOUS, -1),
    };
    const int plain = sizeof(kinds) / sizeof(*kinds) - 1;
    rondo_registration *registration;
    rondo_result result = RONDO_OK;
    int stored = 0;

    for (int i = 0; i <= plain && !result; i++) {
        rondo_result answer = rondo_comm_register(comm, kinds[i], BYTES, &registration);

        if (answer != (i == plain ? RONDO_OK : RONDO_ERROR_INVALID))
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "kind %d: %d, %s", i, answer,
                               rondo_last_error(comm));
    }
    if (!result && mprotect(kinds[plain] + BYTES / sizeof(int) / 2, BYTES / 2, PROT_READ))
        result = RONDO_ERROR_SYSTEM;
    if (!result)
        result = rondo_comm_deregister(comm, registration);
    if (!result && kinds[0]) {
        kinds[0][0] = 42; /* reaches the file */
        if (pread(fileno(file), &stored, sizeof(stored), 0) != sizeof(stored) || stored != 42)
            result = world_say(sentence, RONDO_ERROR_INTERNAL, "the file has %d", stored);
    }
    if (file)
        fclose(file);
    return result;
}

Test(caller, only_private_anonymous_writable_memory_is_registered)
{
    cr_assert(world_run_processes(1, register_what_is_not_ours, NULL, &report) == 0, "%s",
              report.summary);
}
