/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sampler.c - samplers against the rules of PyTorch's DistributedSampler, written down as
 * lists. */
#include <rondo/train.h>

#include <criterion/criterion.h>
#include <stdbool.h>
#include <string.h>

enum { SAMPLES = 40, RANKS = 7, LIST = 64 };

static rondo_sampler *open_sampler(size_t samples, int rank, int size, bool shuffle, bool drop_last)
{
    rondo_sampler_config config = {.struct_size = sizeof(config),
                                   .samples = samples,
                                   .rank = rank,
                                   .size = size,
                                   .shuffle = shuffle,
                                   .drop_last = drop_last,
                                   .seed = 7};
    rondo_sampler *sampler = NULL;

    cr_assert_eq(rondo_sampler_open(&config, &sampler), RONDO_OK, "%s", rondo_ddp_last_error());
    return sampler;
}

static size_t take_all(rondo_sampler *sampler, size_t *list)
{
    size_t taken = 0, some;

    while ((some = rondo_sampler_next(sampler, 3, list + taken)) > 0)
        taken += some;
    return taken;
}

/* The order of an epoch is what a single rank takes. */
static void order_of(size_t samples, bool shuffle, uint64_t epoch, size_t *ret_order)
{
    rondo_sampler *alone = open_sampler(samples, 0, 1, shuffle, false);

    rondo_sampler_set_epoch(alone, epoch);
    cr_assert_eq(take_all(alone, ret_order), samples);
    rondo_sampler_close(alone);
}

/* indices = order, padded by repetition or cut; indices[rank : total : size] */
static size_t pytorch(const size_t *order, size_t samples, bool drop_last, size_t *ret_list)
{
    size_t rank = ret_list[0], size = ret_list[1];
    size_t each = drop_last && samples % size ? samples / size : (samples + size - 1) / size;
    size_t list[2 * LIST], total = each * size, length = samples < total ? samples : total;

    memcpy(list, order, length * sizeof(*list));
    while (length < total) { /* indices += indices[:padding], as often as it takes */
        size_t some = total - length < samples ? total - length : samples;

        memcpy(list + length, order, some * sizeof(*list));
        length += some;
    }
    for (size_t i = 0; i < each; i++)
        ret_list[i] = list[rank + i * size];
    return each;
}

static void compare_all(bool shuffle, bool drop_last)
{
    for (size_t samples = 0; samples <= SAMPLES; samples++)
        for (int size = 1; size <= RANKS; size++)
            for (int rank = 0; rank < size; rank++) {
                size_t order[LIST], wanted[LIST], got[LIST], count;
                rondo_sampler *sampler = open_sampler(samples, rank, size, shuffle, drop_last);

                order_of(samples, shuffle, 3, order);
                wanted[0] = (size_t)rank;
                wanted[1] = (size_t)size;
                count = samples ? pytorch(order, samples, drop_last, wanted) : 0;
                rondo_sampler_set_epoch(sampler, 3);
                cr_assert_eq(rondo_sampler_count(sampler), count);
                cr_assert_eq(take_all(sampler, got), count);
                cr_assert_arr_eq(got, wanted, count * sizeof(*got), "rank %d of %d, %zu samples",
                                 rank, size, samples);
                rondo_sampler_close(sampler);
            }
}

Test(sampler, takes_what_pytorch_takes_in_order)
{
    compare_all(false, false);
}

Test(sampler, takes_what_pytorch_takes_in_order_and_drops_the_last)
{
    compare_all(false, true);
}

Test(sampler, takes_what_pytorch_takes_out_of_a_shuffled_order)
{
    compare_all(true, false);
    compare_all(true, true);
}

Test(sampler, seven_samples_on_three_ranks_are_filled_up_from_the_beginning)
{
    static const size_t wanted[3][3] = {{0, 3, 6}, {1, 4, 0}, {2, 5, 1}};

    for (int rank = 0; rank < 3; rank++) {
        rondo_sampler *sampler = open_sampler(7, rank, 3, false, false);
        size_t got[LIST];

        cr_assert_eq(take_all(sampler, got), 3);
        cr_assert_arr_eq(got, wanted[rank], sizeof(wanted[rank]));
        rondo_sampler_close(sampler);
    }
}

Test(sampler, an_order_is_a_permutation_and_differs_from_epoch_to_epoch)
{
    size_t before[LIST] = {0}, order[LIST];

    for (uint64_t epoch = 0; epoch < 20; epoch++) {
        bool seen[SAMPLES] = {false};

        order_of(SAMPLES, true, epoch, order);
        for (size_t i = 0; i < SAMPLES; i++) {
            cr_assert_lt(order[i], (size_t)SAMPLES);
            cr_assert(!seen[order[i]], "%zu twice", order[i]);
            seen[order[i]] = true;
        }
        cr_assert(memcmp(order, before, sizeof(size_t) * SAMPLES) != 0);
        memcpy(before, order, sizeof(size_t) * SAMPLES);
    }
}

Test(sampler, every_sample_comes_first_about_equally_often)
{
    int first[4] = {0};
    size_t order[LIST];

    for (uint64_t epoch = 0; epoch < 4000; epoch++) {
        order_of(4, true, epoch, order);
        first[order[0]]++;
    }
    for (int i = 0; i < 4; i++)
        cr_assert(first[i] > 850 && first[i] < 1150, "%d came first %d times", i, first[i]);
}

Test(sampler, goes_on_exactly_where_it_was)
{
    rondo_sampler *sampler = open_sampler(31, 1, 3, true, false);
    rondo_sampler *later = open_sampler(31, 1, 3, true, false);
    size_t skipped[LIST], wanted[LIST], got[LIST], count;

    rondo_sampler_set_epoch(sampler, 5);
    cr_assert_eq(rondo_sampler_next(sampler, 4, skipped), 4);
    cr_assert_eq(rondo_sampler_seek(later, rondo_sampler_tell(sampler)), RONDO_OK);
    count = take_all(sampler, wanted);
    cr_assert_eq(count, rondo_sampler_count(sampler) - 4);
    cr_assert_eq(take_all(later, got), count);
    cr_assert_arr_eq(got, wanted, count * sizeof(*got));
    rondo_sampler_close(sampler);
    rondo_sampler_close(later);
}

Test(sampler, an_epoch_that_is_over_starts_again_in_the_same_order)
{
    rondo_sampler *sampler = open_sampler(20, 1, 3, true, false);
    size_t first[LIST], again[LIST], count = take_all(sampler, first);

    cr_assert_eq(count, 7);
    cr_assert_eq(take_all(sampler, again), count);
    cr_assert_arr_eq(first, again, count * sizeof(*first));
    rondo_sampler_close(sampler);
}

/* Ranks come and go after some of the steps; in each, all of them take up to 3 samples. */
static void take_an_epoch_in_parts(size_t samples, uint64_t epoch, uint64_t *state)
{
    int taken[SAMPLES] = {0};
    size_t done = 0;

    while (done < samples) {
        int size = 1 + (int)((*state = *state * 6364136223846793005u + 1) >> 33) % RANKS;
        int steps = 1 + (int)((*state = *state * 6364136223846793005u + 1) >> 33) % 3;
        uint64_t after = 0;

        for (int rank = 0; rank < size; rank++) {
            rondo_sampler_config config = {sizeof(config), samples, 0, 1, 1, 0, 7, 1};
            rondo_sampler *sampler;
            size_t got[LIST];

            cr_assert_eq(rondo_sampler_open(&config, &sampler), RONDO_OK);
            cr_assert_eq(rondo_sampler_divide(sampler, rank, size, epoch, done), RONDO_OK);
            for (int step = 0; step < steps; step++) {
                size_t left = rondo_sampler_count(sampler) - rondo_sampler_tell(sampler).taken;
                size_t wanted = left < 3 ? left : 3;

                cr_assert_eq(rondo_sampler_next(sampler, wanted, got), wanted);
                for (size_t i = 0; i < wanted; i++)
                    taken[got[i]]++;
            }
            if (rank == 0) /* it has as many as any */
                after = rondo_sampler_done(sampler);
            rondo_sampler_close(sampler);
        }
        done = after;
    }
    for (size_t i = 0; i < samples; i++)
        cr_assert_eq(taken[i], 1, "sample %zu of %zu was taken %d times", i, samples, taken[i]);
}

Test(sampler, no_sample_is_lost_or_taken_twice_when_ranks_come_and_go)
{
    uint64_t state = 1;

    for (size_t samples = 1; samples <= SAMPLES; samples++)
        for (uint64_t epoch = 0; epoch < 10; epoch++)
            take_an_epoch_in_parts(samples, epoch, &state);
}

Test(sampler, after_an_epoch_in_parts_the_next_one_is_divided_as_a_whole)
{
    rondo_sampler *sampler = open_sampler(20, 0, 4, true, false);
    size_t got[LIST];

    cr_assert_eq(rondo_sampler_divide(sampler, 1, 2, 0, 15), RONDO_OK);
    cr_assert_eq(rondo_sampler_count(sampler), 3); /* the order's beginning fills it up */
    cr_assert_eq(take_all(sampler, got), 3);
    cr_assert_eq(rondo_sampler_count(sampler), 10);
    cr_assert_eq(rondo_sampler_divide(sampler, 2, 2, 0, 15), RONDO_ERROR_INVALID);
    cr_assert_eq(rondo_sampler_divide(sampler, 1, 2, 0, 21), RONDO_ERROR_INVALID);
    rondo_sampler_close(sampler);
}

Test(sampler, a_position_of_other_data_is_refused)
{
    rondo_sampler *sampler = open_sampler(9, 0, 3, true, false);
    rondo_sampler_position position = {.epoch = 1, .taken = 4};

    cr_assert_eq(rondo_sampler_seek(sampler, position), RONDO_ERROR_INVALID);
    cr_assert(strstr(rondo_ddp_last_error(), "more than the 3"), "%s", rondo_ddp_last_error());
    rondo_sampler_close(sampler);
}

Test(sampler, a_rank_that_does_not_exist_is_refused)
{
    rondo_sampler_config config = {
        .struct_size = sizeof(config), .samples = 1, .rank = 2, .size = 2};
    rondo_sampler *sampler = NULL;

    cr_assert_eq(rondo_sampler_open(&config, &sampler), RONDO_ERROR_INVALID);
    cr_assert_null(sampler);
    cr_assert(strstr(rondo_ddp_last_error(), "no rank 2 of 2"));
}
