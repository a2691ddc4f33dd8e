/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain.c - `rondo explain`: a page about a collective by an algorithm, made from the plan that
 * really runs.
 */
#include "cli/argument.h"
#include "cli/commands.h"

#include "base/fail.h"
#include "collectives/select/cost.h"
#include "collectives/levels/grouping.h"
#include "plan/explain/explain.h"

#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

enum { RANKS_MAX = 64, ELEMENT_BYTES = 4 };

struct options {
    int collective;                    /* -1: not given */
    const struct algorithm *algorithm; /* NULL: the first that sends messages */
    int ranks, root;
    double count;
    bool list;
    const char *groups;        /* as given; NULL: grouping_square() */
    struct grouping *grouping; /* made of it for an algorithm in two levels */
};

static void take_collective(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    if (options->collective >= 0)
        argp_error(state, "one collective");
    for (int c = 0; c < RONDO_COLLECTIVES; c++)
        if (!strcmp(text, rondo_collective_name((rondo_collective)c)) && c != RONDO_RECV)
            options->collective = c;
    if (options->collective < 0)
        argp_error(state, "there is no collective '%s' to explain", text);
}

static void take_algorithm(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    options->algorithm = algorithm_find(text);
    if (!options->algorithm)
        argp_error(state, "there is no algorithm '%s': see --list", text);
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

static void finish(struct argp_state *state, void *input)
{
    const struct options *options = input;

    if (options->collective < 0 && !options->list)
        argp_error(state, "which collective?");
    if (options->root >= options->ranks)
        argp_error(state, "there is no rank %d among %d", options->root, options->ranks);
}

#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct options, member, least, most)

static const struct argument table[] = {
    {"ranks", 'n', "N", 0, NUMBER(ranks, 1, RANKS_MAX), "number of ranks (default: 4)"},
    {"algo", 'a', "NAME", 0, ARGUMENT_CALLS(take_algorithm),
     "the algorithm (default: the first that has this collective and sends messages)"},
    {"root", 'r', "R", 0, NUMBER(root, 0, RANKS_MAX - 1), "the root (default: 0)"},
    {"count", 'c', "C", 0, ARGUMENT_CALLS(take_count),
     "float32 elements, for the numbers of the cost (default: 12000)"},
    {"groups", 'g', "GROUPS", 0, ARGUMENT_CALLS(take_groups),
     "groups of ranks, for rings and algorithms in two levels: 4x2, 4+3+1, 0,1,0,1 or 2*"},
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

/* "5.33 MB" */
static void bytes_text(double bytes, char *text, size_t size)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    int unit = 0;

    while (bytes >= 1000 && unit < 5) {
        bytes /= 1000;
        unit++;
    }
    snprintf(text, size, unit ? "%.3g %s" : "%.0f %s", bytes, units[unit]);
}

/* "1 round", "4 rounds" */
static void print_count(unsigned long count, const char *what)
{
    printf("%lu %s%s", count, what, count == 1 ? "" : "s");
}

static void print_prediction(const struct options *options, double bytes)
{
    const struct cost_subject subject = {options->algorithm, (rondo_collective)options->collective,
                                         options->ranks, options->grouping};
    char block[40], copied[40], reduced[40];
    struct count count;
    struct cost cost, across;

    if (cost_count(&subject, NULL, &count))
        return;
    cost_of(&count, bytes, &cost, &across);
    bytes_text(bytes, block, sizeof(block));
    bytes_text(cost.copied, copied, sizeof(copied));
    bytes_text(cost.reduced, reduced, sizeof(reduced));
    printf("With n = %d and a count of %.0f float32 (%s): the time of %.3g messages one after "
           "another;\nthe busiest rank copies %s and reads %s to reduce.\n",
           options->ranks, options->count, block, cost.steps, copied, reduced);
}

static void print_cost(const struct options *options, const struct form *form,
                       const struct explain_totals *totals)
{
    double bytes = options->count * ELEMENT_BYTES;
    char sent[40];

    if (form->formula)
        printf("Cost: %s.\n", form->formula);
    if (options->collective != RONDO_BARRIER)
        print_prediction(options, bytes);
    bytes_text(bytes * (double)totals->most_sent / totals->parts, sent, sizeof(sent));
    printf("The plan below has ");
    print_count((unsigned long)totals->rounds, "round");
    printf(" and ");
    print_count(totals->messages, "message");
    if (totals->data_messages)
        printf(", %lu with data; a rank sends at most %s.\n", totals->data_messages, sent);
    else
        printf(", none with data.\n");
}

static void print_groups(const struct grouping *groups)
{
    const char *semicolon = "";

    if (!groups)
        return;
    printf("Groups: ");
    for (int g = 0; g < groups->groups; g++, semicolon = "; ") {
        printf("%s%d", semicolon, grouping_rank(groups, g, 0));
        for (int i = 1; i < grouping_members(groups, g); i++)
            printf(" %d", grouping_rank(groups, g, i));
    }
    printf(".\n");
}

static void print_promises(unsigned promises)
{
    static const struct {
        unsigned promise;
        const char *sentence;
    } sentences[] = {
        {PROMISE_BALANCED,
         "Sums associate as one balanced tree over the ranks, so bits do not depend on the "
         "algorithm."},
        {PROMISE_RANK_ORDER, "Operands stay in rank order, so operations need not commute."},
        {PROMISE_ONE_ROUND,
         "Every result comes from one single reduction, so narrow floats are rounded once."},
        {PROMISE_PEER_MEMORY,
         "Ranks read and write each other's buffers, without copies in between."},
    };

    for (size_t i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++)
        if (promises & sentences[i].promise)
            printf("%s\n", sentences[i].sentence);
}

static int explain(const struct options *options, struct plan *const *plans)
{
    const struct algorithm *algorithm = options->algorithm;
    const struct form *form = &algorithm->forms[options->collective];
    struct explain_style style = {.utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8"),
                                  .bold = isatty(STDOUT_FILENO)};
    struct explain_totals totals;

    if (explain_plans(plans, options->ranks, &style, NULL, &totals)) {
        fprintf(stderr, "rondo explain: %s\n", fail_sentence());
        return 1;
    }
    printf(style.bold ? "\033[1m%s by %s, %d rank%s\033[0m\n\n" : "%s by %s, %d rank%s\n\n",
           rondo_collective_name((rondo_collective)options->collective), algorithm->name,
           options->ranks, options->ranks == 1 ? "" : "s");
    printf("%s\n", algorithm->summary);
    print_groups(options->grouping);
    print_promises(
        algorithm_promises(algorithm, (rondo_collective)options->collective, options->grouping));
    printf("\n");
    print_cost(options, form, &totals);
    printf("\n");
    explain_plans(plans, options->ranks, &style, stdout, &totals);
    return 0;
}

/* Plans of all ranks; for send, of the first and the last one. */
static rondo_result make_plans(const struct options *options, struct plan **plans)
{
    struct plan_seat seat = {.collective = (rondo_collective)options->collective,
                             .size = options->ranks,
                             .root = options->root,
                             .groups = options->grouping};
    rondo_result result = RONDO_OK;
    int last = options->ranks - 1;

    if (options->collective == RONDO_SEND) {
        result = algorithm_plan(options->algorithm, RONDO_SEND, options->ranks, 0, last, &plans[0]);
        return result ? result
                      : algorithm_plan(options->algorithm, RONDO_RECV, options->ranks, last, 0,
                                       &plans[last]);
    }
    for (seat.rank = 0; seat.rank < options->ranks && !result; seat.rank++)
        result = algorithm_write(options->algorithm, &seat, &plans[seat.rank]);
    return result;
}

/* For an algorithm in two levels: the groups that were asked for, or those it takes by itself. */
static rondo_result make_groups(struct options *options)
{
    if (!options->algorithm->levels && !(options->algorithm->neighbours && options->groups))
        return RONDO_OK;
    if (!options->groups)
        return grouping_square(options->ranks, &options->grouping);
    return grouping_parse(options->groups, options->ranks, &options->grouping);
}

static int make_and_explain(struct options *options)
{
    struct plan *plans[RANKS_MAX] = {0};
    int status = 1;

    if (make_groups(options) || make_plans(options, plans))
        fprintf(stderr, "rondo explain: %s\n", fail_sentence());
    else
        status = explain(options, plans);
    for (int r = 0; r < options->ranks; r++)
        plan_close(plans[r]);
    grouping_close(options->grouping);
    return status;
}

int command_explain(int argc, char **argv)
{
    struct options options = {.collective = -1, .ranks = 4, .count = 12000};

    setlocale(LC_CTYPE, "");
    argument_parse(&command, argc, argv, &options);
    if (options.list) {
        list_algorithms();
        return 0;
    }
    for (int i = 0; !options.algorithm && algorithms[i]; i++)
        if (algorithms[i]->forms[options.collective].write &&
            !(algorithms[i]->forms[options.collective].promises & PROMISE_PEER_MEMORY))
            options.algorithm = algorithms[i];
    if (!options.algorithm || !options.algorithm->forms[options.collective].write) {
        fprintf(stderr, "rondo explain: %s has no %s: see `rondo explain --list`\n",
                options.algorithm ? options.algorithm->name : "no algorithm",
                rondo_collective_name((rondo_collective)options.collective));
        return 2;
    }
    if (options.collective == RONDO_SEND && options.ranks < 2) {
        fprintf(stderr, "rondo explain: send is explained between two ranks or more\n");
        return 2;
    }
    return make_and_explain(&options);
}
