/* SPDX-License-Identifier: BSD-3-Clause */
/* test_spans.c - the bookkeeping of pages against a map with one bit per page. */
#include "transport/memory/spans.h"

#include <criterion/criterion.h>
#include <stdint.h>

enum { PAGES = 300, LONGEST = 40, STEPS = 20000 };

struct model {
    size_t length[PAGES]; /* of the span that begins here */
    bool used[PAGES];
};

static uint64_t state = 88172645463325252u;

static size_t random_below(size_t bound)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (size_t)(state % bound);
}

static size_t model_first_fit(const struct model *model, size_t length, size_t multiple)
{
    for (size_t start = 0; start + length <= PAGES; start += multiple) {
        size_t page = start;

        while (page < start + length && !model->used[page])
            page++;
        if (page == start + length)
            return start;
    }
    return PAGES;
}

static void model_set(struct model *model, size_t start, size_t length, bool used)
{
    for (size_t page = start; page < start + length; page++)
        model->used[page] = used;
    model->length[start] = used ? length : 0;
}

static void take_and_compare(struct spans *spans, struct model *model)
{
    size_t length = 1 + random_below(LONGEST);
    size_t multiple = random_below(2) ? 1 : 16;
    size_t wanted = model_first_fit(model, length, multiple);
    size_t start =
        multiple == 1 ? spans_take(spans, length) : spans_take_at(spans, length, multiple);

    cr_assert(start == wanted, "%zu pages: at %zu, not at %zu", length, start, wanted);
    if (start < PAGES)
        model_set(model, start, length, true);
}

static void give_and_compare(struct spans *spans, struct model *model)
{
    size_t start = random_below(PAGES);
    size_t wanted = model->length[start];

    cr_assert(spans_length(spans, start) == wanted);
    cr_assert(spans_give(spans, start) == wanted, "page %zu", start);
    cr_assert(spans_length(spans, start) == 0);
    if (wanted)
        model_set(model, start, wanted, false);
}

Test(spans, agree_with_a_bitmap_for_any_order_of_taking_and_giving)
{
    struct spans spans = {.pages = PAGES};
    struct model model = {0};

    for (int step = 0; step < STEPS; step++) {
        if (random_below(4) == 0)
            take_and_compare(&spans, &model);
        else
            give_and_compare(&spans, &model);
    }
    for (size_t page = 0; page < PAGES; page++)
        cr_assert(spans_give(&spans, page) == model.length[page]);
    cr_expect(spans.count == 0);
    spans_done(&spans);
}

Test(spans, fill_every_hole_of_a_fragmented_heap)
{
    struct spans spans = {.pages = PAGES};

    for (size_t page = 0; page < PAGES; page++)
        cr_assert(spans_take(&spans, 1) == page);
    cr_assert(spans_take(&spans, 1) == PAGES, "more than there is");
    for (size_t page = 0; page < PAGES; page += 2)
        cr_assert(spans_give(&spans, page) == 1);
    cr_expect(spans_take(&spans, 2) == PAGES, "half is free, but nowhere two pages");
    for (size_t page = 0; page < PAGES; page += 2)
        cr_assert(spans_take(&spans, 1) == page);
    cr_expect(spans_take(&spans, 1) == PAGES);
    spans_done(&spans);
}

Test(spans, join_neighbours_that_are_given_back)
{
    struct spans spans = {.pages = 12};

    cr_assert(spans_take(&spans, 4) == 0 && spans_take(&spans, 4) == 4 &&
              spans_take(&spans, 4) == 8);
    cr_assert(spans_give(&spans, 4) == 4);
    cr_expect(spans_take(&spans, 5) == 12);
    cr_assert(spans_give(&spans, 0) == 4);
    cr_expect(spans_take(&spans, 8) == 0);
    spans_done(&spans);
}

Test(spans, exactly_all_fits_and_one_more_or_far_more_does_not)
{
    struct spans spans = {.pages = PAGES};

    cr_expect(spans_take(&spans, PAGES + 1) == PAGES);
    cr_expect(spans_take(&spans, SIZE_MAX) == PAGES);
    cr_expect(spans_take(&spans, PAGES) == 0);
    cr_expect(spans_length(&spans, 0) == PAGES);
    cr_expect(spans_length(&spans, 1) == 0, "a page inside of a span begins none");
    cr_expect(spans_give(&spans, 1) == 0);
    spans_done(&spans);
    cr_expect(spans.used == NULL && spans.count == 0);
}
