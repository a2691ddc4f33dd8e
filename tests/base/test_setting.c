/* SPDX-License-Identifier: BSD-3-Clause */
/* test_setting.c - the table of settings, and what is read from the environment by it. */
#include "base/setting.h"

#include "base/fail.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void clear_all(void)
{
    for (int id = 0; id < SETTINGS; id++)
        unsetenv(setting_at((enum setting_id)id)->name);
}

TestSuite(setting, .init = clear_all);

/* With a decimal comma, where localedef can make such a locale. */
Test(setting, numbers_have_a_point_in_any_locale)
{
    char folder[] = "/tmp/rondo-locale-XXXXXX", command[160];
    double seconds = 0;

    cr_assert_not_null(mkdtemp(folder));
    snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1",
             folder);
    setenv("LOCPATH", folder, 1);
    if (system(command) < 0 || !setlocale(LC_ALL, "de_DE.UTF-8"))
        cr_log_info("there is no locale with a comma here");
    setenv("RONDO_TIMEOUT", "2.5", 1);
    cr_expect_eq(setting_read_seconds(SETTING_TIMEOUT, &seconds), RONDO_OK, "%s", fail_sentence());
    cr_expect(seconds == 2.5, "%g", seconds);
    setenv("RONDO_TIMEOUT", "2,5", 1);
    cr_expect_neq(setting_read_seconds(SETTING_TIMEOUT, &seconds), RONDO_OK);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

Test(setting, every_row_is_complete_and_has_a_default_that_it_accepts)
{
    for (int id = 0; id < SETTINGS; id++) {
        const struct setting *row = setting_at((enum setting_id)id);

        cr_assert_not_null(row->name, "row %d is empty", id);
        cr_assert(!strncmp(row->name, "RONDO_", 6), "%s", row->name);
        cr_assert_eq(strspn(row->name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"), strlen(row->name));
        cr_assert_not_null(row->fallback, "%s", row->name);
        cr_assert(row->sentence && strlen(row->sentence) > 20, "%s", row->name);
        cr_assert_eq(row->sentence[strlen(row->sentence) - 1], '.', "%s", row->name);
        cr_assert_eq(setting_check((enum setting_id)id), RONDO_OK, "%s", fail_sentence());
        cr_assert(!setting_is_set((enum setting_id)id));
        if (row->type == SETTING_INT || row->type == SETTING_SIZE || row->type == SETTING_SECONDS)
            cr_assert_lt(row->least, row->most, "%s", row->name);
        for (int other = 0; other < id; other++)
            cr_assert_str_neq(row->name, setting_at((enum setting_id)other)->name);
    }
}

Test(setting, every_default_is_accepted_when_written_out)
{
    for (int id = 0; id < SETTINGS; id++) {
        const struct setting *row = setting_at((enum setting_id)id);

        setenv(row->name, row->fallback, 1);
        cr_assert_eq(setting_check((enum setting_id)id), RONDO_OK, "%s", fail_sentence());
    }
}

Test(setting, values_are_read_as_their_type_says)
{
    bool flag = false;
    long number = 0;
    size_t bytes = 0;
    double seconds = 0;

    setenv("RONDO_DETERMINISTIC", "1", 1);
    setenv("RONDO_SLOTS", "3", 1);
    setenv("RONDO_SLOT_BYTES", "64K", 1);
    setenv("RONDO_TIMEOUT", "2.5", 1);
    setenv("RONDO_ALGORITHM", "ring", 1);
    cr_assert_eq(setting_read_bool(SETTING_DETERMINISTIC, &flag), RONDO_OK);
    cr_assert_eq(setting_read_int(SETTING_SLOTS, &number), RONDO_OK);
    cr_assert_eq(setting_read_size(SETTING_SLOT_BYTES, &bytes), RONDO_OK);
    cr_assert_eq(setting_read_seconds(SETTING_TIMEOUT, &seconds), RONDO_OK);
    cr_assert(flag);
    cr_assert_eq(number, 3);
    cr_assert_eq(bytes, 65536);
    cr_assert_eq(seconds, 2.5);
    cr_assert_str_eq(setting_read_word(SETTING_ALGORITHM), "ring");
}

Test(setting, an_empty_variable_is_as_good_as_none)
{
    double seconds = 0;

    setenv("RONDO_TIMEOUT", "", 1);
    cr_assert(!setting_is_set(SETTING_TIMEOUT));
    cr_assert_eq(setting_read_seconds(SETTING_TIMEOUT, &seconds), RONDO_OK);
    cr_assert_eq(seconds, 300);
}

Test(setting, malformed_values_get_a_sentence_with_name_value_and_what_is_accepted)
{
    static const struct {
        enum setting_id id;
        const char *value, *accepted;
    } cases[] = {
        {SETTING_DETERMINISTIC, "maybe", "0 or 1"},
        {SETTING_DETERMINISTIC, "2", "0 or 1"},
        {SETTING_SLOTS, "0", "a whole number from 2 to 1024"},
        {SETTING_SLOTS, "8x", "a whole number"},
        {SETTING_SLOTS, " 8", "a whole number"},
        {SETTING_SLOTS, "99999999999999999999", "a whole number"},
        {SETTING_SLOT_BYTES, "64Q", "a size from 1024"},
        {SETTING_SLOT_BYTES, "-1", "a size"},
        {SETTING_SLOT_BYTES, "64KK", "a size"},
        {SETTING_SLOT_BYTES, "17179869184T", "a size"},
        {SETTING_SLOT_BYTES, "1", "a size"},
        {SETTING_TIMEOUT, "soon", "seconds"},
        {SETTING_TIMEOUT, "-1", "seconds from 0"},
        {SETTING_TIMEOUT, "nan", "seconds"},
        {SETTING_TIMEOUT, "inf", "seconds"},
        {SETTING_TIMEOUT, "0x10", "seconds"},
        {SETTING_TIMEOUT, "3s", "seconds"},
        {SETTING_CPU, "sse", "one of auto, plain, avx2, avx512, neon"},
        {SETTING_CPU, "avx", "one of"},
        {SETTING_CPU, "auto|plain", "one of"},
        {SETTING_BIND, "Core", "one of core, none"},
        {SETTING_RANK, "-2", "a whole number from -1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *name = setting_at(cases[i].id)->name;
        char part[80];

        clear_all();
        setenv(name, cases[i].value, 1);
        cr_assert_eq(setting_check(cases[i].id), RONDO_ERROR_INVALID, "%s=%s", name,
                     cases[i].value);
        snprintf(part, sizeof(part), "%s is '%s': accepted is ", name, cases[i].value);
        cr_assert(strstr(fail_sentence(), part), "'%s'", fail_sentence());
        cr_assert(strstr(fail_sentence(), cases[i].accepted), "'%s'", fail_sentence());
    }
}

Test(setting, a_malformed_value_leaves_the_output_alone)
{
    long number = 42;

    setenv("RONDO_SLOTS", "many", 1);
    cr_assert_eq(setting_read_int(SETTING_SLOTS, &number), RONDO_ERROR_INVALID);
    cr_assert_eq(number, 42);
}

Test(setting, sizes_have_units)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {{"0", 0},           {"7", 7},         {"64K", 65536},     {"64k", 65536},
                 {"4M", 4194304},    {"1G", 1u << 30}, {"1GiB", 1u << 30}, {"2KB", 2048},
                 {"1T", 1ull << 40}, {"007", 7}};
    static const char *const bad[] = {"", "K", "1 K", "+1", "1.5K", "1KiBs", "0x10", "1P", "K1"};
    size_t bytes = 1;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cr_assert_eq(setting_parse_size(cases[i].text, &bytes), RONDO_OK, "%s", cases[i].text);
        cr_assert_eq(bytes, cases[i].bytes, "%s is %zu", cases[i].text, bytes);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cr_assert_eq(setting_parse_size(bad[i], &bytes), RONDO_ERROR_INVALID, "%s", bad[i]);
        cr_assert(strstr(fail_sentence(), "64K"), "'%s'", fail_sentence());
    }
    cr_assert_eq(setting_parse_size(NULL, &bytes), RONDO_ERROR_INVALID);
}

/* ---- Names ---------------------------------------------------------------------------------- */

Test(setting, every_name_of_the_table_is_found_and_is_nearest_to_itself)
{
    for (int id = 0; id < SETTINGS; id++) {
        const struct setting *row = setting_at((enum setting_id)id);

        cr_assert_eq(setting_find(row->name), id, "%s", row->name);
        cr_assert_eq(setting_nearest(row->name), row, "%s", row->name);
    }
    cr_assert_eq(setting_find("RONDO_TIMOUT"), -1);
    cr_assert_eq(setting_find("RONDO_"), -1);
}

Test(setting, a_misspelt_name_is_near_to_what_it_means_and_others_to_none)
{
    static const char *const cases[][2] = {
        {"RONDO_TIMOUT", "RONDO_TIMEOUT"},
        {"RONDO_SLOT", "RONDO_SLOTS"},
        {"RONDO_LOGS", "RONDO_LOG"},
        {"RONDO_TRANSPROT", "RONDO_TRANSPORT"},
        {"RONDO_ALGORYTHM", "RONDO_ALGORITHM"},
        {"RONDO_TCP_TIMEOT", "RONDO_TCP_TIMEOUT"},
        {"RONDO_TYPO", NULL},
        {"RONDO_", NULL},
        {"RONDO_DDP", NULL},
        {"RONDO_COLOUR_OF_THE_SKY", NULL},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct setting *nearest = setting_nearest(cases[i][0]);
        const char *name = nearest ? nearest->name : "none", *wanted = cases[i][1];

        cr_expect_str_eq(name, wanted ? wanted : "none", "%s", cases[i][0]);
    }
}

/* Returns what two calls say on stderr. */
static const char *told(void)
{
    static char text[4096];
    int ends[2];
    ssize_t length;

    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    setting_warn_of_strangers();
    setting_warn_of_strangers();
    cr_assert_eq(write(STDERR_FILENO, "end", 3), 3);
    length = read(ends[0], text, sizeof(text) - 1);
    cr_assert_gt(length, 0);
    text[length] = '\0';
    return text;
}

Test(setting, names_that_no_setting_has_are_told_once)
{
    char longest[300] = "RONDO_";

    memset(longest + 6, 'X', sizeof(longest) - 7);
    setenv("RONDO_TIMEOUT", "7", 1);
    setenv("RONDO_TIMOUT", "7", 1);
    setenv("RONDO_SLOT", "", 1);
    setenv(longest, "1", 1);
    cr_expect_str_eq(
        told(),
        "rondo warn: RONDO_TIMOUT is no setting of Rondo; did you mean RONDO_TIMEOUT?\nend");
}

Test(setting, a_name_that_is_near_to_none_is_told_with_the_place_of_the_list)
{
    setenv("RONDO_COLOUR_OF_THE_SKY", "blue", 1);
    cr_expect_str_eq(told(), "rondo warn: RONDO_COLOUR_OF_THE_SKY is no setting of Rondo; "
                             "docs/configuration.md has the list\nend");
}

Test(setting, nothing_is_told_of_names_without_a_log)
{
    setenv("RONDO_LOG", "none", 1);
    setenv("RONDO_TIMOUT", "7", 1);
    cr_expect_str_eq(told(), "end");
}
