/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_bench_output.c - files of `rondo bench`: refused before anything is measured, whole after
 * every size, kept when the user has had enough.
 */
#include "tests/cli/bench_run.h"
#include "tests/cli/written.h"

#include "cli/bench/report.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHORT "all_reduce -n 2 --bytes 8,64 --seconds 0.01 --rounds 2 "

/* Nothing was started: the table has no line. */
static void expect_refused(const char *words, int status, const char *sentence)
{
    char line[256];
    struct run *run;

    snprintf(line, sizeof(line), SHORT "%s", words);
    run = bench(TEST_WORKERS, line);
    cr_expect_eq(run->status, status, "%s: %d, %s", words, run->status, run->err);
    cr_expect(strstr(run->err, sentence), "%s: %s", words, run->err);
    cr_expect_str_empty(run->out, "%s", words);
    free(run);
}

Test(bench_output, a_file_that_cannot_be_written_is_an_error_before_anything_is_measured)
{
    expect_refused("--csv /nowhere/at/all.csv", 1,
                   "cannot write /nowhere/at/all.csv: No such file");
    expect_refused("--json /nowhere/at/all.json", 1, "cannot write /nowhere/at/all.json: No such");
    expect_refused("--plot /nowhere/at/all.svg", 1, "cannot write /nowhere/at/all.svg: No such");
}

Test(bench_output, a_picture_that_is_not_svg_is_refused)
{
    expect_refused("--plot /tmp/speed.png", 2, "--plot draws SVG only: name a FILE.svg");
}

Test(bench_output, stdout_is_for_one_of_them)
{
    expect_refused("--csv - --json -", 2, "stdout is for one of --csv and --json");
}

Test(bench_output, json_on_stdout_is_clean_of_text)
{
    struct run *run = bench(TEST_WORKERS, SHORT "--json -");
    json_t *all = json_loads(run->out, 0, NULL);
    json_t *machine = json_object_get(all, "machine");
    json_t *row = json_array_get(json_object_get(all, "rows"), 0);

    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_assert(all, "%s", run->out);
    cr_expect(json_is_true(json_object_get(all, "complete")));
    cr_expect_eq(json_array_size(json_object_get(machine, "load")), 3);
    cr_expect(json_is_real(json_object_get(machine, "stolen_percent")));
    cr_expect_eq(json_array_size(json_object_get(row, "rounds_us")), 2);
    cr_expect_geq(json_real_value(json_object_get(row, "p99_us")),
                  json_real_value(json_object_get(row, "p95_us")));
    cr_expect_geq(json_real_value(json_object_get(row, "rank_spread")), 1);
    cr_expect(strstr(run->err, "wrong values: 0 OK"), "people read stderr: %s", run->err);
    json_decref(all);
    free(run);
}

Test(bench_output, csv_on_stdout_is_clean_of_text)
{
    struct run *run = bench(TEST_WORKERS, SHORT "--csv -");

    cr_expect_eq(run->status, 0, "%s", run->err);
    cr_expect(!strncmp(run->out, BENCH_CSV_HEADER "\nrondo,", strlen(BENCH_CSV_HEADER) + 7), "%s",
              run->out);
    cr_expect_null(strchr(run->out, '#'), "%s", run->out);
    free(run);
}

/* A sweep that would last for many seconds. */
#define LONG "all_reduce -n 2 --bytes 8:1M --seconds 1 --rounds 2 "

Test(bench_output, csv_on_stdout_has_each_row_as_soon_as_it_is_known)
{
    struct run *run = run_begin(TEST_WORKERS, LONG "--csv -");

    cr_expect(run_await(run, BENCH_CSV_HEADER "\nrondo,"), "%s", run->err);
    kill(run->pid, SIGINT);
    run_finish(run);
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect(strstr(run->err, "sizes that were done are in stdout"), "%s", run->err);
    cr_expect_eq(run->out[strlen(run->out) - 1], '\n', "the last row is whole: %s", run->out);
    free(run);
}

/* The shell does so in `rondo bench ... | head`. */
Test(bench_output, a_reader_who_leaves_ends_the_sweep_in_order)
{
    char row[512] = "";
    FILE *reader;
    int status;

    setenv("RONDO_BENCH_DIR", TEST_WORKERS, 1);
    reader = popen("exec " TEST_BENCH " " LONG, "re");
    cr_assert(reader);
    while (strncmp(row, "  ", 2) && fgets(row, sizeof(row), reader))
        continue;
    status = pclose(reader); /* it closes the pipe, then waits */
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "%x", (unsigned)status);
}

/* Returns how many rows the table has: lines of results begin with blanks. */
static int rows_of(const char *table)
{
    int count = 0;

    for (const char *at = strstr(table, "\n  "); at; at = strstr(at + 1, "\n  "))
        count++;
    return count;
}

/* The file has what the table has. */
static char *interrupt(const char *option, const char *path, int *ret_rows)
{
    char line[256], kept[128];
    struct run *run;

    snprintf(line, sizeof(line), LONG "%s %s", option, path);
    snprintf(kept, sizeof(kept), "sizes that were done are in %s", path);
    run = run_begin(TEST_WORKERS, line);
    run_await_row(run);
    kill(run->pid, SIGINT);
    run_finish(run);
    *ret_rows = rows_of(run->out);
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect(strstr(run->err, kept), "%s", run->err);
    free(run);
    return written_take(path);
}

Test(bench_output, an_interrupted_sweep_leaves_valid_csv_with_all_finished_rows)
{
    int rows, lines = 0, commas = 0, wanted = written_commas(BENCH_CSV_HEADER);
    char *text = interrupt("--csv", written_path(), &rows);

    for (const char *at = text; *at; at = strchr(at, '\n') + 1) {
        commas += written_commas(at);
        lines++;
    }
    cr_expect_gt(rows, 0);
    cr_expect_eq(lines, rows + 1, "%s", text);
    cr_expect_eq(commas, lines * wanted, "%s", text);
    free(text);
}

Test(bench_output, an_interrupted_sweep_leaves_valid_json_with_all_finished_rows)
{
    int rows;
    char *text = interrupt("--json", written_path(), &rows);
    json_t *all = json_loads(text, 0, NULL);

    cr_assert(all, "%s", text);
    cr_expect_gt(rows, 0);
    cr_expect_eq(json_array_size(json_object_get(all, "rows")), (size_t)rows, "%s", text);
    cr_expect(json_is_false(json_object_get(all, "complete")));
    json_decref(all);
    free(text);
}

/* The lines of this format come at the end, as they have room for both places. */
Test(bench_output, an_interrupted_sweep_in_the_format_of_nccl_prints_all_finished_rows)
{
    const char *path = written_path();
    struct run *run;
    char line[256];
    int rows = 0;

    snprintf(line, sizeof(line), LONG "--format nccl --csv %s", path);
    run = run_begin(TEST_WORKERS, line);
    cr_expect(run_await_line(run, path, "rondo,"), "%s", run->err);
    kill(run->pid, SIGINT);
    run_finish(run);
    for (const char *at = run->out; (at = strstr(at, "  N/A     N/A     N/A     N/A\n")); at++)
        rows++;
    cr_expect_eq(run->status, 1, "%s", run->err);
    cr_expect_gt(rows, 0, "%s", run->out);
    cr_expect_eq(rows, lines_of(path, "rondo,"), "%s", run->out);
    cr_expect(strstr(run->err, "ends because of signal 2"), "%s", run->err);
    free(run);
    unlink(path);
}
