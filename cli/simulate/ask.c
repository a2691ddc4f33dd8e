/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.c - the command line of `rondo simulate`. */
#include "cli/simulate/simulate.h"

#include "cli/common/argument.h"
#include "cli/plans.h"

#include "base/fail.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS_MAX = 1 << 20 };

/* ---- Topologies ------------------------------------------------------------------------------ */

static rondo_result set_from(struct machine *machine, const char *key, const json_t *value)
{
    char text[64];

    if (json_is_string(value))
        return machine_set(machine, key, json_string_value(value));
    if (!json_is_number(value))
        return rondo_fail(RONDO_ERROR_INVALID, "The topology's \"%s\" is no number and no word.",
                          key);
    snprintf(text, sizeof(text), "%.17g", json_number_value(value));
    return machine_set(machine, key, text);
}

/* {"base": "dgx", "nic_GBps": 25, ...}; "name" and "comment" are for people. */
static rondo_result read_file(const char *path, struct machine *ret_machine)
{
    json_error_t error;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error), *value;
    const json_t *base = json_object_get(json, "base");
    struct machine machine = {0};
    const char *key;
    rondo_result result;

    if (!json)
        return rondo_fail(RONDO_ERROR_INVALID, "%s is no topology: line %d: %s.", path, error.line,
                          error.text);
    if (!json_is_object(json))
        result =
            rondo_fail(RONDO_ERROR_INVALID, "%s is no topology: that is an object of keys.", path);
    else if (base && !json_is_string(base))
        result = rondo_fail(RONDO_ERROR_INVALID, "The topology's \"base\" is the name of one.");
    else
        result = machine_find(base ? json_string_value(base) : "alpha-beta", &machine);
    json_object_foreach(json, key, value) if (!result && strcmp(key, "base") &&
                                              strcmp(key, "name") && strcmp(key, "comment"))
        result = set_from(&machine, key, value);
    json_decref(json);
    if (!result)
        *ret_machine = machine;
    return result;
}

rondo_result ask_machine(const char *text, struct machine *ret_machine)
{
    size_t length = strlen(text);

    if (strchr(text, '/') || (length > 5 && !strcmp(text + length - 5, ".json")))
        return read_file(text, ret_machine);
    return machine_parse(text, ret_machine);
}

/* ---- Options --------------------------------------------------------------------------------- */

static void take_collective(struct argp_state *state, void *input, char *text)
{
    struct ask *ask = input;

    if (ask->collective >= 0)
        argp_error(state, "one collective");
    ask->collective = plans_find_collective(text);
    if (ask->collective < 0 || ask->collective == RONDO_SEND || ask->collective == RONDO_RECV)
        argp_error(state, "there is no collective '%s' to simulate", text);
}

static bool read_size(const char *text, double *ret_bytes)
{
    static const char units[] = "KMGT";
    char *end;
    double bytes = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end) : NULL;

    if (end == text || !(bytes > 0) || (*end && (!unit || end[1])))
        return false;
    for (const char *u = units; unit && u <= unit; u++)
        bytes *= 1024;
    *ret_bytes = bytes;
    return bytes <= 1e15;
}

static void read_sizes(const struct argp_state *state, struct ask *ask)
{
    char *copy = strdup(ask->bytes), *colon = copy ? strchr(copy, ':') : NULL, *rest = copy, *word;
    double low, high = 0;
    bool good = copy;

    if (colon) {
        *colon = '\0';
        good = read_size(copy, &low) && read_size(colon + 1, &high) && low <= high;
        for (; good && low <= high * (1 + 1e-9); low *= ask->factor) {
            good = ask->size_count < ASK_SIZES;
            if (good)
                ask->sizes[ask->size_count++] = low;
        }
    }
    while (!colon && good && (word = strsep(&rest, ","))) {
        good = ask->size_count < ASK_SIZES && read_size(word, &low);
        if (good)
            ask->sizes[ask->size_count++] = low;
    }
    free(copy);
    if (!good)
        argp_error(state, "--bytes is LO:HI, a size or a comma list (at most %d), not '%s'",
                   ASK_SIZES, ask->bytes);
}

static void read_algorithms(const struct argp_state *state, struct ask *ask)
{
    char *copy = strdup(ask->algorithms), *rest = copy, *word;

    ask->all = !strcmp(ask->algorithms, "all");
    for (int i = 0; ask->all && algorithms[i] && ask->list_count < ASK_ALGORITHMS; i++)
        if (algorithms[i]->forms[ask->collective].write)
            ask->list[ask->list_count++] = algorithms[i];
    while (!ask->all && (word = strsep(&rest, ","))) {
        const struct algorithm *found = algorithm_find(word);

        if (!found || !found->forms[ask->collective].write)
            argp_error(state, "there is no algorithm '%s' of this collective: see --list", word);
        else if (ask->list_count < ASK_ALGORITHMS)
            ask->list[ask->list_count++] = found;
    }
    free(copy);
}

/* "nic-out:12=0.5", "uplink:3/1=0". */
static void take_link(struct argp_state *state, void *input, char *text)
{
    struct ask *ask = input;
    struct simulate_fault fault = {.hop = {.sub = -1}};
    char word[32];
    int used = 0;

    if (sscanf(text, "%31[a-z-]:%d/%d=%lf%n", word, &fault.hop.owner, &fault.hop.sub, &fault.factor,
               &used) != 4) {
        fault.hop.sub = -1;
        used = 0;
        if (sscanf(text, "%31[a-z-]:%d=%lf%n", word, &fault.hop.owner, &fault.factor, &used) != 3)
            used = 0;
    }
    fault.hop.kind = used ? route_kind(word) : -1;
    if (!used || text[used] || fault.hop.kind < 0 || fault.hop.owner < 0 ||
        (strchr(text, '/') && fault.hop.sub < 0) || !(fault.factor >= 0 && fault.factor <= 1e6))
        argp_error(state,
                   "--link is KIND:NUMBER[/PART]=FACTOR such as nic-out:12=0.5 or "
                   "uplink:3/1=0, not '%s'",
                   text);
    if (ask->fault_count == ASK_FAULTS)
        argp_error(state, "at most %d --link", ASK_FAULTS);
    ask->faults[ask->fault_count++] = fault;
}

static void take_slow(struct argp_state *state, void *input, char *text)
{
    struct ask *ask = input;
    struct simulate_slow slow;
    int used = 0;

    if (sscanf(text, "%d=%lf%n", &slow.rank, &slow.factor, &used) != 2 || text[used] ||
        slow.rank < 0 || !(slow.factor > 0 && slow.factor <= 1e9))
        argp_error(state, "--slow is RANK=FACTOR such as 7=3, not '%s'", text);
    if (ask->slow_count == ASK_FAULTS)
        argp_error(state, "at most %d --slow", ASK_FAULTS);
    ask->slow[ask->slow_count++] = slow;
}

static void finish(struct argp_state *state, void *input)
{
    struct ask *ask = input;

    if (ask->list_only)
        return;
    if (ask->collective < 0)
        argp_error(state, "which collective?");
    if (ask->root >= ask->ranks)
        argp_error(state, "there is no rank %d among %d", ask->root, ask->ranks);
    for (int i = 0; i < ask->slow_count; i++)
        if (ask->slow[i].rank >= ask->ranks)
            argp_error(state, "there is no rank %d among %d", ask->slow[i].rank, ask->ranks);
    if (!(ask->factor > 1))
        argp_error(state, "--factor is above 1");
    if (ask->collective != RONDO_BARRIER)
        read_sizes(state, ask);
    else
        ask->size_count = 1; /* of 0 bytes */
    if (ask->collective == RONDO_BARRIER && ask->svg)
        argp_error(state, "--svg draws times over sizes, which a barrier does not have");
    read_algorithms(state, ask);
    if (ask_machine(ask->topology, &ask->machine) || machine_check(&ask->machine, ask->ranks))
        argp_error(state, "%s", fail_sentence());
}

#define SETS(member)                ARGUMENT_SETS(struct ask, member)
#define NUMBER(member, least, most) ARGUMENT_NUMBER(struct ask, member, least, most)

static const struct argument table[] = {
    {"ranks", 'n', "N", 0, NUMBER(ranks, 1, RANKS_MAX), "number of ranks (default: 8)"},
    {"topology", 't', "NAME", 0, SETS(topology),
     "the machine: a name of --list with keys, such as dgx,nic_GBps=25, or a file (.json) of them "
     "(default: dgx)"},
    {"bytes", 'b', "LO:HI", 0, SETS(bytes),
     "sizes of the full vector: LO:HI, a size or a comma list (default: 1K:1G)"},
    {"factor", 'f', "F", 0, NUMBER(factor, 0, 0), "from size to size (default: 4)"},
    {"algo", 'a', "NAMES", 0, SETS(algorithms), "algorithms, with commas, or all (default: all)"},
    {"root", 'r', "R", 0, NUMBER(root, 0, RANKS_MAX - 1), "the root (default: 0)"},
    {"link", 0, "KIND:I=F", 0, ARGUMENT_CALLS(take_link),
     "a link has F of its bandwidth, 0: it has failed; KIND is port-, half- or nic- with -in or "
     "-out, bus, uplink, downlink, cable, local or global; I its number, I/J a part of it"},
    {"slow", 0, "R=F", 0, ARGUMENT_CALLS(take_slow), "steps of rank R take F times as long"},
    {"jitter", 0, "F", 0, NUMBER(jitter, 0, 0),
     "every step lasts longer by chance, on average by F of it: 0.1"},
    {"seed", 0, "S", 0, NUMBER(seed, 0, 0), "of that chance (default: 1)"},
    {"segments", 0, "N", 0, NUMBER(segments, 0, 1 << 20),
     "simulate the first N segments of a long vector and take the others for alike, 0: all "
     "(default: 16 to 256, as many as take little time)"},
    {"whole", 0, NULL, 0, SETS(whole), "simulate every rank, also those that do the same"},
    {"path", 'p', NULL, 0, SETS(path),
     "say for each size what the time is spent on, and which links are busiest"},
    {"csv", 0, "FILE", 0, SETS(csv), "write the table as CSV, - is stdout"},
    {"json", 'j', "FILE", 0, SETS(json), "write everything as JSON, - is stdout"},
    {"svg", 0, "FILE", 0, SETS(svg), "draw the times over the sizes (needs gnuplot)"},
    {"chrome", 0, "FILE", 0, SETS(chrome),
     "write a time line of the last algorithm and size, for Perfetto"},
    {"list", 'l', NULL, 0, SETS(list_only), "list topologies that have a name, and their keys"},
    {0},
};

static const struct argument_command command = {
    .name = "rondo simulate",
    .operands = "COLLECTIVE",
    .doc = "Say what a collective would take on a machine that is not here: the plans that run "
           "are run by events, over links that they share.\v"
           "docs/simulator.md has the model, where its constants come from, and what it leaves "
           "out.",
    .table = table,
    .operand = take_collective,
    .finish = finish,
};

void ask_read(int argc, char **argv, struct ask *ret_ask)
{
    *ret_ask = (struct ask){.collective = -1,
                            .ranks = 8,
                            .topology = "dgx",
                            .bytes = "1K:1G",
                            .algorithms = "all",
                            .factor = 4,
                            .seed = 1,
                            .segments = -1};
    argument_parse(&command, argc, argv, ret_ask);
}
