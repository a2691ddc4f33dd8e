/* SPDX-License-Identifier: BSD-3-Clause */
/* json.c - `rondo ps --json`. */
#include "cli/ps/ps.h"

#include "cli/common/json_file.h"

#include "comm/recorder/late.h"

#include <stdlib.h>

static json_t *hexadecimal(uint64_t number)
{
    return json_sprintf("%llx", (unsigned long long)number);
}

static json_t *call_of(const struct sighting *sighting)
{
    static const char *const states[] = {"empty", "begun", "done", "repeated"};
    const struct sighting_call *call = sighting_call(sighting);
    char words[160];

    if (!call)
        return json_null();
    call_describe(&call->record, words, sizeof(words));
    return json_pack("{s:I,s:s,s:I,s:s,s:s}", "number",
                     (json_int_t)(call->call ? call->call - sighting->record.internal : 0), "words",
                     words, "count", (json_int_t)call->record.count, "algorithm", call->algorithm,
                     "state", states[call->state]);
}

static json_t *waits_of(const struct sighting *sighting)
{
    const struct recorder_waiting *waiting = sighting_wait(sighting);
    json_t *peers = json_array();

    if (!waiting) {
        json_decref(peers);
        return json_null();
    }
    for (int i = 0; i < waiting->peers_count; i++)
        json_array_append_new(peers, json_integer(waiting->peers[i]));
    return json_pack("{s:f,s:o,s:i,s:i,s:s}", "seconds", sighting_waited(sighting), "ranks", peers,
                     "step", (int)waiting->step, "steps", (int)waiting->steps, "what",
                     waiting->what);
}

static json_t *rank_of(const struct sighting *sighting)
{
    const struct recorder_identity *identity = &sighting->record.identity;
    char does[240], state[2] = {sighting->process.state, '\0'};

    sighting_describe_process(sighting, does, sizeof(does));
    if (*state < ' ' || *state > '~')
        *state = '?';
    return json_pack("{s:i,s:i,s:s,s:s,s:s,s:s,s:b,s:o,s:o,s:s*}", "rank", identity->rank,
                     "process", identity->pid, "host", sighting->where, "state",
                     rank_state_name(sighting_state(sighting)), "process_state", state,
                     "process_does", does, "moves", sighting->process.moved, "call",
                     call_of(sighting), "waits", waits_of(sighting), "failure",
                     sighting->record.failed ? sighting->record.failure.sentence : NULL);
}

static json_t *finding_of(const struct sightings *sightings, const struct finding *finding)
{
    json_t *chain = json_array();

    for (int i = 0; i < finding->length; i++) {
        const struct sighting_record *record = &sightings->at[finding->chain[i]]->record;

        json_array_append_new(chain,
                              json_pack("{s:o,s:i}", "communicator", hexadecimal(record->comm),
                                        "rank", record->identity.rank));
    }
    return json_pack("{s:s,s:i,s:f,s:s,s:o}", "cause", cause_name(finding->cause), "rank",
                     finding->culprit_rank, "seconds", finding->seconds, "sentence",
                     finding->sentence, "chain", chain);
}

static json_t *lateness_of(const struct sightings *sightings, const struct lateness *late)
{
    json_t *bins = json_object();

    for (int i = 0; i < LATE_BINS; i++)
        json_object_set_new(bins, late_bin_name(i), json_integer(late->bins[i]));
    return json_pack("{s:i,s:i,s:i,s:f,s:f,s:f,s:o}", "rank",
                     sightings->at[late->sighting]->record.identity.rank, "calls", late->calls,
                     "last", late->last, "mean_seconds", late->mean, "most_seconds", late->most,
                     "held_up_seconds", late->held_up, "histogram", bins);
}

static json_t *comm_of(const struct sightings *sightings, const struct findings *findings,
                       int first)
{
    const struct sighting_record *record = &sightings->at[first]->record;
    json_t *ranks = json_array(), *causes = json_array(), *late = json_array();
    struct lateness *list;
    int count = late_make(sightings, first, &list);

    for (int i = first; i < sightings_comm_end(sightings, first); i++)
        json_array_append_new(ranks, rank_of(sightings->at[i]));
    for (int i = 0; i < findings->count; i++)
        if (findings->at[i].comm == first)
            json_array_append_new(causes, finding_of(sightings, &findings->at[i]));
    for (int i = 0; i < count; i++)
        json_array_append_new(late, lateness_of(sightings, &list[i]));
    free(list);
    return json_pack("{s:o,s:i,s:s,s:o,s:o,s:o}", "communicator", hexadecimal(record->comm), "size",
                     record->identity.size, "program", record->identity.program, "ranks", ranks,
                     "causes", causes, "late", late);
}

int ps_write_json(const struct sightings *sightings, const struct findings *findings)
{
    json_t *list = json_array();

    for (int i = 0; i < sightings->count; i = sightings_comm_end(sightings, i))
        json_array_append_new(list, comm_of(sightings, findings, i));
    return json_file_write("rondo ps", "-", json_pack("{s:o}", "communicators", list)) ? 0 : 1;
}
