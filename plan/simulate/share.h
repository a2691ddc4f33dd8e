/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * share.h - how flows share links: max-min fair.
 *
 * Every flow is as fast as it can be without taking from a flow that is not faster: rates rise
 * together until a link is full, the flows through it stop there, and the others go on. A link
 * that could carry all of its flows at the most that each reaches alone is *slack*: it slows
 * nobody, so nothing spreads through it. What starts or ends changes the rates of the flows that
 * full links join to it, and no others; they are worked out again at the next share_settle(), once
 * for all that happened at a time.
 *
 * Where more than `region_most` flows hang together, those furthest from the change keep their
 * rates until something happens near them: `cut` counts how often.
 */
#ifndef RONDO_PLAN_SIMULATE_SHARE_H
#define RONDO_PLAN_SIMULATE_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct share_link {
    double bandwidth; /* bytes/s; 0: it has failed */
    double wanted;    /* by all of its flows, if each were alone */
    double bytes;     /* that have gone through it, or are on their way */
    int32_t first;    /* of its hops with a flow on its way; -1: there is none */
    uint32_t visit;
    uint64_t spread; /* the settling that last reached its flows */
    bool changed;
    /* While rates are worked out: what is left, and what would share it. */
    double left, weight;
};

/* A flow through a link. With a weight of 3 it stands for three such flows. */
struct share_hop {
    int32_t link, flow, next, before;
    float weight;
};

struct share_flow {
    uint32_t begin, hops;
    double alone; /* the rate without others */
    double rate, left, since;
    uint32_t version; /* counts changes of its rate */
    uint32_t visit;
    int32_t slowest; /* the link that sets its rate; -1: none does */
    bool active, frozen;
};

struct share {
    struct share_link *links;
    struct share_hop *hops;
    struct share_flow *flows;
    uint32_t link_count, link_room, hop_count, hop_room, flow_count, flow_room;
    int32_t *changed, *region, *touched; /* links with changes; flows and links being worked out */
    uint32_t changed_count, changed_room, region_count, region_room, touched_count, touched_room;
    uint32_t visit, region_most;
    uint64_t settled;
    unsigned long cut;
    bool out_of_memory; /* sticky */
};

void share_open(struct share *share);
void share_close(struct share *share);
/* Nothing flows any more. */
void share_reset(struct share *share);
/* Numbers of new ones; -1 without memory. A flow takes hops of share_add_hop(), in their order. */
int32_t share_add_link(struct share *share, double bandwidth);
int32_t share_add_flow(struct share *share);
bool share_add_hop(struct share *share, int32_t flow, int32_t link, double weight);

/* So many bytes begin to flow, or have all arrived. One that flows already may get more of them
 * until its rate is worked out for the first time. */
void share_start(struct share *share, int32_t flow, double bytes, double now);
void share_stop(struct share *share, int32_t flow);
/* True if rates are to be worked out. */
static inline bool share_changed(const struct share *share)
{
    return share->changed_count > 0;
}
/*
 * Work them out. `tell` hears of each flow whose rate is another one: it ends at
 * since + left / rate, unless it is told of again.
 */
void share_settle(struct share *share, double now, void (*tell)(void *who, int32_t flow),
                  void *who);

#endif
