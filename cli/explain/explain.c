/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain.c - `rondo explain`: a page about a collective by an algorithm, made from the plan that
 * really runs; or the plan as data; or out of a file that somebody wrote.
 */
#include "cli/commands.h"
#include "cli/common/argument.h"
#include "cli/common/output.h"
#include "cli/explain/auto.h"
#include "cli/explain/html.h"
#include "cli/explain/predict.h"
#include "cli/explain/svg.h"
#include "cli/msccl/write.h"
#include "cli/plans.h"

#include "base/fail.h"
#include "collectives/file/file.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 64, SLOTS = 8, PANELS_MAX = 6 };

struct options {
    int collective;                    /* -1: not given */
    const struct algorithm *algorithm; /* NULL: what `auto` takes */
    int ranks, root;                   /* ranks 0: as many as groups have, or 4 */
    double count;
    bool list;
    const char *groups; /* as given; NULL: grouping_square() */
    const char *plan;   /* a file; NULL: none */
    const char *json;   /* a file, "-": stdout; NULL: a page for people */
    const char *html;   /* the same */
    const char *msccl;  /* the same */
    const char *svg;    /* the same */
    bool predict;
    const char *plot, *measured; /* files of --predict; NULL: none */
    int steps;                   /* of this rank, or STEPS_ALL, STEPS_NONE */
    int round;                   /* of the picture; -1: all, animated */
    const char *others;          /* --compare: names with commas; NULL: none */
    struct link_costs costs;
};

/* A guess, where nothing was measured. */
static const struct link_costs guess = {.latency = 1e-6,
                                        .copy_bw = 10e9,
                                        .direct_bw = 10e9,
                                        .reduce_bw = 10e9,
                                        .across = {10e-6, 10e9, 1}};

static void take_collective(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    if (options->steps == STEPS_ALL && isdigit((unsigned char)*text)) {
        options->steps = (int)argument_whole(state, "--steps", text, 0, RANKS_MAX - 1);
        return;
    }
    if (options->collective >= 0)
        argp_error(state, "one collective");
    options->collective = plans_find_collective(text);
    if (options->collective < 0 || options->collective == RONDO_RECV)
        argp_error(state, "there is no collective '%s' to explain", text);
}

static void take_algorithm(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    options->algorithm = algorithm_find(text);
    if (!options->algorithm)
        argp_error(state, "there is no algorithm '%s': see --list", text);
}

static void take_steps(struct argp_state *state, void *input, char *text)
{
    (void)state, (void)text;
    ((struct options *)input)->steps = STEPS_ALL;
}

static void take_groups(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    options->groups = text;
    if (grouping_text_size(text) < 0)
        argp_error(state, "'%s' names no groups: 4x2, 4+3+1, 0,1,0,1 and 2* do", text);
}

static void take_count(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    options->count = (double)argument_whole(state, "-c", text, 0, 1000000000000000);
}

static void take_costs(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    options->costs = guess;
    if (!costs_read(text, &options->costs))
        argp_error(state, "the costs are LATENCY_US,COPY_GBPS,REDUCE_GBPS, three positive numbers, "
                          "and two or three more from group to group: LATENCY_US,GBPS,RAILS");
}

static void finish(struct argp_state *state, void *input)
{
    struct options *options = input;

    if (options->plan && (options->collective >= 0 || options->algorithm || options->groups ||
                          options->ranks || options->root))
        argp_error(state, "--plan FILE says itself which collective, algorithm, ranks and root");
    if (!options->ranks)
        options->ranks = options->groups ? grouping_text_size(options->groups) : 0;
    if (!options->ranks)
        options->ranks = 4;
    if (options->ranks > RANKS_MAX)
        argp_error(state, "groups of %d ranks: up to %d are explained", options->ranks, RANKS_MAX);
    if (options->collective < 0 && !options->list && !options->plan)
        argp_error(state, "which collective?");
    if (options->others && (!options->html || options->plan || options->algorithm))
        argp_error(state, "--compare names the algorithms of a page, so --html FILE and no other");
    if (!!options->json + !!options->html + !!options->msccl + !!options->svg +
            (options->steps != STEPS_NONE) + options->predict >
        1)
        argp_error(state, "one of --json, --html, --svg, --msccl, --steps and --predict");
    if ((options->plot || options->measured) && !options->predict)
        argp_error(state, "--plot and --measured are for --predict");
    if (options->predict && (options->algorithm || options->plan || options->others ||
                             options->collective == RONDO_BARRIER))
        argp_error(state, "--predict is about all algorithms, and a collective that has a size");
    if (options->round >= 0 && !options->svg)
        argp_error(state, "--round names a frame of --svg FILE");
    if (options->root >= options->ranks)
        argp_error(state, "there is no rank %d among %d", options->root, options->ranks);
}

#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct options, member, least, most)

static const struct argument table[] = {
    {"ranks", 'n', "N", 0, NUMBER(ranks, 1, RANKS_MAX),
     "number of ranks (default: 4, or as many as GROUPS have)"},
    {"algo", 'a', "NAME", 0, ARGUMENT_CALLS(take_algorithm),
     "the algorithm (default: what auto takes for this count and these costs)"},
    {"root", 'r', "R", 0, NUMBER(root, 0, RANKS_MAX - 1), "the root (default: 0)"},
    {"count", 'c', "C", 0, ARGUMENT_CALLS(take_count),
     "float32 elements, for the numbers of the cost (default: 12000)"},
    {"groups", 'g', "GROUPS", 0, ARGUMENT_CALLS(take_groups),
     "groups of ranks, for rings and algorithms in two levels: 4x2, 4+3+1, 0,1,0,1 or 2*"},
    {"plan", 'p', "FILE", 0, ARGUMENT_SETS(struct options, plan),
     "the plan in FILE, as --json writes it (docs/plan_format.md); it is proved first"},
    {"steps", 's', NULL, 0, ARGUMENT_CALLS(take_steps),
     "print the numbered steps of all ranks, or of the one whose number follows: "
     "`rondo verify --break` takes one out"},
    {"predict", 0, NULL, 0, ARGUMENT_SETS(struct options, predict),
     "print the times of all algorithms over sizes by the cost model, and where they cross"},
    {"plot", 0, "FILE", 0, ARGUMENT_SETS(struct options, plot),
     "for --predict: draw it, SVG (needs gnuplot)"},
    {"measured", 0, "FILE", 0, ARGUMENT_SETS(struct options, measured),
     "for --predict: put beside it what `rondo bench --algo all --json FILE` has measured"},
    {"json", 'j', "FILE", 0, ARGUMENT_SETS(struct options, json),
     "write the plan as data to FILE, - is stdout"},
    {"html", 'H', "FILE", 0, ARGUMENT_SETS(struct options, html),
     "write a page that moves to FILE, for a browser; it needs no network"},
    {"svg", 0, "FILE", 0, ARGUMENT_SETS(struct options, svg),
     "draw up to 8 ranks in FILE, as a picture that moves by itself"},
    {"round", 0, "K", 0, NUMBER(round, 0, 1000000),
     "for --svg: a still frame after round K, with its messages; 0 is the start"},
    {"msccl", 0, "FILE", 0, ARGUMENT_SETS(struct options, msccl),
     "write the plan as an algorithm of MSCCL (XML) to FILE"},
    {"compare", 0, "NAMES", 0, ARGUMENT_SETS(struct options, others),
     "for --html: these algorithms side by side, such as ring,tree,direct"},
    {"costs", 0, "L,C,R", 0, ARGUMENT_CALLS(take_costs),
     "for times: microseconds of a message, GB/s of copying and of reducing, and from group to "
     "group microseconds and GB/s (default: those of RONDO_COSTS, or 1,10,10,10,10)"},
    {"list", 'l', NULL, 0, ARGUMENT_SETS(struct options, list),
     "list the algorithms and their collectives"},
    {0},
};

static const struct argument_command command = {
    .name = "rondo explain",
    .operands = "COLLECTIVE",
    .doc =
        "Show the steps of a collective: what it costs, who sends what to whom in each round, "
        "and what each rank then has.\v"
        "A round holds the messages that can travel at the same time, because each only waits for "
        "messages of the rounds before. Up to 8 ranks everything is shown, over more ranks it is "
        "summarised.",
    .table = table,
    .operand = take_collective,
    .finish = finish,
};

static void list_algorithms(void)
{
    for (int i = 0; algorithms[i]; i++) {
        const char *comma = "";

        printf("%-19s %s\n%-19s ", algorithms[i]->name, algorithms[i]->summary, "");
        for (int c = 0; c < RONDO_COLLECTIVES; c++)
            if (algorithms[i]->forms[c].write) {
                printf("%s%s", comma, rondo_collective_name((rondo_collective)c));
                comma = ", ";
            }
        printf("\n");
    }
}

/* ---- What is shown --------------------------------------------------------------------------- */

/* The file's plans become an algorithm like others. */
static bool take_plan(struct options *options)
{
    struct plan_file *file = NULL;

    if (file_read(options->plan, &file) ||
        file_algorithm_of(file, options->plan, &options->algorithm)) {
        fprintf(stderr, "rondo explain: %s\n", fail_sentence());
        return false;
    }
    options->collective = 0;
    while (!options->algorithm->forms[options->collective].write)
        options->collective++;
    options->ranks = options->algorithm->given->size;
    options->root = options->algorithm->given->root;
    if (options->ranks <= RANKS_MAX)
        return true;
    fprintf(stderr, "rondo explain: plans of up to %d ranks are explained, this one has %d\n",
            RANKS_MAX, options->ranks);
    return false;
}

static struct subject subject_of(const struct options *options, const struct algorithm *algorithm)
{
    return (struct subject){.algorithm = algorithm,
                            .automatic = !options->algorithm,
                            .collective = (rondo_collective)options->collective,
                            .ranks = options->ranks,
                            .root = options->root,
                            .count = options->count,
                            .group_text = options->groups};
}

static bool names_a_form(const struct options *options)
{
    if (options->algorithm && !options->algorithm->forms[options->collective].write) {
        fprintf(stderr, "rondo explain: %s has no %s: see `rondo explain --list`\n",
                options->algorithm->name,
                rondo_collective_name((rondo_collective)options->collective));
        return false;
    }
    if (options->collective == RONDO_SEND &&
        (options->ranks < 2 || options->json || options->msccl)) {
        fprintf(stderr, options->json || options->msccl
                            ? "rondo explain: a send is a plan of two ranks, not of all: "
                              "it is not written to files\n"
                            : "rondo explain: send is explained between two ranks or "
                              "more\n");
        return false;
    }
    return true;
}

/* Opens what is shown, by the algorithm that was named or by the one that auto takes. */
static rondo_result open_subject(const struct options *options, const struct algorithm *algorithm,
                                 struct subject *ret_subject)
{
    unsigned forbid = options->msccl ? PROMISE_PEER_MEMORY : 0; /* XML has no word for it */
    rondo_result result = RONDO_OK;

    *ret_subject = subject_of(options, algorithm);
    if (!algorithm)
        result = auto_choose(ret_subject, &options->costs, forbid, &ret_subject->algorithm);
    else if (options->groups && !subject_sees_groups(ret_subject))
        result = rondo_fail(RONDO_ERROR_INVALID,
                            "%s does not look at groups: leave --groups out, or name ring, tree or "
                            "an algorithm in two levels, such as hierarchy.",
                            algorithm->name);
    return result ? result : subject_open(ret_subject);
}

static struct explain_costs step_costs(const struct options *options)
{
    return (struct explain_costs){.latency = options->costs.latency,
                                  .copy_bw = options->costs.copy_bw,
                                  .reduce_bw = options->costs.reduce_bw,
                                  .bytes = options->count * ELEMENT_BYTES,
                                  .slots = SLOTS,
                                  .across = {.latency = options->costs.across.latency,
                                             .bandwidth = options->costs.across.bandwidth,
                                             .rails = options->costs.across.rails}};
}

static rondo_result write_subjects(const struct options *options, const struct subject *subjects,
                                   int count, FILE *to)
{
    struct explain_costs costs = step_costs(options);

    if (options->json)
        return subject_write_json(subjects, &costs, to);
    if (options->svg)
        return subject_write_svg(subjects, &costs, options->round, to);
    if (options->msccl)
        return msccl_write(subjects->plans, subjects->plan_count, to);
    return subject_write_html(subjects, count, &costs, to);
}

/* Writes the data or the page to a file or stdout. What is refused leaves the file as it was, so
 * all is written to memory first. Returns the exit status. */
static int write_file(const struct options *options, const struct subject *subjects, int count)
{
    const char *name = options->json   ? options->json
                       : options->html ? options->html
                       : options->svg  ? options->svg
                                       : options->msccl;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    rondo_result result = to ? write_subjects(options, subjects, count, to) : RONDO_OK;
    bool written = to && output_close(to);

    if (written && !result) {
        to = output_open(name);
        if (to)
            fwrite(text, 1, length, to);
        written = to && output_close(to);
    }
    if (result || !written)
        fprintf(stderr, "rondo explain: %s: %s\n", name,
                result ? fail_sentence() : strerror(errno));
    free(text);
    return result || !written;
}

static int explain(const struct options *options)
{
    struct subject subject;
    int status = 1;

    if (open_subject(options, options->algorithm, &subject))
        fprintf(stderr, "rondo explain: %s\n", fail_sentence());
    else if (options->json || options->html || options->msccl || options->svg)
        status = write_file(options, &subject, 1);
    else if (options->steps != STEPS_NONE)
        status = subject_print_steps(&subject, options->steps);
    else
        status = subject_print(&subject, &options->costs);
    subject_close(&subject);
    return status;
}

/* The algorithms of --compare, as far as they are good; the wrong name is told. */
static int find_others(const struct options *options, char *names,
                       const struct algorithm **ret_algorithms)
{
    int count = 0;

    for (char *name; (name = strsep(&names, ",")); count++) {
        const struct algorithm *algorithm = algorithm_find(name);

        if (!algorithm || !algorithm->forms[options->collective].write || count == PANELS_MAX) {
            fprintf(stderr,
                    "rondo explain: --compare takes up to %d algorithms that have %s, not '%s': "
                    "see `rondo explain --list`\n",
                    PANELS_MAX, rondo_collective_name((rondo_collective)options->collective), name);
            return 0;
        }
        ret_algorithms[count] = algorithm;
    }
    return count;
}

static int compare(const struct options *options)
{
    const struct algorithm *others[PANELS_MAX];
    struct subject subjects[PANELS_MAX];
    char *names = strdup(options->others);
    int count = names ? find_others(options, names, others) : 0, opened = 0, status = 2;

    while (opened < count && !open_subject(options, others[opened], &subjects[opened]))
        opened++;
    if (count && opened == count) {
        status = write_file(options, subjects, count);
    } else if (count) {
        fprintf(stderr, "rondo explain: %s\n", fail_sentence());
        subject_close(&subjects[opened]);
    }
    while (opened > 0)
        subject_close(&subjects[--opened]);
    free(names);
    return status;
}

static int predict(const struct options *options)
{
    struct subject subject = subject_of(options, NULL);

    return subject_predict(&subject, &options->costs, options->plot, options->measured);
}

int command_explain(int argc, char **argv)
{
    const char *measured = getenv("RONDO_COSTS");
    struct options options = {
        .collective = -1, .count = 12000, .round = -1, .steps = STEPS_NONE, .costs = guess};

    setlocale(LC_CTYPE, "");
    if (measured && *measured && !costs_read(measured, &options.costs))
        fprintf(stderr, "rondo explain: RONDO_COSTS is not used, as it is no list of costs\n");
    argument_parse(&command, argc, argv, &options);
    if (options.list) {
        list_algorithms();
        return 0;
    }
    if (options.plan && !take_plan(&options))
        return 1;
    if (!names_a_form(&options))
        return 2;
    if (options.predict)
        return predict(&options);
    return options.others ? compare(&options) : explain(&options);
}
