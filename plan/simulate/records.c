/* SPDX-License-Identifier: BSD-3-Clause */
/* records.c - what took time, what it waited for, and why nothing happens any more. */
#include "plan/simulate/state.h"

#include "base/fail.h"

enum { RECORDS_MAX = 30000000 }; /* 1.4 GB */

uint32_t record_add(struct simulation *s, struct record record)
{
    struct simulate_result *result = s->result;

    if (!result->records_complete || record.end <= record.begin)
        return record.before;
    if (result->record_count >= RECORDS_MAX ||
        !list_grow((void **)&result->records, &s->record_room, result->record_count + 1,
                   sizeof(record))) {
        result->records_complete = false;
        return 0;
    }
    result->records[result->record_count++] = record;
    return result->record_count;
}

/* A link that has failed, with a flow that cannot pass it; -1: there is none. */
static int32_t find_failed(const struct share *share, int32_t *ret_flow)
{
    for (uint32_t f = 0; f < share->flow_count; f++) {
        const struct share_flow *flow = &share->flows[f];

        for (uint32_t i = flow->begin; flow->active && i < flow->begin + flow->hops; i++)
            if (share->links[share->hops[i].link].bandwidth <= 0) {
                *ret_flow = (int32_t)f;
                return share->hops[i].link;
            }
    }
    return -1;
}

rondo_result explain_standstill(const struct simulation *s)
{
    const struct programs *programs = s->programs;
    int32_t flow = 0, link = find_failed(&programs->share, &flow);
    char name[128];

    if (link < 0)
        return rondo_fail(RONDO_ERROR_INTERNAL,
                          "The plans of %d ranks stop half way in the simulation: %u programs wait "
                          "for ever. `rondo verify` says whether the plans are right.",
                          programs->fold.ranks, s->left);
    route_name(&programs->machine, &programs->hops[link], name, sizeof(name));
    return rondo_fail(RONDO_ERROR_UNSUPPORTED,
                      "Rank %d waits for rank %d for ever: its message has to pass %s, which has "
                      "failed, and no other way leads there. %u programs of all ranks do not end.",
                      programs->wires[s->wire_of_flow[flow]].to,
                      programs->wires[s->wire_of_flow[flow]].from, name, s->left);
}
