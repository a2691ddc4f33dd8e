/* SPDX-License-Identifier: BSD-3-Clause */
/* compare.c - the command line of `rondo bench compare`, its table and its exit status. */
#include "cli/bench/compare/compare.h"

#include "cli/commands.h"

#include "cli/bench/sweep.h"
#include "cli/common/argument.h"
#include "cli/common/json_file.h"
#include "cli/common/output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SAME_OR_BETTER = 0, WORSE = 1, UNUSABLE = 2 };

struct options {
    const char *files[2];
    int file_count;
    const char *names;   /* "OLD,NEW" */
    const char *library; /* NULL: the first of the new file */
    bool medians;
    double percent;
    const char *json;
    char old_library[32], new_library[32];
};

static const char *const verdicts[] = {
    [COMPARE_SAME] = "same",
    [COMPARE_SLOWER] = "slower",
    [COMPARE_FASTER] = "faster",
    [COMPARE_UNSTEADY] = "not steady",
};

/* ---- What comes out -------------------------------------------------------------------------- */

static double percent_of(double logarithm)
{
    return 100 * (exp(logarithm) - 1);
}

static double median_of(const struct compare_row *row)
{
    double rounds[NOISE_ROUNDS_MAX];

    memcpy(rounds, row->rounds, sizeof(rounds));
    return bench_median(rounds, row->round_count);
}

static void print_cell(const struct compare_cell *cell)
{
    const struct difference *difference = &cell->difference;
    enum output_colour colour = cell->verdict == COMPARE_SLOWER   ? OUTPUT_RED
                                : cell->verdict == COMPARE_FASTER ? OUTPUT_GREEN
                                                                  : OUTPUT_PLAIN;

    printf("%12.3f %12.3f %7.3f  %6.3f to %6.3f ", median_of(cell->old), median_of(cell->new),
           difference->ratio, difference->low, difference->high);
    if (cell->verdict == COMPARE_UNSTEADY)
        printf("%9s", "~");
    else
        printf("%9.2g", cell->p);
    printf("  %s%-10s%s  %s\n", output_colour(colour), verdicts[cell->verdict],
           output_colour(OUTPUT_PLAIN), cell->new->cell);
}

static void print_warnings(const struct comparison *comparison)
{
    const struct compare_run *old = comparison->old, *new = comparison->new;

    if (strcmp(old->machine, new->machine))
        printf("# warning: not the same machine: %s; then %s\n", old->machine, new->machine);
    if (!old->complete || !new->complete)
        printf("# warning: %s ended early\n", old->complete ? new->path : old->path);
    if (comparison->only_old || comparison->only_new)
        printf("# warning: %d cells are of the old run only, %d of the new one only\n",
               comparison->only_old, comparison->only_new);
    if (comparison->wrong)
        printf("# %lld wrong values in the new run\n", comparison->wrong);
}

static void print_end(const struct comparison *comparison)
{
    const struct difference *all = &comparison->all;

    printf("#\n");
    print_warnings(comparison);
    if (comparison->judged < comparison->cell_count)
        printf("# %d of %d cells were not steady, and are not judged\n",
               comparison->cell_count - comparison->judged, comparison->cell_count);
    if (comparison->between_runs > 0)
        printf("# cells differ by %.1f %% among each other: less than about three times that is "
               "not told from chance\n",
               percent_of(comparison->between_runs));
    if (comparison->judged)
        printf("# geometric mean: %.3f (%.3f to %.3f)%s\n", all->ratio, all->low, all->high,
               comparison->paired ? ""
                                  : "; runs of different moments: part of it is the machine's");
    printf("# slower: %d, faster: %d, of %d cells\n", comparison->slower, comparison->faster,
           comparison->judged);
}

static void print(const struct comparison *comparison, const struct options *options)
{
    printf("# old: %s of %s\n# new: %s of %s\n# %s; a ratio is old time / new time: above 1 the "
           "new one is faster\n#\n",
           options->old_library, comparison->old->path, options->new_library, comparison->new->path,
           comparison->paired ? "their rounds took turns"
                              : "separate runs, so that rounds have no partners");
    printf("#%11s %12s %7s  %16s %9s  %-10s  %s\n", "old (us)", "new (us)", "ratio", "interval",
           "p", "verdict", "cell");
    for (int i = 0; i < comparison->cell_count; i++)
        print_cell(&comparison->cells[i]);
    print_end(comparison);
}

static json_t *cells_json(const struct comparison *comparison)
{
    json_t *cells = json_array();

    for (int i = 0; i < comparison->cell_count; i++) {
        const struct compare_cell *cell = &comparison->cells[i];
        const struct difference *difference = &cell->difference;

        json_array_append_new(
            cells, json_pack("{s:s, s:f, s:f, s:i, s:i, s:f, s:f, s:f, s:f, s:o, s:s}", "cell",
                             cell->new->cell, "old_us", median_of(cell->old), "new_us",
                             median_of(cell->new), "old_rounds", cell->old->round_count,
                             "new_rounds", cell->new->round_count, "ratio", difference->ratio,
                             "ratio_low", difference->low, "ratio_high", difference->high,
                             "confidence", difference->confidence, "p_corrected",
                             isnan(cell->p) ? json_null() : json_real(cell->p), "verdict",
                             verdicts[cell->verdict]));
    }
    return cells;
}

static json_t *comparison_json(const struct comparison *comparison, int status)
{
    const struct difference *all = &comparison->all;

    return json_pack("{s:s, s:s, s:b, s:f, s:i, s:i, s:i, s:i, s:i, s:I, s:f, s:f, s:f, s:f, s:i, "
                     "s:o}",
                     "old", comparison->old->path, "new", comparison->new->path, "paired",
                     comparison->paired, "margin", comparison->margin, "judged", comparison->judged,
                     "slower", comparison->slower, "faster", comparison->faster, "only_old",
                     comparison->only_old, "only_new", comparison->only_new, "wrong",
                     (json_int_t)comparison->wrong, "cells_differ_percent",
                     percent_of(comparison->between_runs), "geometric_mean", all->ratio,
                     "geometric_mean_low", all->low, "geometric_mean_high", all->high, "status",
                     status, "cells", cells_json(comparison));
}

/* ---- The exit status ------------------------------------------------------------------------- */

/* A comparison that could not find anything is no pass, nor is a run that broke off before it had
 * measured what it is compared with. */
static bool is_usable(const struct comparison *comparison)
{
    int rounds = 2;

    if (!comparison->new->complete && comparison->only_old) {
        fprintf(stderr,
                "rondo bench compare: %s ended before %d cells that the old run has; measure it "
                "again\n",
                comparison->new->path, comparison->only_old);
        return false;
    }
    if (comparison->cell_count == 0) {
        fprintf(stderr, "rondo bench compare: the two have no cell in common: compare the same "
                        "sweep, with the same settings\n");
        return false;
    }
    if (2 * comparison->judged < comparison->cell_count) {
        fprintf(stderr,
                "rondo bench compare: only %d of %d cells are steady; measure again when the "
                "machine has less other work, or with more --rounds and --seconds\n",
                comparison->judged, comparison->cell_count);
        return false;
    }
    if (comparison->least_p * comparison->judged <= DIFFERENCE_SIGNIFICANT)
        return true;
    while (rounds < NOISE_ROUNDS_MAX &&
           difference_least_p(rounds, rounds, comparison->paired) * comparison->judged >
               DIFFERENCE_SIGNIFICANT)
        rounds++;
    fprintf(stderr,
            "rondo bench compare: so few rounds cannot tell any of %d cells from chance; measure "
            "again with --rounds %d or more\n",
            comparison->judged, rounds);
    return false;
}

/* Rounds that took turns are of the same moments: then all cells together count, too. */
static bool is_slower_as_a_whole(const struct comparison *comparison)
{
    const struct difference *all = &comparison->all;

    return comparison->paired && comparison->judged > 5 && all->high < 1 &&
           all->ratio < 1 / (1 + comparison->margin);
}

static int status_of(const struct comparison *comparison)
{
    bool usable = is_usable(comparison);

    if (comparison->wrong)
        return WORSE; /* whatever the times are */
    if (!usable)
        return UNUSABLE;
    return comparison->slower || is_slower_as_a_whole(comparison) ? WORSE : SAME_OR_BETTER;
}

/* ---- The command ----------------------------------------------------------------------------- */

static void take_file(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    if (options->file_count == 2)
        argp_error(state, "it compares two files, not three");
    options->files[options->file_count++] = text;
}

#define SETS(member) ARGUMENT_SETS(struct options, member)

static const struct argument table[] = {
    {"as", 0, "OLD,NEW", 0, SETS(names),
     "the two libraries of one file that are compared (base,rondo)"},
    {"library", 0, "NAME", 0, SETS(library), "of two files: whose rows (the first library)"},
    {"by", 0, "FIGURE", 0,
     ARGUMENT_WORDS(struct options, medians, ((const char *const[]){"fastest", "median", NULL})),
     "of a round: its fastest batch, or the median of its batches (fastest)"},
    {"margin", 0, "PERCENT", 0, ARGUMENT_NUMBER(struct options, percent, 0, 0),
     "smaller differences do not count (3)"},
    {"json", 0, "FILE", 0, SETS(json), "write all of it; - is stdout"},
    {0},
};

static const char doc[] =
    "Says which cells of a sweep became slower, and which faster, with a confidence.\v"
    "OLD and NEW were written by --json, or are comma lists of files of the same sweep: ranks that "
    "are started anew find other memory, so several short sweeps say more than a long one. With "
    "one file, or list, two libraries of it are compared whose rounds took turns: --base measures "
    "another build of Rondo in the same sweep. That finds smaller differences than two runs of "
    "different moments do.\n\n"
    "Exit status: 0 same or better, 1 slower or wrong, 2 nothing that could be judged.";

static void finish(struct argp_state *state, void *input)
{
    const struct options *options = input;
    size_t old = strcspn(options->names, ",");

    if (options->file_count == 0)
        argp_error(state, "name two files that --json wrote, or one that has both libraries");
    if (!options->names[old] || old == 0 || old >= sizeof(options->old_library) ||
        !options->names[old + 1])
        argp_error(state, "--as names two libraries, such as base,rondo, not '%s'", options->names);
}

static void name_libraries(struct options *options, const struct compare_run *new)
{
    size_t old = strcspn(options->names, ",");
    const char *both = options->library ? options->library : new->first;

    if (options->file_count == 2) {
        snprintf(options->old_library, sizeof(options->old_library), "%s", both);
        snprintf(options->new_library, sizeof(options->new_library), "%s", both);
        return;
    }
    snprintf(options->old_library, sizeof(options->old_library), "%.*s", (int)old, options->names);
    snprintf(options->new_library, sizeof(options->new_library), "%s", options->names + old + 1);
}

static int compare(struct options *options, const struct compare_run *old,
                   const struct compare_run *new)
{
    struct comparison comparison = {.old = old,
                                    .new = new,
                                    .paired = options->file_count == 1,
                                    .margin = options->percent / 100};
    int status = output_begin("rondo bench compare", NULL, options->json, NULL);

    if (status)
        return UNUSABLE;
    name_libraries(options, new);
    if (compare_judge(&comparison, options->old_library, options->new_library)) {
        fprintf(stderr, "rondo bench compare: out of memory\n");
        status = UNUSABLE;
    } else {
        status = status_of(&comparison);
        print(&comparison, options);
        if (options->json && !json_file_write("rondo bench compare", options->json,
                                              comparison_json(&comparison, status)))
            status = UNUSABLE;
    }
    comparison_done(&comparison);
    return status;
}

int command_bench_compare(int argc, char **argv)
{
    static const struct argument_command command = {.name = "rondo bench compare",
                                                    .operands = "OLD.json NEW.json\nBOTH.json",
                                                    .doc = doc,
                                                    .table = table,
                                                    .operand = take_file,
                                                    .finish = finish};
    struct options options = {.names = "base,rondo", .percent = 3};
    struct compare_run runs[2] = {0};
    int failed = 0;
    int status = UNUSABLE;

    argument_parse(&command, argc, argv, &options);
    for (int i = 0; i < options.file_count && !failed; i++)
        failed = compare_read(options.files[i], options.medians, &runs[i]);
    if (!failed)
        status = compare(&options, &runs[0], &runs[options.file_count - 1]);
    for (int i = 0; i < options.file_count; i++)
        compare_run_done(&runs[i]);
    return status;
}
