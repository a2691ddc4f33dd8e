/* SPDX-License-Identifier: BSD-3-Clause */
/* test_bench_record.c - the writers of a record: CSV, JSON, columns, files that cannot be. */
#include "cli/bench/record.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VIEW "library,ranks,in_place,median_us,algbw_GBps,wrong"

static const struct bench_record known = {.library = "rondo",
                                          .ranks = 4,
                                          .in_place = true,
                                          .available = true,
                                          .median_us = 12.34567,
                                          .algbw_GBps = 1.5,
                                          .wrong = 0};
static const struct bench_record unknown = {
    .available = true, .median_us = NAN, .algbw_GBps = NAN, .wrong = BENCH_UNKNOWN};

static const char *csv_of(const struct bench_record *record, char *text, size_t room)
{
    FILE *memory = fmemopen(text, room, "w");

    bench_record_csv(record, VIEW, memory);
    fclose(memory);
    return text;
}

Test(bench_record, csv_has_the_fields_of_its_view_and_nothing_where_nothing_is_known)
{
    char text[256] = "";

    cr_expect_str_eq(csv_of(&known, text, sizeof(text)), "rondo,4,1,12.3457,1.500000,0");
    cr_expect_str_eq(csv_of(&unknown, text, sizeof(text)), ",0,0,,,");
}

Test(bench_record, texts_with_a_comma_or_a_quote_are_quoted_in_csv)
{
    struct bench_record record = known;
    char text[256] = "";

    record.library = "Rondo, of \"here\"";
    cr_expect_str_eq(csv_of(&record, text, sizeof(text)),
                     "\"Rondo, of \"\"here\"\"\",4,1,12.3457,1.500000,0");
}

Test(bench_record, the_machine_is_told_with_what_rondo_was_told_but_the_secret)
{
    struct bench_record record = {0}, peer = {.version = "Open MPI v4.1.4"};
    json_t *json, *settings;

    setenv("RONDO_SLOTS", "3", 1);
    setenv("RONDO_SECRET", "nobody knows", 1);
    bench_machine_begin();
    setenv("RONDO_SLOT_BYTES", "1", 1); /* as a run does */
    bench_machine_add(&record);
    bench_machine_add(&peer);
    cr_expect_str_eq(record.version, "Rondo 0.1.0");
    cr_expect_str_eq(peer.version, "Open MPI v4.1.4");
    cr_expect_eq(record.processors, sysconf(_SC_NPROCESSORS_ONLN));
    cr_expect(strstr(record.environment, "RONDO_SLOTS=3"), "%s", record.environment);
    cr_expect_not(strstr(record.environment, "SECRET"), "%s", record.environment);
    cr_expect_not(strstr(record.environment, "RONDO_SLOT_BYTES"), "%s", record.environment);
    cr_expect_geq(record.load, 0);
    cr_expect_eq(strlen(record.date), strlen("2026-01-31T23:59:59Z"), "%s", record.date);
    json = bench_machine_json();
    settings = json_object_get(json, "settings");
    cr_expect_str_eq(json_string_value(json_object_get(settings, "RONDO_SLOTS")), "3");
    cr_expect_null(json_object_get(settings, "RONDO_SECRET"));
    cr_expect_null(json_object_get(settings, "RONDO_SLOT_BYTES"));
    json_decref(json);
}

Test(bench_record, json_has_the_same_and_null_where_nothing_is_known)
{
    json_t *json = bench_record_json(&known, VIEW);
    char *text = json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(7));

    cr_expect_str_eq(text, "{\"library\":\"rondo\",\"ranks\":4,\"in_place\":true,"
                           "\"median_us\":12.34567,\"algbw_GBps\":1.5,\"wrong\":0}");
    free(text);
    json_decref(json);
    json = bench_record_json(&unknown, "library,median_us,wrong");
    text = json_dumps(json, JSON_COMPACT);
    cr_expect_str_eq(text, "{\"library\":null,\"median_us\":null,\"wrong\":null}");
    free(text);
    json_decref(json);
}

/* Headings, units and a line of these columns. */
static void print_table(const struct bench_record *record, char *text, size_t room)
{
    static const struct bench_column columns[] = {
        {"ranks", "ranks", .width = 5},
        {"median_us", "time", "(ms)", .width = 9, .places = 2, .scale = 1e-3, .suffix = " ms"},
        {"algbw_GBps", "algbw", .width = 6, .places = BENCH_FOUR_FIGURES},
        {"wrong", "#wrong", .width = 6, .unknown = "N/A"},
        {0},
    };
    FILE *memory = fmemopen(text, room, "w");

    bench_columns_head(columns, "#", NULL, memory);
    fputs("\n", memory);
    bench_columns_units(columns, "#", memory);
    fputs("\n", memory);
    bench_columns_print(columns, " ", record, memory);
    fclose(memory);
}

Test(bench_record, columns_stand_below_their_headings_and_units)
{
    struct bench_record absent = unknown;
    char text[256] = "";

    print_table(&known, text, sizeof(text));
    cr_expect_str_eq(text, "#ranks      time  algbw #wrong\n"
                           "#           (ms)              \n"
                           "     4   0.01 ms  1.500      0");
    print_table(&unknown, text, sizeof(text));
    cr_expect(strstr(text, "     0       n/a    n/a    N/A"), "%s", text);
    absent.available = false;
    print_table(&absent, text, sizeof(text));
    cr_expect(strstr(text, "     0       n/a    n/a    n/a"), "%s", text);
}

static void print_line(const void *result, FILE *to)
{
    fputs("line\n", to);
}

static json_t *make_nothing(const void *result)
{
    return json_object();
}

Test(bench_record, a_file_that_cannot_be_written_is_an_error)
{
    static const struct bench_writers writers = {"rondo bench", print_line, make_nothing,
                                                 print_line};
    static struct bench_options csv = {.csv = "/nowhere/at/all.csv"};
    static struct bench_options json = {.json = "/nowhere/at/all.json"};
    static struct bench_options plot = {.plot = "/nowhere/at/all.svg"}, none;

    cr_expect(bench_write_files(&writers, &csv, NULL));
    cr_expect(bench_write_files(&writers, &json, NULL));
    cr_expect(bench_write_files(&writers, &plot, NULL));
    cr_expect_not(bench_write_files(&writers, &none, NULL));
}

Test(bench_record, nothing_to_draw_is_an_error_too)
{
    static const struct bench_writers writers = {"rondo bench", print_line, make_nothing, NULL};
    static struct bench_options plot = {.plot = "/tmp/never-written.svg"};

    cr_expect(bench_write_files(&writers, &plot, NULL));
}
