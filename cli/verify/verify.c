/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verify.c - `rondo verify`: proves the plans of every algorithm, collective, number of ranks and
 * root that is asked for.
 *
 * What an algorithm promises (collectives/algorithm.h) is held against what plan/verify proves: a
 * promise that was not proved is a failure, and so is touching peers' memory without saying so. One
 * line per algorithm and collective.
 */
#include "cli/common/argument.h"
#include "cli/commands.h"
#include "cli/common/json_file.h"
#include "cli/plans.h"
#include "cli/verify/break.h"
#include "cli/verify/outcome.h"

#include "base/clock.h"
#include "base/collective.h"
#include "base/fail.h"
#include "collectives/levels/grouping.h"
#include "plan/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROOT_SOME = -1,
    ROOT_ALL = -2,
    RANKS_MAX = 4096,
    RANKS_FROM = 2,
    RANKS_TO = 16,
    SHAPES_UP_TO = 20
};

struct options {
    int collective;                    /* -1: all */
    const struct algorithm *algorithm; /* NULL: all */
    int from, to;                      /* 0: not given */
    int slots;                         /* 0: the least that whoever runs the plans has */
    int root;
    const char *groups; /* NULL: several shapes */
    struct break_wish broken;
    const char *json;
    const char *plan; /* a file; NULL: plans of algorithms */
    bool devices;
    enum plan_device device; /* of those, the one that is being proved for */
};

static void take_ranks(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;
    char *colon = strchr(text, ':');

    if (colon)
        *colon = 0;
    options->from = (int)argument_whole(state, "-n", text, 1, RANKS_MAX);
    options->to = colon ? (int)argument_whole(state, "-n", colon + 1, 1, RANKS_MAX) : options->from;
    if (options->to < options->from)
        argp_error(state, "the ranks go from %d down to %d", options->from, options->to);
}

static void take_collective(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    if (state->arg_num > 0)
        argp_error(state, "one collective, or all");
    options->collective = strcmp(text, "all") ? plans_find_collective(text) : -1;
    if (strcmp(text, "all") && options->collective < 0)
        argp_error(state, "there is no collective '%s'", text);
}

static void take_groups(struct argp_state *state, void *input, char *text)
{
    int ranks = grouping_text_size(text);

    if (ranks < 0 || ranks > RANKS_MAX)
        argp_error(state, "'%s' names no groups: 4x2, 4+3+1, 0,1,0,1 and 2* do", text);
    ((struct options *)input)->groups = text;
}

static void take_algorithm(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    options->algorithm = strcmp(text, "all") ? algorithm_find(text) : NULL;
    if (strcmp(text, "all") && !options->algorithm)
        argp_error(state, "there is no algorithm '%s': see `rondo explain --list`", text);
}

static void take_root(struct argp_state *state, void *input, char *text)
{
    bool all = !strcmp(text, "all");

    ((struct options *)input)->root =
        all ? ROOT_ALL : (int)argument_whole(state, "-r", text, 0, RANKS_MAX - 1);
}

static void take_step(struct argp_state *state, void *input, char *text)
{
    break_take_step(state, text, &((struct options *)input)->broken);
}

/* Groups say how many ranks there are, but for those such as 2*. */
static void settle_ranks(const struct argp_state *state, struct options *options)
{
    int ranks = options->groups ? grouping_text_size(options->groups) : 0;

    if (ranks && options->from && (options->from != ranks || options->to != ranks))
        argp_error(state, "the groups %s are of %d ranks: leave --ranks out", options->groups,
                   ranks);
    if (ranks || !options->from) {
        options->from = ranks ? ranks : RANKS_FROM;
        options->to = ranks ? ranks : RANKS_TO;
    }
}

static void finish(struct argp_state *state, void *input)
{
    struct options *options = input;

    if (!state->arg_num && !options->plan)
        argp_error(state, "which collective? One of them, or all");
    if (state->arg_num && options->plan)
        argp_error(state, "--plan FILE says itself which collective");
    if (options->plan && (options->algorithm || options->from || options->groups ||
                          options->root != ROOT_SOME || options->devices || options->json))
        argp_error(state, "--plan FILE says itself which algorithm, ranks and root; beside it "
                          "there is only --slots");
    settle_ranks(state, options);
    if (options->root >= options->to)
        argp_error(state, "there is no rank %d among %d", options->root, options->to);
    if (options->broken.rank && options->broken.step == BREAK_NOTHING)
        argp_error(state, "--rank names whose plan is broken: say --break STEP, too");
    if (options->broken.rank >= options->from)
        argp_error(state, "there is no rank %d among %d: say how many with --ranks",
                   options->broken.rank, options->from);
    if (options->plan && options->broken.step != BREAK_NOTHING)
        argp_error(state, "--break takes a step out of an algorithm's plan; out of a file an "
                          "editor takes it");
}

static void take_devices(struct argp_state *state, void *input, char *text)
{
    (void)state, (void)text;
    ((struct options *)input)->devices = true;
}

#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct options, member, least, most)

static const struct argument table[] = {
    {"algo", 'a', "NAME", 0, ARGUMENT_CALLS(take_algorithm), "only this algorithm (default: all)"},
    {"ranks", 'n', "A:B", 0, ARGUMENT_CALLS(take_ranks),
     "numbers of ranks, from A to B (default: 2:16)"},
    {"slots", 's', "N", 0, NUMBER(slots, 1, 1024),
     "slots per link (default: the least, 2, and 1 for operations of a stream)"},
    {"device", 'd', NULL, 0, ARGUMENT_CALLS(take_devices),
     "the plans that GPUs run, by the rules of both that run them there: one kernel for a call, "
     "and operations of a stream"},
    {"root", 'r', "R|all", 0, ARGUMENT_CALLS(take_root),
     "roots (default: the first two ranks and the last)"},
    {"groups", 'g', "GROUPS", 0, ARGUMENT_CALLS(take_groups),
     "groups of ranks, for rings and algorithms in two levels: 4x2, 4+3+1, 0,1,0,1 or 2* "
     "(default: several)"},
    {"break", 'b', "STEP|random", 0, ARGUMENT_CALLS(take_step),
     "take this step, as `rondo explain --steps` numbers them, out of a plan, to see a refusal"},
    {"rank", 0, "R", 0, NUMBER(broken.rank, 0, RANKS_MAX - 1),
     "for --break: whose plan (default: 0)"},
    {"plan", 'p', "FILE", 0, ARGUMENT_SETS(struct options, plan),
     "the plan in FILE (docs/plan_format.md) instead, with --slots, default 2"},
    {"seed", 'S', "N", 0, NUMBER(broken.seed, 0, 1000000000), "for --break random (default: 1)"},
    {"json", 'j', "FILE", 0, ARGUMENT_SETS(struct options, json), "write the results to FILE"},
    {0},
};

static const struct argument_command command = {
    .name = "rondo verify",
    .operands = "all|COLLECTIVE",
    .doc =
        "Prove that plans give the right result for every count, without deadlock or race, also "
        "when calls follow each other at once, with and without input and output in one place.\v"
        "Exit status: 0 all is proved, 1 something is wrong (the sentence names rank, program and "
        "step), 2 wrong usage.",
    .table = table,
    .operand = take_collective,
    .finish = finish,
};

/* ---- Proving --------------------------------------------------------------------------------- */

/* True if these plans are what the device runs, or no device is asked for. They become what it
 * makes of them. */
static bool check_device(const struct options *options, struct plan *const *plans, int count)
{
    bool all = true;

    for (int i = 0; i < count && options->devices && all; i++)
        all = !plan_device_check(plans[i], options->device);
    for (int i = 0; i < count && options->devices && all; i++)
        plan_device_join(plans[i], options->device);
    return all;
}

static int slots_of(const struct options *options)
{
    if (options->slots)
        return options->slots;
    return plan_device_slots(options->devices ? options->device : PLAN_DEVICE_KERNEL);
}

/* One number of ranks, one root and one grouping, in place too where promised. */
static void prove(const struct options *options, const struct algorithm *algorithm,
                  const struct plan_request *request, struct outcome *outcome)
{
    unsigned promises = algorithm_promises(algorithm, request->collective, request->groups);
    struct verify_report report;
    int count;
    struct plan **plans = plans_open(algorithm, *request, &count);

    if (!plans) {
        outcome_blame(outcome, request->size, request->root, "the plans could not be made");
        return;
    }
    if (!check_device(options, plans, count))
        outcome_blame(outcome, request->size, request->root, fail_sentence());
    if (!break_plan(&options->broken, plans, count, outcome))
        outcome->failed = outcome->unbroken = true;
    for (int in_place = 0; !outcome->unbroken && in_place <= !!(promises & PROMISE_IN_PLACE);
         in_place++) {
        struct verify_options how = {.slots = slots_of(options), .in_place = in_place};

        if (verify_plans(plans, count, &how, &report))
            outcome_blame(outcome, request->size, request->root,
                          report.failure[0] ? report.failure : "out of memory");
        else
            outcome_judge(outcome, promises, request->size, request->root, &report);
        outcome->plans += (unsigned long)request->size;
    }
    plans_close(plans, count);
}

/*
 * In the groups that were asked for; else in shapes by turns as the number of ranks grows, for few
 * ranks in two each.
 */
static void prove_in_groups(const struct options *options, const struct algorithm *algorithm,
                            struct plan_request request, struct outcome *outcome)
{
    bool grouped = algorithm->levels || algorithm->any_order;
    bool several = grouped && !options->groups;
    int shapes = several && request.size <= SHAPES_UP_TO ? 2 : 1;

    for (int i = 0; i < shapes && !outcome->failed; i++) {
        int shape = i ? 0 : request.size % GROUPING_SHAPES;
        struct grouping *groups = NULL;
        rondo_result result = options->groups
                                  ? grouping_parse(options->groups, request.size, &groups)
                                  : grouping_shape(request.size, shape, &groups);

        request.groups = groups;
        if (result)
            outcome_blame(outcome, request.size, request.root, fail_sentence());
        else
            prove(options, algorithm, &request, outcome);
        if (outcome->failed && grouped && grouping_has_levels(groups))
            grouping_describe(groups, outcome->groups, sizeof(outcome->groups));
        grouping_close(groups);
    }
}

static bool root_is_wanted(const struct options *options, rondo_collective collective, int ranks,
                           int root)
{
    if (!collective_has_root(collective))
        return root == 0;
    if (options->root >= 0)
        return root == options->root;
    return options->root == ROOT_ALL || root <= 1 || root == ranks - 1;
}

static void prove_form(const struct options *options, const struct algorithm *algorithm,
                       rondo_collective collective, struct outcome *outcome)
{
    bool watched = isatty(STDERR_FILENO);

    *outcome = (struct outcome){.proved = ~0U};
    for (int ranks = options->from; ranks <= options->to && !outcome->failed; ranks++) {
        if (watched)
            fprintf(stderr, "\r\033[K%s %s: %d of %d ranks", algorithm->name,
                    rondo_collective_name(collective), ranks, options->to);
        for (int root = 0; root < ranks && !outcome->failed; root++)
            if (root_is_wanted(options, collective, ranks, root))
                prove_in_groups(
                    options, algorithm,
                    (struct plan_request){.collective = collective, .size = ranks, .root = root},
                    outcome);
    }
    if (watched)
        fprintf(stderr, "\r\033[K");
    if (options->to > 1 && !outcome->touches_peers &&
        (algorithm->forms[collective].promises & PROMISE_PEER_MEMORY))
        outcome_blame(outcome, options->to, 0,
                      "it says that it touches peers' memory and does not");
}

static bool write_json(const struct options *options, json_t *results, double seconds)
{
    json_t *json = json_pack("{s:[i,i], s:i, s:f, s:O}", "ranks", options->from, options->to,
                             "slots", slots_of(options), "seconds", seconds, "results", results);

    return json_file_write("rondo verify", options->json, json);
}

/* All forms together: what was found out about them. */
struct totals {
    unsigned long plans, steps;
    int forms, wrong, unbroken;
};

/* True if the device runs plans of that form. Those of messages between two ranks it never does. */
static bool device_takes(const struct options *options, const struct algorithm *algorithm,
                         rondo_collective collective)
{
    struct plan_request request = {.collective = collective, .size = options->to};
    struct plan **plans;
    int count;
    bool takes;

    if (!options->devices)
        return true;
    if (collective_is_pair(collective))
        return false;
    plans = plans_open(algorithm, request, &count);
    takes = plans && check_device(options, plans, 1);
    plans_close(plans, plans ? count : 0);
    return takes;
}

static bool is_wanted(const struct options *options, const struct algorithm *algorithm,
                      int collective)
{
    return algorithm->forms[collective].write && collective != RONDO_RECV &&
           (!options->algorithm || options->algorithm == algorithm) &&
           (options->collective < 0 || options->collective == collective) &&
           device_takes(options, algorithm, (rondo_collective)collective);
}

static void prove_forms(const struct options *options, json_t *results, struct totals *totals)
{
    static const char *const names[PLAN_DEVICES] = {"kernel", "operations"};

    for (int i = 0; algorithms[i]; i++)
        for (int c = 0; c < RONDO_COLLECTIVES; c++) {
            struct outcome outcome;
            json_t *json;

            if (!is_wanted(options, algorithms[i], c))
                continue;
            prove_form(options, algorithms[i], (rondo_collective)c, &outcome);
            totals->forms++;
            totals->unbroken += outcome.unbroken;
            if (outcome.unbroken)
                continue;
            outcome_print(algorithms[i], (rondo_collective)c, &outcome);
            json = outcome_json(algorithms[i], (rondo_collective)c, &outcome);
            if (options->devices)
                json_object_set_new(json, "device", json_string(names[options->device]));
            json_array_append_new(results, json);
            totals->wrong += outcome.failed;
            totals->plans += outcome.plans;
            totals->steps += outcome.steps;
        }
}

static void prove_for_devices(struct options *options, json_t *results, struct totals *totals)
{
    static const char *const headings[PLAN_DEVICES] = {"On a GPU, one kernel for a call:",
                                                       "On a GPU, operations of a stream:"};

    for (int device = 0; device < PLAN_DEVICES; device++) {
        puts(headings[device]);
        options->device = (enum plan_device)device;
        prove_forms(options, results, totals);
    }
}

/* Everything that was asked for. Returns the exit status. */
static int prove_all(struct options *options, json_t *results)
{
    struct totals totals = {0};
    double start = clock_seconds();

    if (options->devices)
        prove_for_devices(options, results, &totals);
    else
        prove_forms(options, results, &totals);
    if (!totals.forms)
        fprintf(stderr, "rondo verify: that algorithm has no such collective: see `rondo explain "
                        "--list`\n");
    if (totals.forms > totals.unbroken)
        printf("%d of %d algorithms x collectives proved for %d to %d ranks%s: %lu plans, %lu "
               "steps in %.1f s\n",
               totals.forms - totals.unbroken - totals.wrong, totals.forms, options->from,
               options->to, options->devices ? " on GPUs" : "", totals.plans, totals.steps,
               clock_seconds() - start);
    return !totals.forms || totals.unbroken ? 2 : totals.wrong > 0;
}

int command_verify(int argc, char **argv)
{
    struct options options = {
        .collective = -1, .root = ROOT_SOME, .broken = {.step = BREAK_NOTHING, .seed = 1}};
    double start = clock_seconds();
    json_t *results;
    int status;

    argument_parse(&command, argc, argv, &options);
    if (options.plan)
        return verify_file(options.plan, options.slots);
    results = json_array();
    if (!results) {
        fprintf(stderr, "rondo verify: out of memory\n");
        return 1;
    }
    status = prove_all(&options, results);
    if (status < 2 && options.json && !write_json(&options, results, clock_seconds() - start))
        status = 1;
    json_decref(results);
    return status;
}
