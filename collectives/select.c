/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * select.c - the cheapest algorithm that keeps what was promised.
 *
 *     time = steps * latency + copied / copy_bw + reduced / reduce_bw
 *
 * with numbers that were measured once and are the same on every rank, so that all ranks choose
 * alike. When ranks outnumber cores everything takes as many times longer as there are ranks on a
 * core: their work adds up, and a message arrives only when its reader gets its turn.
 */
#include "collectives/select.h"

#include "base/collective.h"
#include "base/fail.h"
#include "base/log.h"

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

/* Why a form can't be taken: promises that it breaks, forbidden ones that it makes; 0 if it can. */
static unsigned obstacles(const struct form *form, const struct selection *selection)
{
    unsigned need = relevant(selection->collective, selection->need);

    return (need & ~form->promises) | (selection->forbid & form->promises);
}

double select_predict(const struct form *form, const struct selection *selection,
                      const struct link_costs *links)
{
    double move_bw = form->promises & PROMISE_PEER_MEMORY ? links->direct_bw : links->copy_bw;
    /* About half of what is reduced was just written by a
     * peer, and arrives no faster than a copy. */
    double reduce_bw = links->reduce_bw < 2 * move_bw ? links->reduce_bw : 2 * move_bw;
    int crowd = links->cores > 0 ? (selection->size + links->cores - 1) / links->cores : 1;
    struct cost cost;

    form->cost(selection->size, selection->bytes, &cost);
    return crowd * (cost.steps * links->latency + cost.copied / move_bw + cost.reduced / reduce_bw);
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
static void list_fitting(const struct selection *selection, char *text, size_t size)
{
    text[0] = '\0';
    for (int i = 0; algorithms[i]; i++) {
        const struct form *form = &algorithms[i]->forms[selection->collective];
        if (form->write && !obstacles(form, selection))
            append(text, size, ", ", algorithms[i]->name);
    }
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
    why = obstacles(form, selection);
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
    log_info("%s of %.0f bytes over %d ranks: %s, as wanted", collective, selection->bytes,
             selection->size, wanted->name);
    *ret_algorithm = wanted;
    return RONDO_OK;
}

static void explain(const struct selection *selection, const struct link_costs *links,
                    const struct algorithm *winner)
{
    char text[512] = "";

    for (int i = 0; algorithms[i]; i++) {
        const struct form *form = &algorithms[i]->forms[selection->collective];
        char candidate[64];

        if (!form->write || obstacles(form, selection))
            continue;
        snprintf(candidate, sizeof(candidate), "%s %.1f us", algorithms[i]->name,
                 1e6 * select_predict(form, selection, links));
        append(text, sizeof(text), ", ", candidate);
    }
    log_info("%s of %.0f bytes over %d ranks: %s (predicted: %s)",
             rondo_collective_name(selection->collective), selection->bytes, selection->size,
             winner->name, text);
}

rondo_result select_algorithm(const struct selection *selection, const struct link_costs *links,
                              const struct algorithm **ret_algorithm)
{
    const struct algorithm *best = NULL;
    double least = 0;

    if (selection->wanted && selection->wanted[0] && strcmp(selection->wanted, "auto") != 0)
        return take_wanted(selection, ret_algorithm);
    for (int i = 0; algorithms[i]; i++) {
        const struct form *form = &algorithms[i]->forms[selection->collective];
        double time;

        if (!form->write || obstacles(form, selection))
            continue;
        time = select_predict(form, selection, links);
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
    if (log_wants(LOG_INFO))
        explain(selection, links, best);
    *ret_algorithm = best;
    return RONDO_OK;
}
