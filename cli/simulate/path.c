/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path.c - what the time of a call was spent on.
 *
 * From the last thing that ended back to the beginning, always to the one that the next had to
 * wait for: together these make up the time. What lies between two of them is latency.
 */
#include "cli/simulate/simulate.h"

#include <stdlib.h>
#include <string.h>

/* Seconds of the path by what they were spent on. */
struct ledger {
    double *links; /* flows that this link paced */
    double *ranks; /* moves of this kind of rank */
    double latency;
};

static void follow(const struct simulate_result *times, struct ledger *ledger)
{
    double until = times->end;

    for (uint32_t at = times->last; at;) {
        const struct record *record = &times->records[at - 1];
        double begin = record->begin < until ? record->begin : until;
        double end = record->end < until ? record->end : until;

        ledger->latency += until - end;
        if (record->what >= 0)
            ledger->links[record->what] += end - begin;
        else
            ledger->ranks[record->rank] += end - begin;
        until = begin;
        at = record->before;
    }
    ledger->latency += until;
}

/* The places are kept in order, the largest first. */
static void offer(struct place places[ASK_PLACES], double part, const char *text)
{
    int at = ASK_PLACES;

    while (at > 0 && part > places[at - 1].part)
        at--;
    if (at == ASK_PLACES)
        return;
    memmove(&places[at + 1], &places[at], sizeof(*places) * (size_t)(ASK_PLACES - 1 - at));
    places[at].part = part;
    snprintf(places[at].text, sizeof(places[at].text), "%s", text);
}

static void name_link(const struct programs *programs, uint32_t link, char *text, size_t size)
{
    route_name(&programs->machine, &programs->hops[link], text, size);
}

void path_places(const struct programs *programs, const struct simulate_result *times,
                 struct answer *answer)
{
    int kinds = programs->fold.period;
    struct ledger ledger = {
        .links = calloc(programs->share.link_count + 1, sizeof(*ledger.links)),
        .ranks = calloc((size_t)kinds, sizeof(*ledger.ranks)),
    };
    char text[160];

    if (ledger.links && ledger.ranks && times->end > 0) {
        follow(times, &ledger);
        for (uint32_t i = 0; i < programs->share.link_count; i++) {
            name_link(programs, i, text, sizeof(text));
            offer(answer->places, ledger.links[i] / times->end, text);
        }
        for (int i = 0; i < kinds; i++) {
            snprintf(text, sizeof(text), "rank %d, which copies and reduces", i);
            offer(answer->places, ledger.ranks[i] / times->end, text);
        }
        offer(answer->places, ledger.latency / times->end, "latency");
        answer->last_rank = times->last_rank;
        answer->path = true;
    }
    free(ledger.links);
    free(ledger.ranks);
}

void path_busiest(const struct programs *programs, const struct simulate_result *times,
                  struct answer *answer)
{
    char text[160];

    for (uint32_t i = 0; i < programs->share.link_count && times->end > 0; i++) {
        double part = times->link_bytes[i] / programs->share.links[i].bandwidth / times->end;

        if (part <= answer->busiest[ASK_PLACES - 1].part)
            continue;
        name_link(programs, i, text, sizeof(text));
        offer(answer->busiest, part, text);
    }
}

void path_sentence(const struct ask *ask, const struct answer *answer, FILE *to)
{
    const char *between = "";
    char size[32];

    report_size(answer->bytes, size, sizeof(size));
    fprintf(to, "# %s of %s by %s: ", rondo_collective_name((rondo_collective)ask->collective),
            size, answer->algorithm->name);
    if (answer->path)
        fprintf(to, "rank %d is last", answer->last_rank);
    for (int i = 0; i < ASK_PLACES && answer->path && answer->places[i].part >= 0.005; i++) {
        bool wait = strcmp(answer->places[i].text, "latency") != 0;

        fprintf(to, "%s %.0f %% of the time %s%s", i ? "," : "; ", 100 * answer->places[i].part,
                wait ? "it waits for " : "is ", answer->places[i].text);
    }
    between = answer->path ? ". Busiest:" : "busiest:";
    for (int i = 0; i < ASK_PLACES && answer->busiest[i].part > 0; i++, between = ",")
        fprintf(to, "%s %s (%.0f %%)", between, answer->busiest[i].text,
                100 * answer->busiest[i].part);
    fprintf(to, ".\n");
}
