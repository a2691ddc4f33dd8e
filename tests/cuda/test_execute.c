/* SPDX-License-Identifier: BSD-3-Clause */
/* test_execute.c - plans run by the kernel give what the host's executor gives. */
#include "base/collective.h"
#include "base/fail.h"
#include "cuda/kernels/execution.h"
#include "tests/cuda/rehearsal.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>

/* Sums, maxima, averages, and sums of scaled inputs. */
static struct kernel_op draw_op(int turn, int size)
{
    struct kernel_op op = {.type = (rondo_type)(turn * 5 % RONDO_TYPES),
                           .function = turn % 3 ? KERNEL_SUM : KERNEL_MAX,
                           .has_scale = turn % 3 == 2,
                           .divisor = turn % 4 == 1 ? (unsigned)size : 0,
                           .restore = 16};

    if (kernel_can(op.type, KERNEL_BAND))
        op.scale.natural = 3;
    else
        op.scale.real = 0.75;
    return op;
}

/* Every form of every algorithm over the same links, with counts and types in turn. */
static const char *run_matrix(int size, const struct cuda_devcomm_shape *shape)
{
    static const size_t counts[] = {1, 37, 1000, 0, 5, 2111};
    struct troupe troupe;
    const char *complaint = NULL;
    int turn = size;

    if (!troupe_open(&troupe, size, shape))
        return fail_sentence();
    for (int i = 0; algorithms[i] && !complaint; i++)
        for (int c = 0; c < RONDO_COLLECTIVES && !complaint; c++)
            for (int round = 0; round < 3 && !complaint; round++, turn++) {
                struct rehearsal rehearsal = {
                    .algorithm = algorithms[i],
                    .collective = (rondo_collective)c,
                    .root = collective_has_root((rondo_collective)c) ? turn % size : 0,
                    .op = draw_op(turn, size),
                    .count = counts[turn % 6],
                    .blocks = 1,
                    .repeat = 1 + turn % 2,
                    .random = (uint64_t)turn};

                if (!algorithms[i]->forms[c].write || collective_is_pair((rondo_collective)c))
                    continue;
                complaint = rehearse(&troupe, &rehearsal);
            }
    troupe_close(&troupe);
    return complaint;
}

ParameterizedTestParameters(cuda_execute, every_plan_gives_what_it_gives_on_the_host)
{
    static int sizes[] = {1, 2, 3, 4, 5, 8};

    return cr_make_param_array(int, sizes, sizeof(sizes) / sizeof(sizes[0]));
}

ParameterizedTest(int *size, cuda_execute, every_plan_gives_what_it_gives_on_the_host)
{
    const struct cuda_devcomm_shape shape = {
        .slots = 2 + *size % 3, .slot_bytes = 16384, .regions_known = *size % 2 ? 2 : 0};
    const char *complaint = run_matrix(*size, &shape);

    cr_assert(!complaint, "%s", complaint);
}

Test(cuda_execute, small_slots_and_numbers_that_wrap_make_no_difference)
{
    const struct cuda_devcomm_shape shape = {
        .slots = 8, .slot_bytes = 1024, .start = UINT32_MAX - 7};
    const char *complaint = run_matrix(3, &shape);

    cr_assert(!complaint, "%s", complaint);
}

/* A message's flag may be seen before its words are, which then must not pass for it. */
Test(cuda_execute, words_of_an_empty_inbox_have_no_number_that_is_to_come)
{
    const struct cuda_devcomm_shape shape = {
        .slots = 8, .slot_bytes = 1024, .start = UINT32_MAX - 7};
    size_t links = 2 * PLAN_CHANNELS, bytes, taken = 0;
    struct troupe troupe;
    CUdeviceptr inbox;
    char *copy;

    cr_assert(troupe_open(&troupe, 2, &shape), "%s", fail_sentence());
    inbox = cuda_devcomm_inbox(troupe.devcomms[0], &bytes);
    copy = malloc(bytes);
    cr_assert(copy && gpu_download(&troupe.gpu, copy, inbox, bytes), "%s", fail_sentence());
    for (size_t i = 0; i < links * CUDA_PACKED_ROOM; i++) {
        const struct cuda_packed *entry =
            (const struct cuda_packed *)(void *)(copy + links * sizeof(struct link_credit)) + i;

        for (int k = 0; k < CUDA_PACKED_WORDS; k++)
            for (int half = 0; half < 2; half++)
                taken += (uint32_t)entry->words[k].halves[half] - shape.start - 1 < 8;
    }
    free(copy);
    troupe_close(&troupe);
    cr_assert_eq(taken, 0, "%zu halves of words", taken);
}
