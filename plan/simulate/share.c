/* SPDX-License-Identifier: BSD-3-Clause */
/* share.c - max-min fair rates, worked out where something changed. */
#include "plan/simulate/share.h"

#include "plan/simulate/list.h"

#include <math.h>
#include <string.h>

enum { REGION_MOST = 256 };

/* Sums of rates may be off by their rounding. */
static const double ROUNDING = 1e-9;

void share_open(struct share *share)
{
    memset(share, 0, sizeof(*share));
    share->region_most = REGION_MOST;
}

void share_close(struct share *share)
{
    free(share->links);
    free(share->hops);
    free(share->flows);
    free(share->changed);
    free(share->region);
    free(share->touched);
    memset(share, 0, sizeof(*share));
}

void share_reset(struct share *share)
{
    for (uint32_t i = 0; i < share->link_count; i++) {
        share->links[i].first = -1;
        share->links[i].wanted = 0;
        share->links[i].changed = false;
    }
    for (uint32_t i = 0; i < share->flow_count; i++)
        share->flows[i].active = false;
    share->changed_count = 0;
}

int32_t share_add_link(struct share *share, double bandwidth)
{
    if (!list_grow((void **)&share->links, &share->link_room, share->link_count + 1,
                   sizeof(*share->links)))
        return -1;
    share->links[share->link_count] = (struct share_link){.bandwidth = bandwidth, .first = -1};
    return (int32_t)share->link_count++;
}

int32_t share_add_flow(struct share *share)
{
    if (!list_grow((void **)&share->flows, &share->flow_room, share->flow_count + 1,
                   sizeof(*share->flows)))
        return -1;
    share->flows[share->flow_count] =
        (struct share_flow){.begin = share->hop_count, .alone = HUGE_VAL, .slowest = -1};
    return (int32_t)share->flow_count++;
}

bool share_add_hop(struct share *share, int32_t flow, int32_t link, double weight)
{
    struct share_flow *owner = &share->flows[flow];
    double alone;

    /* A flow that passes a link more than once weighs more there. */
    for (uint32_t i = owner->begin; i < owner->begin + owner->hops; i++)
        if (share->hops[i].link == link) {
            share->hops[i].weight += (float)weight;
            owner->alone = fmin(owner->alone, share->links[link].bandwidth / share->hops[i].weight);
            return true;
        }
    alone = share->links[link].bandwidth / weight;
    if (!list_grow((void **)&share->hops, &share->hop_room, share->hop_count + 1,
                   sizeof(*share->hops)))
        return false;
    share->hops[share->hop_count++] =
        (struct share_hop){.link = link, .flow = flow, .weight = (float)weight};
    owner->hops++;
    owner->alone = fmin(owner->alone, alone);
    return true;
}

static bool push(int32_t **list, uint32_t *count, uint32_t *room, int32_t item)
{
    if (!list_grow((void **)list, room, *count + 1, sizeof(**list)))
        return false;
    (*list)[(*count)++] = item;
    return true;
}

static void change(struct share *share, int32_t link)
{
    if (share->links[link].changed)
        return;
    share->links[link].changed = true;
    if (!push(&share->changed, &share->changed_count, &share->changed_room, link))
        share->out_of_memory = true;
}

static bool is_tight(const struct share_link *link)
{
    return link->wanted > link->bandwidth * (1 + ROUNDING);
}

/* ---- Flows begin and end --------------------------------------------------------------------- */

void share_start(struct share *share, int32_t number, double bytes, double now)
{
    struct share_flow *flow = &share->flows[number];

    if (flow->active) {
        flow->left += bytes;
        for (uint32_t i = flow->begin; i < flow->begin + flow->hops; i++)
            share->links[share->hops[i].link].bytes += share->hops[i].weight * bytes;
        return;
    }
    flow->active = true;
    flow->left = bytes;
    flow->since = now;
    flow->rate = 0;
    for (uint32_t i = flow->begin; i < flow->begin + flow->hops; i++) {
        struct share_hop *hop = &share->hops[i];
        struct share_link *link = &share->links[hop->link];

        hop->next = link->first;
        hop->before = -1;
        if (link->first >= 0)
            share->hops[link->first].before = (int32_t)i;
        link->first = (int32_t)i;
        link->wanted += hop->weight * flow->alone;
        link->bytes += hop->weight * bytes;
        /* The first hop is where the flow itself is found. */
        if (i == flow->begin || is_tight(link))
            change(share, hop->link);
    }
}

void share_stop(struct share *share, int32_t number)
{
    struct share_flow *flow = &share->flows[number];

    flow->active = false;
    flow->version++;
    for (uint32_t i = flow->begin; i < flow->begin + flow->hops; i++) {
        struct share_hop *hop = &share->hops[i];
        struct share_link *link = &share->links[hop->link];

        if (is_tight(link))
            change(share, hop->link);
        if (hop->before >= 0)
            share->hops[hop->before].next = hop->next;
        else
            link->first = hop->next;
        if (hop->next >= 0)
            share->hops[hop->next].before = hop->before;
        link->wanted = link->first < 0 ? 0 : link->wanted - hop->weight * flow->alone;
    }
}

/* ---- Who is concerned ------------------------------------------------------------------------ */

static void take_flow(struct share *share, int32_t number)
{
    struct share_flow *flow = &share->flows[number];

    if (flow->visit == share->visit)
        return;
    flow->visit = share->visit;
    flow->frozen = false;
    if (!push(&share->region, &share->region_count, &share->region_room, number))
        share->out_of_memory = true;
}

static void take_flows(struct share *share, struct share_link *link)
{
    link->spread = share->settled;
    for (int32_t i = link->first; i >= 0; i = share->hops[i].next)
        take_flow(share, share->hops[i].flow);
}

/* A full link limits the flows of the region; those that it has beside them join it. */
static void take_link(struct share *share, int32_t number)
{
    struct share_link *link = &share->links[number];

    if (link->visit == share->visit)
        return;
    link->visit = share->visit;
    link->left = link->bandwidth;
    link->weight = 0;
    if (!push(&share->touched, &share->touched_count, &share->touched_room, number))
        share->out_of_memory = true;
    else if (share->region_count > share->region_most)
        share->cut++;
    else
        take_flows(share, link);
}

/* All flows that full links join to a link with a change. */
static void collect(struct share *share, int32_t number)
{
    struct share_link *link = &share->links[number];

    share->visit++;
    share->region_count = share->touched_count = 0;
    if (is_tight(link) || link->bandwidth <= 0)
        take_link(share, number);
    else /* a slack link joins nobody: each of its flows goes as fast as its other links let it */
        take_flows(share, link);
    for (uint32_t f = 0; f < share->region_count; f++) {
        const struct share_flow *flow = &share->flows[share->region[f]];

        for (uint32_t i = flow->begin; i < flow->begin + flow->hops; i++)
            if (is_tight(&share->links[share->hops[i].link]))
                take_link(share, share->hops[i].link);
    }
}

/* ---- Rates ----------------------------------------------------------------------------------- */

/* Works out what flows outside of the region leave of each link, and the weights that share it. */
static void prepare(struct share *share)
{
    for (uint32_t l = 0; l < share->touched_count; l++) {
        struct share_link *link = &share->links[share->touched[l]];
        double all = 0;

        for (int32_t i = link->first; i >= 0; i = share->hops[i].next) {
            const struct share_flow *flow = &share->flows[share->hops[i].flow];

            all += share->hops[i].weight;
            if (flow->visit == share->visit)
                link->weight += share->hops[i].weight;
            else
                link->left -= share->hops[i].weight * flow->rate;
        }
        /* Those outside are to be slowed down at the next change: nobody waits for that long. */
        link->left = fmax(link->left, 0.5 * link->bandwidth * link->weight / all);
    }
}

static void freeze(struct share *share, int32_t number, double rate, int32_t slowest, double now,
                   void (*tell)(void *who, int32_t flow), void *who)
{
    struct share_flow *flow = &share->flows[number];

    flow->frozen = true;
    for (uint32_t i = flow->begin; i < flow->begin + flow->hops; i++) {
        struct share_link *link = &share->links[share->hops[i].link];

        if (link->visit != share->visit)
            continue;
        link->left = fmax(link->left - share->hops[i].weight * rate, 0);
        link->weight -= share->hops[i].weight;
    }
    flow->slowest = slowest;
    if (fabs(rate - flow->rate) <= ROUNDING * flow->rate)
        return;
    flow->left = fmax(flow->left - flow->rate * (now - flow->since), 0);
    flow->since = now;
    flow->rate = rate;
    flow->version++;
    tell(who, number);
}

/* The link that alone sets a flow's rate. */
static int32_t narrowest(const struct share *share, const struct share_flow *flow)
{
    int32_t found = -1;
    double least = HUGE_VAL;

    for (uint32_t i = flow->begin; i < flow->begin + flow->hops; i++) {
        double alone = share->links[share->hops[i].link].bandwidth / share->hops[i].weight;

        if (alone < least) {
            least = alone;
            found = share->hops[i].link;
        }
    }
    return found;
}

/* The touched link that is full first, at the rate `ret_level`; -1: none. Links without flows
 * leave the list. */
static int32_t first_full(struct share *share, double *ret_level)
{
    int32_t found = -1;
    uint32_t kept = 0;

    *ret_level = HUGE_VAL;
    for (uint32_t l = 0; l < share->touched_count; l++) {
        const struct share_link *link = &share->links[share->touched[l]];

        if (link->weight <= ROUNDING)
            continue;
        if (link->left / link->weight < *ret_level) {
            *ret_level = link->left / link->weight;
            found = share->touched[l];
        }
        share->touched[kept++] = share->touched[l];
    }
    share->touched_count = kept;
    return found;
}

/* Raises all rates of the region until nothing is left to raise. */
static void raise_rates(struct share *share, double now, void (*tell)(void *who, int32_t flow),
                        void *who)
{
    while (share->region_count && !share->out_of_memory) {
        double level;
        int32_t full = first_full(share, &level);
        uint32_t kept = 0;

        /* Those that alone are no faster than this stop first: so the level only rises. */
        for (uint32_t f = 0; f < share->region_count; f++) {
            struct share_flow *flow = &share->flows[share->region[f]];

            if (!flow->frozen && flow->alone <= level)
                freeze(share, share->region[f], flow->alone, narrowest(share, flow), now, tell,
                       who);
            if (!flow->frozen)
                share->region[kept++] = share->region[f];
        }
        if (kept < share->region_count || full < 0) {
            share->region_count = full < 0 ? 0 : kept;
            continue;
        }
        for (int32_t i = share->links[full].first; i >= 0; i = share->hops[i].next)
            if (share->flows[share->hops[i].flow].visit == share->visit &&
                !share->flows[share->hops[i].flow].frozen)
                freeze(share, share->hops[i].flow, level, full, now, tell, who);
    }
}

void share_settle(struct share *share, double now, void (*tell)(void *who, int32_t flow), void *who)
{
    share->settled++;
    for (uint32_t i = 0; i < share->changed_count; i++) {
        struct share_link *link = &share->links[share->changed[i]];

        link->changed = false;
        if (link->spread == share->settled)
            continue; /* together with a link before it */
        collect(share, share->changed[i]);
        prepare(share);
        raise_rates(share, now, tell, who);
    }
    share->changed_count = 0;
}
