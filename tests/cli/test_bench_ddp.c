/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_ddp.c - what `rondo bench ddp` says of trainings; none of them ever ran. */
#include "cli/bench/ddp/ddp.h"

#include "tests/cli/written.h"

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct bench_ddp_options options = {.world_count = 2, .steps = 60};
static struct bench_ddp_result result;

/* Three rounds on one rank, and on two. */
static void set_speeds(const double *one, const double *two)
{
    result = (struct bench_ddp_result){.options = &options, .rounds = 3};
    for (int i = 0; i < 2; i++)
        result.worlds[i].ranks = i + 1;
    for (int round = 0; round < 3; round++) {
        result.worlds[0].runs[round] = (struct bench_record){
            .tokens_per_s = one[round], .step_s = 0.01, .hidden = -1, .bytes_per_step = 1000};
        result.worlds[1].runs[round] = (struct bench_record){.tokens_per_s = two[round],
                                                             .step_s = 0.01,
                                                             .waiting = 0.1,
                                                             .hidden = 0.9,
                                                             .bytes_per_step = 1000};
    }
}

static char *printed(void)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    bench_ddp_print(&result, to);
    fclose(to);
    return text;
}

static json_t *warnings_of_json(void)
{
    json_t *json, *warnings;
    char *text;

    options.bench.json = written_path();
    cr_assert_eq(bench_ddp_write(&result), 0);
    text = written_take(options.bench.json);
    json = json_loads(text, 0, NULL);
    free(text);
    cr_assert_not_null(json);
    warnings = json_incref(json_object_get(json, "warnings"));
    json_decref(json);
    return warnings;
}

Test(bench_ddp, an_efficiency_above_100_percent_is_warned_of)
{
    static const double one[] = {1000, 500, 400}, two[] = {2000, 2240, 1900};
    json_t *warnings;
    char *text;

    set_speeds(one, two);
    text = printed();
    cr_expect(strstr(text, "224.0 %"), "%s", text);
    cr_expect(strstr(text, "# warning: 224.0 % efficiency on 2 ranks is more than there can be: 1 "
                           "rank, which it is compared with, had 400 to 1000 tokens/s"),
              "%s", text);
    warnings = warnings_of_json();
    cr_expect_eq(json_array_size(warnings), 1);
    cr_expect(strstr(json_string_value(json_array_get(warnings, 0)), "224.0 % efficiency"));
    json_decref(warnings);
    free(text);
}

Test(bench_ddp, the_picture_has_the_best_speed_up_and_what_a_step_is_made_of)
{
    static const double one[] = {1000, 1000, 1000}, two[] = {1700, 1900, 1500};
    static const char *const texts[] = {"</svg>",      "Speed-up",      "measured",
                                        "best",        "computing",     "waiting for others",
                                        "90 % hidden", "3 rounds of 60"};
    char *text;

    if (system("gnuplot --version >/dev/null 2>&1"))
        cr_skip_test("gnuplot is not installed");
    set_speeds(one, two);
    options.bench.json = NULL;
    options.bench.plot = "/tmp/test-bench-ddp.svg";
    cr_assert_eq(bench_ddp_write(&result), 0);
    text = written_take(options.bench.plot);
    options.bench.plot = NULL;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        cr_expect(strstr(text, texts[i]), "%s", texts[i]);
    free(text);
}

/* The printed figure counts: one that rounds to 100.0 % is no more. */
Test(bench_ddp, an_efficiency_of_100_percent_is_not)
{
    static const double one[] = {1000, 1000, 1000}, two[] = {1900, 2000.9, 2005};
    json_t *warnings;
    char *text;

    set_speeds(one, two);
    text = printed();
    cr_expect(strstr(text, "100.0 %") && !strstr(text, "warning"), "%s", text);
    warnings = warnings_of_json();
    cr_expect(json_is_array(warnings) && json_array_size(warnings) == 0);
    json_decref(warnings);
    free(text);
}
