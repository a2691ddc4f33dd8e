/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.c - the shared heap, and memory given to it in place. */
#include "bodies.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct world_report report;

Test(memory, is_zeroed_aligned_and_writable_in_every_size)
{
    static const size_t sizes[] = {1, 7, 4096, 4097, 100000, 1 << 20, (32 << 20) + 1};
    size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (int round = 0; round < 3; round++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            void *memory = NULL;
            char *bytes;

            cr_assert(rondo_mem_alloc(sizes[s], &memory) == RONDO_OK, "%s", rondo_last_error(NULL));
            cr_expect((uintptr_t)memory % page == 0);
            bytes = memory;
            for (size_t i = 0; i < sizes[s]; i++)
                cr_assert(bytes[i] == 0, "byte %zu of %zu in round %d", i, sizes[s], round);
            memset(bytes, 0xff, sizes[s]);
            cr_expect(rondo_mem_free(memory) == RONDO_OK, "%s", rondo_last_error(NULL));
        }
}

Test(memory, pieces_do_not_overlap)
{
    enum { PIECES = 200 };
    unsigned char *pieces[PIECES];

    for (int i = 0; i < PIECES; i++) {
        void *memory = NULL;

        cr_assert(rondo_mem_alloc(5000 + (size_t)i, &memory) == RONDO_OK);
        pieces[i] = memory;
        memset(memory, i, 5000 + (size_t)i);
    }
    for (int i = 0; i < PIECES; i += 2)
        cr_expect(rondo_mem_free(pieces[i]) == RONDO_OK);
    for (int i = 1; i < PIECES; i += 2) {
        for (size_t j = 0; j < 5000 + (size_t)i; j++)
            cr_assert(pieces[i][j] == i);
        cr_expect(rondo_mem_free(pieces[i]) == RONDO_OK);
    }
}

Test(memory, too_much_is_refused_in_a_sentence_and_freeing_twice_too)
{
    void *memory = NULL;

    cr_expect(rondo_mem_alloc(SIZE_MAX - 5000, &memory) == RONDO_ERROR_MEMORY ||
              rondo_mem_alloc(SIZE_MAX - 5000, &memory) == RONDO_ERROR_INVALID);
    cr_expect(memory == NULL && strlen(rondo_last_error(NULL)) > 10, "\"%s\"",
              rondo_last_error(NULL));
    cr_assert(rondo_mem_alloc(100, &memory) == RONDO_OK);
    cr_expect(rondo_mem_free((char *)memory + 1) == RONDO_ERROR_INVALID);
    cr_expect(rondo_mem_free(memory) == RONDO_OK);
    cr_expect(rondo_mem_free(memory) == RONDO_ERROR_INVALID);
}

/* ---- Registration ---------------------------------------------------------------------------- */

enum { FLOATS = 100000 };

static rondo_result reduce_registered(rondo_comm *comm, float *memory, char *sentence)
{
    struct world_data data = {RONDO_FLOAT32, RONDO_SUM, rondo_comm_size(comm), 5};
    size_t bytes = 2 * FLOATS * sizeof(float);
    rondo_registration *registration = NULL;
    rondo_result result;
    float before;

    world_fill(&data, rondo_comm_rank(comm), FLOATS, memory);
    before = memory[FLOATS - 1];
    result = rondo_comm_register(comm, memory, bytes, &registration);
    if (!result && memory[FLOATS - 1] != before)
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "registering changed the contents");
    for (int i = 0; i < 3 && !result; i++) {
        result =
            rondo_all_reduce(memory, memory + FLOATS, FLOATS, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
        if (!result && !world_check_reduced(&data, 0, FLOATS, memory + FLOATS, sentence))
            result = RONDO_ERROR_INTERNAL;
    }
    if (!result)
        result = rondo_barrier(comm, NULL);
    if (!result)
        result = rondo_comm_deregister(comm, registration);
    /* Contents and use survive the end of the registration. */
    if (!result && !world_check_reduced(&data, 0, FLOATS, memory + FLOATS, sentence))
        result = RONDO_ERROR_INTERNAL;
    if (!result)
        result =
            rondo_all_reduce(memory, memory + FLOATS, FLOATS, RONDO_FLOAT32, RONDO_SUM, comm, NULL);
    if (!result && !world_check_reduced(&data, 0, FLOATS, memory + FLOATS, sentence))
        result = RONDO_ERROR_INTERNAL;
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

static rondo_result register_memory(rondo_comm *comm, void *argument, char *sentence)
{
    size_t bytes = 2 * FLOATS * sizeof(float);
    float *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    rondo_result result;

    if (memory == MAP_FAILED)
        return world_say(sentence, RONDO_ERROR_MEMORY, "no memory");
    result = reduce_registered(comm, memory, sentence);
    munmap(memory, bytes);
    return result;
}

Test(memory, registered_in_place_keeps_contents_and_gives_right_results)
{
    for (int size = 1; size <= 4; size++)
        cr_assert(world_run_processes(size, register_memory, NULL, &report) == 0, "%s",
                  report.summary);
    for (int size = 1; size <= 4; size++)
        cr_assert(world_run_threads(size, register_memory, NULL, &report) == 0, "%s",
                  report.summary);
}

/* A call with bytes, by an algorithm that needs memory of its peers or none; NULL: any. */
static rondo_result call_by(rondo_comm *comm, rondo_collective collective, const char *algorithm,
                            const void *input, void *output, size_t count)
{
    rondo_call call = {.struct_size = sizeof(call),
                       .collective = collective,
                       .type = RONDO_UINT8,
                       .op = RONDO_SUM,
                       .input = input,
                       .output = output,
                       .count = count,
                       .comm = comm,
                       .algorithm = algorithm};

    return rondo_collective_call(&call);
}

/* Blocks of all ranks, each written by its own, in all of a registered range. */
static bool gather_at(rondo_comm *comm, char *range, size_t each, char *sentence)
{
    struct world_data data = {RONDO_UINT8, WORLD_MOVED, rondo_comm_size(comm), 6};
    char *own = range + (size_t)rondo_comm_rank(comm) * each;
    bool good;

    memset(range, 0, (size_t)data.size * each);
    world_fill(&data, rondo_comm_rank(comm), each, own);
    good = !world_say(sentence, call_by(comm, RONDO_ALL_GATHER, "zero_copy", own, range, each),
                      "%s", rondo_last_error(comm));
    for (int rank = 0; rank < data.size && good; rank++)
        good = world_check_moved(&data, rank, 0, each, range + (size_t)rank * each, sentence);
    return good;
}

/* Input and output lie one behind the other, in a range that begins and ends anywhere. */
static rondo_result reduce_at(rondo_comm *comm, char *input, size_t count, char *sentence)
{
    static const char *const algorithms[] = {"zero_copy", "ring", NULL, "zero_copy"};
    struct world_data data = {RONDO_UINT8, RONDO_SUM, rondo_comm_size(comm), 5};
    char *output = input + count;
    rondo_registration *registration = NULL;
    rondo_result result = rondo_comm_register(comm, input, 2 * count, &registration);

    world_fill(&data, rondo_comm_rank(comm), count, input);
    for (int i = 0; i < 4 && !result; i++) {
        bool in_place = i == 3;

        if (in_place)
            memcpy(output, input, count);
        else
            memset(output, i, count);
        result = call_by(comm, RONDO_ALL_REDUCE, algorithms[i], in_place ? output : input, output,
                         count);
        if (!result && !world_check_reduced(&data, 0, count, output, sentence))
            return RONDO_ERROR_INTERNAL;
    }
    if (!result && !gather_at(comm, input, 2 * count / (size_t)data.size, sentence))
        return RONDO_ERROR_INTERNAL;
    if (!result)
        result = rondo_comm_deregister(comm, registration);
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm)) : RONDO_OK;
}

static rondo_result register_anywhere(rondo_comm *comm, void *argument, char *sentence)
{
    enum { PAGE = 4096, BYTES = 64 * PAGE, FILL = 0x5a };
    static const size_t counts[] = {1, 100, PAGE / 2, PAGE, PAGE + 1, 6 * PAGE + 17, 100001};
    static const size_t offsets[] = {0, 1, 16, 100, PAGE - 1};
    char *memory = aligned_alloc(PAGE, BYTES);
    rondo_result result = memory ? RONDO_OK : RONDO_ERROR_MEMORY;

    (void)argument;
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]) && !result; o++) {
            size_t begin = PAGE + offsets[o], end = begin + 2 * counts[c];

            memset(memory, FILL, BYTES);
            result = reduce_at(comm, memory + begin, counts[c], sentence);
            for (size_t i = 0; i < BYTES && !result; i++)
                if ((i < begin || i >= end) && memory[i] != FILL)
                    result = world_say(sentence, RONDO_ERROR_INTERNAL, "byte %zu of %zu to %zu", i,
                                       begin, end);
        }
    free(memory);
    return result;
}

Test(memory, registered_ranges_begin_and_end_anywhere)
{
    for (int size = 1; size <= 3; size++) {
        cr_expect(world_run_processes(size, register_anywhere, NULL, &report) == 0, "%s",
                  report.summary);
        cr_expect(world_run_threads(size, register_anywhere, NULL, &report) == 0, "%s",
                  report.summary);
    }
}

static rondo_result register_wrongly(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_registration *registration = NULL;
    char *memory = aligned_alloc(4096, 16384);
    rondo_result empty, none, missing;

    if (!memory)
        return RONDO_ERROR_MEMORY;
    empty = rondo_comm_register(comm, memory, 0, &registration);
    none = rondo_comm_register(comm, NULL, 4096, &registration);
    missing = rondo_comm_deregister(comm, (rondo_registration *)memory);
    free(memory);
    if (empty != RONDO_ERROR_INVALID || none != RONDO_ERROR_INVALID ||
        missing != RONDO_ERROR_INVALID || registration)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "%d %d %d", (int)empty, (int)none,
                         (int)missing);
    return bodies_all_reduce(comm, 5, sentence);
}

Test(memory, registering_no_or_unknown_memory_is_refused)
{
    cr_assert(world_run_processes(2, register_wrongly, NULL, &report) == 0, "%s", report.summary);
}

/* Nothing to move, and only rank 0 gives NULL twice: that must not look "in place" to some. */
static rondo_result exchange_nothing(rondo_comm *comm, void *argument, char *sentence)
{
    char input[1], output[1];
    bool first = rondo_comm_rank(comm) == 0;
    rondo_call call = {
        .struct_size = sizeof(call),
        .collective = RONDO_ALL_TO_ALL,
        .type = RONDO_INT8,
        .input = first ? NULL : input,
        .output = first ? NULL : output,
        .comm = comm,
        .algorithm = "zero_copy",
    };
    rondo_result result = rondo_collective_call(&call);

    (void)argument;
    return world_say(sentence, result, "%s", rondo_last_error(comm));
}

Test(memory, an_empty_exchange_is_in_place_for_nobody)
{
    cr_assert(world_run_processes(3, exchange_nothing, NULL, &report) == 0, "%s", report.summary);
}

/* Rank 1 has memory that its peers do not reach. Afterwards the communicator works as before. */
static rondo_result by_name_or_not_at_all(rondo_comm *comm, void *argument, char *sentence)
{
    float plain[10];
    void *mapped = NULL;
    rondo_result result = rondo_mem_alloc(sizeof(plain), &mapped);
    rondo_call call = {
        .struct_size = sizeof(call),
        .collective = RONDO_ALL_REDUCE,
        .type = RONDO_FLOAT32,
        .op = RONDO_SUM,
        .count = 10,
        .comm = comm,
        .algorithm = "zero_copy",
    };

    (void)argument;
    call.input = mapped;
    for (int turn = 0; turn < 3 && !result; turn++) {
        call.output = turn == 1 && rondo_comm_rank(comm) == 1 ? (void *)plain : mapped;
        result = rondo_collective_call(&call);
        if (turn != 1)
            continue;
        if (result != RONDO_ERROR_UNSUPPORTED || !strstr(rondo_last_error(comm), "rondo_mem_alloc"))
            return world_say(sentence, RONDO_ERROR_INTERNAL, "not refused: %d, %s", (int)result,
                             rondo_last_error(comm));
        result = RONDO_OK;
    }
    rondo_mem_free(mapped);
    return result ? world_say(sentence, result, "%s", rondo_last_error(comm))
                  : bodies_all_reduce(comm, 5, sentence);
}

Test(memory, an_algorithm_that_a_call_names_is_that_one_or_none)
{
    cr_assert(world_run_processes(3, by_name_or_not_at_all, NULL, &report) == 0, "%s",
              report.summary);
}

static rondo_result plain_buffers(rondo_comm *comm, void *argument, char *sentence)
{
    (void)argument;
    return bodies_all_reduce(comm, 5000, sentence);
}

Test(memory, an_algorithm_that_is_set_gives_way_where_memory_is_out_of_reach)
{
    setenv("RONDO_ALGORITHM", "zero_copy", 1);
    cr_assert(world_run_processes(3, plain_buffers, NULL, &report) == 0, "%s", report.summary);
    setenv("RONDO_TRANSPORT", "tcp", 1);
    cr_assert(world_run_processes(3, plain_buffers, NULL, &report) == 0, "%s", report.summary);
}
