/* SPDX-License-Identifier: BSD-3-Clause */
/* matrix.c - one call of the matrix after the other: buffers, call, check. See matrix.h. */
#include "tests/api/values/matrix.h"

#include "rondo/bindings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, SMALL_SLOT = 2048 };

const char *const matrix_algorithms[] = {
    "ring",    "tree",     "direct",    "one_shot",       "zero_copy",           "doubling",
    "halving", "binomial", "hierarchy", "hierarchy_ring", "hierarchy_zero_copy", "leaders",
    "bruck",   NULL};

/* One allocation with guards on both sides; in place, input and output are parts of one. */
struct buffer {
    char *memory;
    size_t bytes; /* between the guards */
    bool shared;
};

struct call_buffers {
    struct buffer first, second; /* second is unused in place */
    char *input, *output;        /* NULL where this rank has none */
    size_t input_count, output_count;
};

/* ---- Buffers --------------------------------------------------------------------------------- */

static bool rank_shares(const struct test_case *test, int rank)
{
    return test->memory == CASE_SHARED || (test->memory == CASE_EVEN_SHARED && rank % 2 == 0) ||
           (test->memory == CASE_ODD_SHARED && rank % 2 == 1);
}

static rondo_result buffer_open(struct buffer *buffer, size_t bytes, bool shared)
{
    size_t all = bytes + 2 * GUARD + 1;
    void *memory = NULL;
    rondo_result result = RONDO_OK;

    if (shared)
        result = rondo_mem_alloc(all, &memory);
    else if (!(memory = malloc(all)))
        result = RONDO_ERROR_MEMORY;
    if (result)
        return result;
    memset(memory, GUARD_BYTE, all);
    *buffer = (struct buffer){memory, bytes, shared};
    return RONDO_OK;
}

static char *buffer_at(const struct buffer *buffer, bool unaligned)
{
    return buffer->memory + GUARD + unaligned;
}

static bool buffer_guards_hold(const struct buffer *buffer, bool unaligned)
{
    const char *at = buffer_at(buffer, unaligned);
    bool hold = true;

    if (!buffer->memory)
        return true;
    for (int i = 1; i <= GUARD; i++)
        hold = hold && (unsigned char)at[-i] == GUARD_BYTE;
    for (size_t i = 0; i < GUARD + 1u - unaligned; i++)
        hold = hold && (unsigned char)at[buffer->bytes + i] == GUARD_BYTE;
    return hold;
}

static void buffer_close(struct buffer *buffer)
{
    if (buffer->shared)
        rondo_mem_free(buffer->memory);
    else
        free(buffer->memory);
}

/* Elements in this rank's input and output; 0 blocks where it has none. */
static void lengths(const struct test_case *test, int rank, size_t *ret_input, size_t *ret_output)
{
    size_t count = cases_count(test), all = count * (size_t)test->size;
    bool root = rank == cases_root(test);
    size_t input[] = {count, count, root ? count : 0, count, all, all, count, root ? all : 0, 0};
    size_t output[] = {count, root ? count : 0, count, all, count, all, root ? all : 0, count, 0};

    *ret_input = input[test->form.collective];
    *ret_output = output[test->form.collective];
}

static bool uses_input(const struct test_case *test, int rank)
{
    bool root = rank == cases_root(test);

    return test->form.collective != RONDO_BARRIER &&
           (root ||
            (test->form.collective != RONDO_BROADCAST && test->form.collective != RONDO_SCATTER));
}

static bool uses_output(const struct test_case *test, int rank)
{
    bool root = rank == cases_root(test);

    return test->form.collective != RONDO_BARRIER &&
           (root ||
            (test->form.collective != RONDO_REDUCE && test->form.collective != RONDO_GATHER));
}

static rondo_result buffers_open(const struct test_case *test, int rank, struct call_buffers *b)
{
    size_t bytes = rondo_type_size(test->type), in, out;
    bool shared = rank_shares(test, rank);
    rondo_result result;

    memset(b, 0, sizeof(*b));
    lengths(test, rank, &in, &out);
    b->input_count = in;
    b->output_count = out;
    result = buffer_open(&b->first, bytes * (test->in_place && out > in ? out : in), shared);
    if (result)
        return result;
    b->input = b->output = buffer_at(&b->first, test->unaligned);
    if (!test->in_place || !uses_input(test, rank) || !uses_output(test, rank)) {
        result = buffer_open(&b->second, bytes * out, shared);
        if (result)
            return result;
        b->output = buffer_at(&b->second, test->unaligned);
    } else if (in < out) {
        b->input += bytes * in * (size_t)rank;
    } else if (out < in) {
        b->output += bytes * out * (size_t)rank;
    }
    if (!uses_input(test, rank))
        b->input = NULL;
    if (!uses_output(test, rank))
        b->output = NULL;
    return RONDO_OK;
}

/* ---- The pre-multiplied sum: inputs are divided beforehand, so the same sums come out -------- */

static void divide_inputs(rondo_type type, int rank, size_t count, char *input)
{
    size_t bytes = rondo_type_size(type);

    if (rank % 2 == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = 0;

        if (world_is_float(type)) {
            world_store(type, input + i * bytes, world_load(type, input + i * bytes) / 2);
            continue;
        }
        memcpy(&bits, input + i * bytes, bytes);
        bits *= 0xaaaaaaaaaaaaaaabu; /* times 3 this is 1, modulo 2^64 */
        memcpy(input + i * bytes, &bits, bytes);
    }
}

static rondo_result open_premul(rondo_comm *comm, rondo_type type, int rank, rondo_op *ret_op)
{
    uint64_t scalar = 0;

    world_store(type, &scalar, rank % 2 == 0 ? 1 : world_is_float(type) ? 2 : 3);
    return rondo_op_create_premul_sum(comm, &scalar, type, ret_op);
}

/* ---- Check ----------------------------------------------------------------------------------- */

static bool check_output(const struct test_case *test, const struct world_data *data, int rank,
                         const char *output, char *sentence)
{
    size_t count = cases_count(test), block = count * rondo_type_size(test->type);
    size_t mine = (size_t)rank * count;
    bool right = true;

    switch (test->form.collective) {
    case RONDO_ALL_REDUCE:
    case RONDO_REDUCE:
        return world_check_reduced(data, 0, count, output, sentence);
    case RONDO_REDUCE_SCATTER:
        return world_check_reduced(data, mine, count, output, sentence);
    case RONDO_BROADCAST:
        return world_check_moved(data, cases_root(test), 0, count, output, sentence);
    case RONDO_SCATTER:
        return world_check_moved(data, cases_root(test), mine, count, output, sentence);
    case RONDO_ALL_GATHER:
    case RONDO_GATHER:
        for (int r = 0; r < test->size; r++)
            right =
                right && world_check_moved(data, r, 0, count, output + (size_t)r * block, sentence);
        return right;
    case RONDO_ALL_TO_ALL:
        for (int r = 0; r < test->size; r++)
            right = right &&
                    world_check_moved(data, r, mine, count, output + (size_t)r * block, sentence);
        return right;
    default:
        return true;
    }
}

static bool check_input(const struct test_case *test, const struct world_data *data, int rank,
                        const struct call_buffers *b, char *sentence)
{
    bool in_place = b->first.memory && !b->second.memory;

    if (!b->input || in_place || test->op == CASES_PREMUL)
        return true;
    if (world_check_moved(data, rank, 0, b->input_count, b->input, sentence))
        return true;
    memmove(sentence + 9, sentence, WORLD_SENTENCE - 9);
    memcpy(sentence, "(input!) ", 9);
    sentence[WORLD_SENTENCE - 1] = 0;
    return false;
}

/* ---- One call -------------------------------------------------------------------------------- */

/* Posted, or called where it can't be posted now, which depends on what other ranks have done. */
static rondo_result post_once(const rondo_call *call, enum case_way way)
{
    rondo_request *request = NULL;
    rondo_result result = rondo_collective_post(call, &request), next = RONDO_OK;

    if (result == RONDO_IN_PROGRESS)
        result = rondo_collective_call(call);
    if (way == CASE_POSTED_LEFT) {
        rondo_request_close(request);
        request = NULL;
    }
    if (way != CASE_POSTED)
        next = rondo_barrier(call->comm, NULL);
    if (request && !result)
        result = rondo_request_wait(request, way == CASE_POSTED ? -1 : 0);
    rondo_request_close(request);
    return result ? result : next;
}

static rondo_result call_once(const struct test_case *test, rondo_comm *comm, rondo_op op,
                              const struct call_buffers *b)
{
    rondo_call call = {
        .struct_size = sizeof(call),
        .collective = test->form.collective,
        .type = test->type,
        .op = op,
        .root = cases_root(test),
        .input = b->input,
        .output = b->output,
        .count = cases_count(test),
        .comm = comm,
        .algorithm = test->form.algorithm,
    };

    return test->way == CASE_CALLED ? rondo_collective_call(&call) : post_once(&call, test->way);
}

static rondo_result run_with(const struct test_case *test, rondo_comm *comm,
                             const struct world_data *data, const struct call_buffers *b,
                             char *sentence)
{
    int rank = rondo_comm_rank(comm);
    bool premul = test->op == CASES_PREMUL && cases_reduces(test->form.collective);
    rondo_op op = premul ? RONDO_SUM : test->op;
    rondo_result result;

    if (premul && (result = open_premul(comm, test->type, rank, &op)))
        return world_say(sentence, result, "premul: %s", rondo_last_error(comm));
    if (b->input)
        world_fill(data, rank, b->input_count, b->input);
    if (b->input && premul)
        divide_inputs(test->type, rank, b->input_count, b->input);
    result = call_once(test, comm, cases_reduces(test->form.collective) ? op : 0, b);
    if (premul)
        rondo_op_destroy(comm, op);
    if (result == RONDO_ERROR_UNSUPPORTED)
        return result;
    if (result)
        return world_say(sentence, result, "%s", rondo_last_error(comm));
    if (b->output && !check_output(test, data, rank, b->output, sentence))
        return RONDO_ERROR_INTERNAL;
    if (!check_input(test, data, rank, b, sentence))
        return RONDO_ERROR_INTERNAL;
    if (!buffer_guards_hold(&b->first, test->unaligned) ||
        !buffer_guards_hold(&b->second, test->unaligned))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "wrote beyond a buffer");
    return RONDO_OK;
}

rondo_result matrix_call(const struct test_case *test, rondo_comm *comm, char *sentence)
{
    bool premul = test->op == CASES_PREMUL;
    struct world_data data = {
        .type = test->type,
        .op = !cases_reduces(test->form.collective) ? WORLD_MOVED
              : premul                              ? RONDO_SUM
                                                    : test->op,
        .size = test->size,
        .seed = (uint64_t)test->form_index,
    };
    char detail[WORLD_SENTENCE] = "", text[256];
    struct call_buffers buffers;
    rondo_result result = buffers_open(test, rondo_comm_rank(comm), &buffers);

    if (!result)
        result = run_with(test, comm, &data, &buffers, detail);
    buffer_close(&buffers.first);
    buffer_close(&buffers.second);
    if (result) {
        cases_describe(test, text, sizeof(text));
        world_say(sentence, result, "%s: %s", text, detail[0] ? detail : rondo_last_error(NULL));
    }
    return result;
}

rondo_result matrix_run(rondo_comm *comm, void *argument, char *sentence)
{
    const struct matrix_part *part = argument;
    struct matrix *matrix = part->matrix;
    rondo_config config = RONDO_CONFIG_INIT;
    rondo_comm *small = NULL;
    rondo_result result;

    config.slot_bytes = SMALL_SLOT;
    result = rondo_comm_split(comm, 0, rondo_comm_rank(comm), &config, &small);
    if (result)
        return world_say(sentence, result, "split: %s", rondo_last_error(comm));
    for (int i = 0; i < matrix->list.count && !result; i++) {
        const struct test_case *test = &matrix->list.at[i];

        if (test->size != rondo_comm_size(comm) || test->processes != part->processes)
            continue;
        result = matrix_call(test, test->small_slots ? small : comm, sentence);
        if (result == RONDO_ERROR_UNSUPPORTED) { /* then perhaps with memory that peers reach */
            struct test_case mapped = *test;

            mapped.memory = CASE_SHARED;
            result = matrix_call(&mapped, test->small_slots ? small : comm, sentence);
        }
        if (result == RONDO_ERROR_UNSUPPORTED || result == RONDO_OK) {
            if (rondo_comm_rank(comm) == 0)
                (result ? matrix->refused : matrix->ran)[test->form_index]++;
            result = RONDO_OK;
            sentence[0] = 0;
        }
    }
    if (!result)
        result = rondo_comm_finalize(small);
    rondo_comm_close(small);
    return result;
}

/* ---- What forms are there? ------------------------------------------------------------------- */

static rondo_result find_forms(rondo_comm *comm, struct case_list *ret_list, char *sentence)
{
    int forms = 0;

    for (int c = 0; c <= RONDO_BARRIER; c++)
        for (int a = 0; matrix_algorithms[a]; a++) {
            struct test_case test = {
                .form = {(rondo_collective)c, matrix_algorithms[a]},
                .size = rondo_comm_size(comm),
                .type = RONDO_INT32,
                .count = COUNT_17,
                .memory = CASE_SHARED,
            };
            rondo_result result = matrix_call(&test, comm, sentence);

            if (result && result != RONDO_ERROR_UNSUPPORTED)
                return result;
            sentence[0] = 0;
            if (result == RONDO_OK && forms < CASES_FORMS_MAX)
                ret_list->form[forms++] = test.form;
        }
    ret_list->forms = forms;
    return RONDO_OK;
}

/* All ranks find the same; one of them keeps it for the others. */
static rondo_result try_forms(rondo_comm *comm, void *argument, char *sentence)
{
    struct case_list *list = calloc(1, sizeof(*list));
    rondo_result result = list ? find_forms(comm, list, sentence) : RONDO_ERROR_MEMORY;

    if (!result && rondo_comm_rank(comm) == 0)
        memcpy(argument, list, sizeof(*list));
    free(list);
    return result;
}

rondo_result matrix_choose(struct matrix *matrix, unsigned long seed, rondo_comm *comm,
                           char *sentence)
{
    rondo_result result = find_forms(comm, &matrix->list, sentence);

    if (!result)
        cases_choose(&matrix->list, seed);
    return result;
}

void matrix_init(struct matrix *matrix, unsigned long seed, char *sentence)
{
    static struct world_report report;

    if (world_run_processes(2, try_forms, &matrix->list, &report))
        snprintf(sentence, WORLD_SENTENCE, "%.*s", WORLD_SENTENCE - 1, report.summary);
    else
        cases_choose(&matrix->list, seed);
}
