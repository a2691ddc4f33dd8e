/* SPDX-License-Identifier: BSD-3-Clause */
/* test_world.c - can the test data fail? Reduces by hand, then breaks the result in one place. */
#include "../world.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 3000 };

/* The reduction over ranks of one element, in double; good for the values that floats get. */
static double reduce_reals(const struct world_data *data, char *const *inputs, size_t at)
{
    double result = world_load(data->type, inputs[0] + at);

    for (int r = 1; r < data->size; r++) {
        double value = world_load(data->type, inputs[r] + at);

        if (data->op == RONDO_PROD)
            result *= value;
        else if (data->op == RONDO_MIN || data->op == RONDO_MAX)
            result = data->op == RONDO_MIN ? fmin(result, value) : fmax(result, value);
        else
            result += value;
    }
    return result;
}

static void check_type(const struct world_data *data)
{
    size_t bytes = rondo_type_size(data->type);
    char sentence[WORLD_SENTENCE] = "", *inputs[WORLD_RANKS], *output = calloc(COUNT, bytes);

    for (int r = 0; r < data->size; r++) {
        inputs[r] = calloc(COUNT, bytes);
        world_fill(data, r, COUNT, inputs[r]);
    }
    for (size_t i = 0; i < COUNT; i++)
        world_store(data->type, output + i * bytes, reduce_reals(data, inputs, i * bytes));
    cr_expect(world_check_reduced(data, 0, COUNT, output, sentence), "%s op %d n %d: %s",
              rondo_type_name(data->type), data->op, data->size, sentence);
    output[(COUNT - 1) * bytes + bytes - 1] ^= 1;
    cr_expect(!world_check_reduced(data, 0, COUNT, output, sentence), "a wrong end was accepted");
    for (int r = 0; r < data->size; r++)
        free(inputs[r]);
    free(output);
}

Test(world, float_data_is_exact_in_every_type_and_a_wrong_bit_is_seen)
{
    for (int type = 0; type < RONDO_TYPES; type++)
        for (rondo_op op = RONDO_SUM; op <= RONDO_MAX; op++)
            for (int size = 1; size <= 40 && world_is_float((rondo_type)type); size += 3) {
                struct world_data data = {(rondo_type)type, op, size, (uint64_t)size};

                check_type(&data);
            }
}

Test(world, moved_data_differs_by_rank_and_place)
{
    struct world_data data = {RONDO_UINT16, WORLD_MOVED, 4, 9};
    char sentence[WORLD_SENTENCE] = "";
    uint16_t values[COUNT];

    world_fill(&data, 2, COUNT, values);
    cr_expect(world_check_moved(&data, 2, 0, COUNT, values, sentence));
    cr_expect(world_check_moved(&data, 2, 1500, 100, values + 1500, sentence));
    cr_expect(!world_check_moved(&data, 1, 0, COUNT, values, sentence));
    cr_expect(!world_check_moved(&data, 2, 1, COUNT - 1, values, sentence));
    values[COUNT - 1] ^= 0x8000;
    cr_expect(!world_check_moved(&data, 2, 0, COUNT, values, sentence));
    cr_expect(strstr(sentence, "element"), "%s", sentence);
}

Test(world, integer_results_wrap_and_averages_are_truncated)
{
    struct world_data data = {RONDO_INT8, RONDO_AVG, 7, 3};
    char sentence[WORLD_SENTENCE] = "";
    int8_t inputs[7][100], output[100];

    for (int r = 0; r < 7; r++)
        world_fill(&data, r, 100, inputs[r]);
    for (int i = 0; i < 100; i++) {
        int sum = 0;

        for (int r = 0; r < 7; r++)
            sum += inputs[r][i];
        cr_assert(sum >= -128 && sum <= 127);
        output[i] = (int8_t)(sum / 7);
    }
    cr_expect(world_check_reduced(&data, 0, 100, output, sentence), "%s", sentence);
    output[50]++;
    cr_expect(!world_check_reduced(&data, 0, 100, output, sentence));
}
