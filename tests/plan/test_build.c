/* SPDX-License-Identifier: BSD-3-Clause */
/* test_build.c - the builder: programs, growth, and memory that runs out. */
#include "base/fail.h"
#include "plan/plan.h"

#include <criterion/criterion.h>
#include <string.h>

/* ---- Allocations of the builder pass here (-Wl,--wrap) --------------------------------------- */

void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

static int left = -1; /* allocations until one fails, -1: none does */

static bool fails(void)
{
    return left >= 0 && left-- == 0;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

static struct plan *open_plan(void)
{
    struct plan *plan = NULL;

    cr_assert(plan_open(RONDO_ALL_REDUCE, "trial", 4, 2, 1, &plan) == RONDO_OK);
    return plan;
}

Test(build, a_new_plan_has_one_empty_program_of_one_part)
{
    struct plan *plan = open_plan();

    cr_expect(plan->programs == 1 && plan->program[0].end == 0 && plan->parts == 1);
    cr_expect(plan->size == 4 && plan->rank == 2 && plan->root == 1);
    plan_close(plan);
    plan_close(NULL);
}

Test(build, programs_follow_each_other_and_address_messages_are_counted)
{
    struct plan *plan = open_plan();

    plan_notify(plan, 0, 0, PLAN_ADDRESSES);
    plan_await(plan, 0, 0, PLAN_ADDRESSES);
    plan_next_program(plan);
    plan_await(plan, 1, 1, 0);
    cr_expect(plan->programs == 2);
    cr_expect(plan->program[0].begin == 0 && plan->program[0].end == 4);
    cr_expect(plan->program[1].begin == 4 && plan->program[1].end == 6);
    cr_expect(plan->address_messages == 1);
    plan_close(plan);
}

Test(build, thousands_of_steps_keep_their_operands)
{
    enum { MANY = 5000 };
    struct plan *plan = open_plan();

    for (int i = 0; i < MANY; i++)
        plan_move(plan, 1, 0, PLAN_LIST(plan_input(plan, 0, i)),
                  PLAN_LIST(plan_output(plan, 0, i), plan_scratch(plan, i, 0)));
    cr_assert(plan->step_count == MANY && !plan->out_of_memory);
    for (uint32_t i = 0; i < MANY; i++) {
        cr_assert(plan_sources(plan, &plan->steps[i])->first == i);
        cr_assert(plan_destinations(plan, &plan->steps[i])[1].block == i);
    }
    plan_close(plan);
}

static bool build_some(struct plan *plan)
{
    for (int i = 0; i < 40; i++)
        plan_combine(plan, 1, 0, PLAN_LIST(plan_slot(1, 0), plan_input(plan, 0, i)),
                     PLAN_LIST(plan_slot(3, 0)));
    plan_await(plan, 1, 1, 0);
    return !plan->out_of_memory;
}

Test(build, memory_that_runs_out_anywhere_marks_the_plan_for_good)
{
    int failures = 0;

    for (int allowed = 0;; allowed++) {
        struct plan *plan = NULL;
        rondo_result result;

        left = allowed;
        result = plan_open(RONDO_REDUCE, "trial", 4, 2, 0, &plan);
        if (result) {
            cr_expect(result == RONDO_ERROR_MEMORY && !plan);
            cr_expect(strstr(fail_sentence(), "reduce"), "%s", fail_sentence());
            continue;
        }
        if (build_some(plan)) {
            left = -1;
            plan_close(plan);
            break;
        }
        failures++;
        left = -1;
        cr_expect(!build_some(plan), "once marked it stays so, also with memory again");
        plan_close(plan);
    }
    cr_expect(failures > 4, "only %d allocations failed", failures);
}
