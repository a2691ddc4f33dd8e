/* SPDX-License-Identifier: BSD-3-Clause */
/* test_file.c - plans as a text: what is written is read back, and what is no plan is refused. */
#include "tests/plan/verify_forms.h"

#include "base/fail.h"
#include "collectives/file/file.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static char *written(const struct forms *forms)
{
    char *text = NULL;
    size_t length;
    FILE *to = open_memstream(&text, &length);

    plan_file_write(forms->plans, forms->size, NULL, to);
    cr_assert_eq(fclose(to), 0);
    return text;
}

static void expect_same(const struct plan *a, const struct plan *b)
{
    cr_assert_eq(a->parts, b->parts);
    cr_assert_eq(a->message_atoms, b->message_atoms);
    cr_assert_eq(a->scratch_blocks, b->scratch_blocks);
    cr_assert_eq(a->address_messages, b->address_messages);
    cr_assert_eq(a->programs, b->programs);
    for (int p = 0; p < a->programs; p++) {
        cr_assert_eq(a->program[p].begin, b->program[p].begin);
        cr_assert_eq(a->program[p].end, b->program[p].end);
    }
    cr_assert_eq(a->step_count, b->step_count);
    cr_assert_eq(a->operand_count, b->operand_count);
    for (uint32_t s = 0; s < a->step_count; s++)
        cr_assert(!memcmp(&a->steps[s], &b->steps[s], sizeof(a->steps[s])), "step %u", s);
    for (uint32_t i = 0; i < a->operand_count; i++) {
        const struct plan_operand *one = &a->operands[i], *other = &b->operands[i];

        cr_assert(one->buffer == other->buffer && one->channel == other->channel &&
                      one->rank == other->rank && one->block == other->block &&
                      one->first == other->first,
                  "operand %u", i);
    }
}

static void go_round(const char *algorithm, rondo_collective collective, int size)
{
    struct plan_file *file = NULL;
    struct verify_report report;
    struct forms forms;
    unsigned promises = 0;
    char *text;

    if (!forms_make(algorithm, collective, size, 0, &forms))
        return;
    text = written(&forms);
    cr_assert(!plan_file_parse("text", text, strlen(text), &file), "%s", fail_sentence());
    cr_assert_eq(file->size, size);
    cr_assert_eq(file->collective, collective);
    cr_assert_str_eq(file->name, algorithm);
    for (int r = 0; r < size; r++)
        expect_same(forms.plans[r], file->plans[r]);
    if (forms_prove(&forms, true, &report))
        cr_assert(!file_prove(file, "text", 0, &report, &promises), "%s", fail_sentence());
    plan_file_close(file);
    free(text);
    forms_close(&forms);
}

Test(plan_file, every_plan_is_read_as_it_was_written)
{
    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_SEND; c++)
            for (int size = 1; size <= 7; size++)
                go_round(algorithms[i]->name, (rondo_collective)c, size);
}

Test(plan_file, what_a_file_promises_is_what_is_proved_of_it)
{
    struct plan_file *file = NULL;
    struct verify_report report;
    unsigned promises = 0;

    cr_assert(!file_read(PAIRS, &file), "%s", fail_sentence());
    cr_assert(!file_prove(file, PAIRS, 0, &report, &promises), "%s", fail_sentence());
    cr_assert_eq(promises, PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_IN_PLACE);
    plan_file_close(file);
}

Test(plan_file, the_same_file_is_one_algorithm_and_is_found_by_its_name)
{
    const struct algorithm *one = NULL, *two = NULL;

    cr_assert(!file_algorithm(PAIRS, &one), "%s", fail_sentence());
    cr_assert(!file_algorithm(PAIRS, &two), "%s", fail_sentence());
    cr_assert_eq(one, two);
    cr_assert_eq(algorithm_find(one->name), one);
    cr_assert(algorithm_has(one, RONDO_ALL_REDUCE, 4, 0));
    cr_assert(!algorithm_has(one, RONDO_ALL_REDUCE, 3, 0));
    cr_assert(!algorithm_has(one, RONDO_BROADCAST, 4, 0));
}

/* The plan is one rank's all_reduce, and its member `name` has this value. */
static void refuse_text(const char *text, const char *says)
{
    struct plan_file *file = NULL;

    cr_assert_eq(plan_file_parse("text", text, strlen(text), &file), RONDO_ERROR_INVALID, "%s",
                 text);
    cr_assert(strstr(fail_sentence(), says), "'%s' should say '%s'", fail_sentence(), says);
}

#define HEAD "{\"format\": \"rondo plan 1\", \"collective\": \"all_reduce\", \"algorithm\": \"a\","
#define ONE(steps)                                                                      \
    HEAD "\"ranks\": 1, \"message_atoms\": 0, \"plans\": [{\"rank\": 0, \"programs\": " \
         "[[" steps "]]}]}"

Test(plan_file, what_is_no_json_is_refused_with_its_line)
{
    refuse_text("\n", "line 2: there is nothing in it");
    refuse_text("{\n\"a\": 1,\n}", "line 3: there is a comma before a closing bracket");
    refuse_text("[1,]", "a comma before a closing bracket");
    refuse_text("[1, 2", "a comma or a closing bracket is missing");
    refuse_text("{} {}", "there is more behind the end");
    refuse_text("[[[[[[[[[[[[[[[[[[[[", "brackets are too deep");
    refuse_text("\"no end", "a string has no end");
    refuse_text("[01]", "no number");
    refuse_text("[1.]", "no digits");
    refuse_text("[1e]", "no exponent");
    refuse_text("{\"a\" 1}", "a colon is missing");
    refuse_text("{a: 1}", "in quotes");
    refuse_text("[nul]", "no value of JSON");
}

Test(plan_file, what_is_no_plan_is_refused_with_its_place)
{
    static const struct {
        const char *text, *says;
    } texts[] = {
        {"[]", "an object, { }, is wanted here"},
        {"{\"format\": \"rondo plan 2\"}", "\"format\" is \"rondo plan 1\""},
        {"{\"format\": \"rondo plan 1\", \"collective\": \"send\"}", "not the name of one"},
        {"{\"format\": \"rondo plan 1\", \"collective\": \"barrier\", \"algorithm\": \"../a\"}",
         "letters, digits"},
        {HEAD "\"rank\": 4}", "nothing is called \"rank\" here"},
        {HEAD "\"ranks\": 4}", "\"message_atoms\" is missing"},
        {HEAD "\"ranks\": 0, \"message_atoms\": 0}", "there have to be ranks"},
        {HEAD "\"ranks\": 512, \"parts\": 65535, \"message_atoms\": 0}", "are too many"},
        {HEAD "\"ranks\": 2, \"root\": 2, \"message_atoms\": 0}", "there is no rank 2 among 2"},
        {HEAD "\"ranks\": 2, \"root\": 1, \"message_atoms\": 0}", "all_reduce has no root"},
        {HEAD "\"ranks\": 2, \"message_atoms\": 0, \"plans\": []}",
         "\"ranks\" is 2, but \"plans\" lists 0"},
        {HEAD "\"ranks\": 1.5, \"message_atoms\": 0}", "no whole number"},
        {HEAD "\"ranks\": 1, \"message_atoms\": 0, \"plans\": [{\"rank\": 0}]}", "1 to 5 programs"},
        {ONE("{\"do\": \"move\"}"), "rank 0, step 0: \"do\" is \"combine\", "},
        {ONE("{\"do\": \"copy\", \"frm\": []}"),
         "nothing is called \"frm\" here; known are do, atoms, from, to, finish, balanced, text"},
        {ONE("{\"do\": \"copy\", \"from\": [{\"input\": 0}], \"to\": []}"),
         "1 to 3 operands, here of 0"},
        {ONE("{\"do\": \"copy\", \"from\": [{}], \"to\": [{\"output\": 0}]}"), "is one of input"},
        {ONE("{\"do\": \"reduce\", \"from\": [{\"input\": 0}], \"to\": [{\"output\": 0}]}"),
         "copy has one source"},
        {ONE("{\"do\": \"wait\", \"event\": \"data\"}"), "\"peer\" is missing"},
        {ONE("{\"do\": \"wait\", \"event\": \"rain\", \"peer\": 0}"), "\"data\" or \"credit\""},
        {ONE("{\"do\": \"wait\", \"event\": \"data\", \"peer\": 0, \"channel\": 5}"), "0 to 4"},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        refuse_text(texts[i].text, texts[i].says);
}

Test(plan_file, a_file_that_is_not_there_is_a_sentence)
{
    struct plan_file *file = NULL;

    cr_assert_eq(file_read("/nonexistent/plan", &file), RONDO_ERROR_INVALID);
    cr_assert(strstr(fail_sentence(), "/nonexistent/plan can't be read"), "%s", fail_sentence());
}
