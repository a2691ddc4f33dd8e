/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.c - the cheapest algorithm that keeps what was promised.
 *
 *     time = steps * latency + copied / copy_bw + reduced / reduce_bw
 *
 * with numbers that were measured once and are the same on every rank, so that all ranks choose
 * alike. The busiest rank's bytes count. When ranks outnumber cores everything takes as many times
 * longer as there are ranks on a core: their work adds up, and a message arrives only when its
 * reader gets its turn. But a root may do much more than the others. So where there is one, a call
 * takes what the cores need for the work of all ranks together, and no less than the root does.
 *
 * Where ranks are in groups with slower ways between them, what a group sends to others is added,
 *
 *     + bytes out of a group / (rails * bandwidth)
 *
 * and steps take the latency between groups: of an algorithm in two levels those that go there, of
 * others all, because their ranks wait for each other whichever way a message takes.
 */
#include "collectives/select/select.h"

#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"
#include "collectives/levels/grouping.h"
#include "collectives/select/tally.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    unsigned promise;
    const char *words;
} promise_words[] = {
    {PROMISE_BALANCED, "the deterministic order of sums"},
    {PROMISE_RANK_ORDER, "the order of ranks, which an operation that does not commute needs"},
    {PROMISE_ONE_ROUND, "rounding narrow floats only once"},
    {PROMISE_IN_PLACE, "working in place"},
    {PROMISE_PEER_MEMORY, "memory that peers can reach"},
};

/* Promises about sums say nothing where nothing is summed. */
static unsigned relevant(rondo_collective collective, unsigned promises)
{
    const unsigned sums = PROMISE_BALANCED | PROMISE_RANK_ORDER | PROMISE_ONE_ROUND;

    return collective_reduces(collective) ? promises : promises & ~sums;
}

/* Finds why an algorithm can't be taken: promises that it breaks, forbidden ones that it makes; or
 * 0. */
static unsigned obstacles(const struct algorithm *algorithm, const struct selection *selection)
{
    unsigned need = relevant(selection->collective, selection->need);
    unsigned promises = algorithm_promises(algorithm, selection->collective, selection->groups);

    return (need & ~promises) | (selection->forbid & promises);
}

/* An algorithm is a candidate if it has this collective and keeps what is needed; one in two levels
 * needs groups of several ranks. */
static bool is_candidate(const struct algorithm *algorithm, const struct selection *selection)
{
    const struct form *form = &algorithm->forms[selection->collective];

    return form->write && (!algorithm->levels || grouping_has_levels(selection->groups)) &&
           !obstacles(algorithm, selection);
}

/*
 * Unless somebody wishes otherwise, a message that is shorter than a usual slot leaves without its
 * receiver, which matters where many go one way. A longer one would have to wait for its receiver
 * sooner or later, so it is read where it is, if it can be.
 */
static bool suits(const struct algorithm *algorithm, const struct selection *selection)
{
    unsigned promises = algorithm->forms[selection->collective].promises;
    bool reaches = selection->bytes >= COST_SLOT && !(selection->forbid & PROMISE_PEER_MEMORY);

    return is_candidate(algorithm, selection) && (!collective_is_pair(selection->collective) ||
                                                  !(promises & PROMISE_PEER_MEMORY) == !reaches);
}

/* Seconds of what goes from group to group; `across`: of an algorithm in two levels, that part. */
static double time_across(const struct algorithm *algorithm, const struct selection *selection,
                          const struct link_costs *links, const struct cost *cost,
                          const struct cost *across)
{
    const struct grouping *groups = selection->groups;
    double slower = links->across.latency - links->latency;
    double rails = links->across.rails > 0 ? links->across.rails : 1;
    double steps = cost->steps, bytes;

    if (!groups || groups->groups == 1 || links->across.bandwidth <= 0)
        return 0;
    if (across) {
        steps = across->steps;
        bytes = across->sent;
    } else if (algorithm->neighbours) {
        bytes = cost->sent; /* by one rank of each group */
    } else {
        double others = groups->size - groups->rails; /* of a rank's peers, those elsewhere */

        bytes = cost->sent * groups->rails * others / (groups->size - 1);
    }
    return steps * (slower > 0 ? slower : 0) + bytes / (rails * links->across.bandwidth);
}

rondo_result select_predict(const struct algorithm *algorithm, const struct selection *selection,
                            const struct link_costs *links, double *ret_seconds)
{
    /* What a message costs is what it costs its receiver, who ends last. */
    bool pair = collective_is_pair(selection->collective);
    const struct cost_subject subject = {algorithm, pair ? RONDO_RECV : selection->collective,
                                         selection->size,
                                         algorithm->levels ? selection->groups : NULL};
    const struct form *form = &algorithm->forms[subject.collective];
    double move_bw = form->promises & PROMISE_PEER_MEMORY ? links->direct_bw : links->copy_bw;
    /* About half of what is reduced was just written by a
     * peer, and arrives no faster than a copy. */
    double reduce_bw = links->reduce_bw < 2 * move_bw ? links->reduce_bw : 2 * move_bw;
    int ranks_per_core = links->cores > 0 ? (selection->size + links->cores - 1) / links->cores : 1;
    struct count count;
    struct cost cost, across;
    double copying, reducing, work;
    rondo_result result = cost_count(&subject, selection->counts, &count);

    if (result)
        return result;
    cost_of(&count, selection->bytes, &cost, &across);
    copying = cost.copied / move_bw;
    reducing = cost.reduced / reduce_bw;
    /* In a reduce of one round the others copy while the root adds up. */
    if (selection->collective == RONDO_REDUCE && cost.steps <= tally_round(selection->size - 1))
        copying = copying > reducing ? copying - reducing : 0;
    work = copying + reducing;
    if (!collective_has_root(selection->collective))
        work *= ranks_per_core;
    else if (links->cores > 0)
        work =
            fmax(work, (cost.all_copied / move_bw + cost.all_reduced / reduce_bw) / links->cores);
    *ret_seconds = ranks_per_core * cost.steps * links->latency + work +
                   time_across(algorithm, selection, links, &cost, subject.groups ? &across : NULL);
    return RONDO_OK;
}

/* Adds words to a list of them; what does not fit `size` bytes is cut. */
static void append(char *text, size_t size, const char *separator, const char *words)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s%s", length ? separator : "", words);
}

static void list_promises(unsigned promises, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < sizeof(promise_words) / sizeof(promise_words[0]); i++)
        if (promises & promise_words[i].promise)
            append(text, size, " and ", promise_words[i].words);
}

static void list_algorithms(char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; algorithms[i]; i++)
        append(text, size, ", ", algorithms[i]->name);
}

/* Names of those that would do. */
static enum log_level level_of(const struct selection *selection)
{
    return selection->quiet ? LOG_DEBUG : LOG_INFO;
}

static void list_fitting(const struct selection *selection, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; algorithms[i]; i++)
        if (is_candidate(algorithms[i], selection))
            append(text, size, ", ", algorithms[i]->name);
    if (!text[0])
        append(text, size, "", "none");
}

static rondo_result take_wanted(const struct selection *selection,
                                const struct algorithm **ret_algorithm)
{
    const struct algorithm *wanted = algorithm_find(selection->wanted);
    const char *collective = rondo_collective_name(selection->collective);
    const struct form *form;
    unsigned why;
    char names[256], promises[256];

    if (!wanted) {
        list_algorithms(names, sizeof(names));
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "There is no algorithm \"%s\"; there are auto, %s.", selection->wanted,
                          names);
    }
    list_fitting(selection, names, sizeof(names));
    form = &wanted->forms[selection->collective];
    if (!form->write)
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "The algorithm \"%s\" has no %s; these have: %s.", wanted->name,
                          collective, names);
    why = obstacles(wanted, selection);
    if (why & PROMISE_PEER_MEMORY) {
        return rondo_fail(
            RONDO_ERROR_UNSUPPORTED,
            "The algorithm \"%s\" of %s needs memory of every rank that its peers can "
            "reach, as rondo_mem_alloc() gives; these do not: %s.",
            wanted->name, collective, names);
    }
    if (why) {
        list_promises(why, promises, sizeof(promises));
        return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                          "The algorithm \"%s\" of %s does not keep %s; these do: %s.",
                          wanted->name, collective, promises, names);
    }
    log_write(level_of(selection), __FILE__, "%s of %.0f bytes over %d ranks: %s, as wanted",
              collective, selection->bytes, selection->size, wanted->name);
    *ret_algorithm = wanted;
    return RONDO_OK;
}

static void explain(const struct selection *selection, const struct link_costs *links,
                    const struct algorithm *winner)
{
    char text[512] = "", groups[80] = "";

    for (int i = 0; algorithms[i]; i++) {
        char candidate[64];
        double seconds;

        if (!suits(algorithms[i], selection) ||
            select_predict(algorithms[i], selection, links, &seconds))
            continue;
        snprintf(candidate, sizeof(candidate), "%s %.1f us", algorithms[i]->name, 1e6 * seconds);
        append(text, sizeof(text), ", ", candidate);
    }
    if (selection->groups) {
        append(groups, sizeof(groups), "", " in groups ");
        grouping_describe(selection->groups, groups + strlen(groups),
                          sizeof(groups) - strlen(groups));
    }
    log_write(level_of(selection), __FILE__, "%s of %.0f bytes over %d ranks%s: %s (predicted: %s)",
              rondo_collective_name(selection->collective), selection->bytes, selection->size,
              groups, winner->name, text);
}

rondo_result select_algorithm(const struct selection *selection, const struct link_costs *links,
                              const struct algorithm **ret_algorithm)
{
    const struct algorithm *best = NULL;
    double least = 0;

    if (selection->wanted && selection->wanted[0] && strcmp(selection->wanted, "auto") != 0)
        return take_wanted(selection, ret_algorithm);
    for (int i = 0; algorithms[i]; i++) {
        double time;
        rondo_result result;

        if (!suits(algorithms[i], selection))
            continue;
        result = select_predict(algorithms[i], selection, links, &time);
        if (result)
            return result;
        if (!best || time < least) {
            best = algorithms[i];
            least = time;
        }
    }
    if (!best) {
        char promises[256];
        list_promises(relevant(selection->collective, selection->need), promises, sizeof(promises));
        return rondo_fail(RONDO_ERROR_UNSUPPORTED, "No algorithm of %s keeps all of: %s.",
                          rondo_collective_name(selection->collective), promises);
    }
    if (log_wants(level_of(selection)))
        explain(selection, links, best);
    *ret_algorithm = best;
    return RONDO_OK;
}
