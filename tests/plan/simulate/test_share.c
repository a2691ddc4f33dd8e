/* SPDX-License-Identifier: BSD-3-Clause */
/* test_share.c - rates are max-min fair. */
#include "plan/simulate/share.h"

#include <criterion/criterion.h>
#include <math.h>

static void ignore(void *who, int32_t flow)
{
    ++*(int *)who;
    (void)flow;
}

static int32_t add(struct share *share, int32_t a, int32_t b)
{
    int32_t flow = share_add_flow(share);

    cr_assert(share_add_hop(share, flow, a, 1));
    if (b >= 0)
        cr_assert(share_add_hop(share, flow, b, 1));
    return flow;
}

static void start(struct share *share, int32_t flow)
{
    int told = 0;

    share_start(share, flow, 100, 0);
    share_settle(share, 0, ignore, &told);
}

static bool is(const struct share *share, int32_t flow, double rate)
{
    return fabs(share->flows[flow].rate - rate) < 1e-9;
}

Test(share, flows_on_one_link_have_equal_parts)
{
    struct share share;
    int32_t link, flows[5];

    share_open(&share);
    link = share_add_link(&share, 10);
    for (int i = 0; i < 5; i++)
        start(&share, flows[i] = add(&share, link, -1));
    for (int i = 0; i < 5; i++)
        cr_assert(is(&share, flows[i], 2));
    share_stop(&share, flows[0]);
    share_settle(&share, 1, ignore, &(int){0});
    cr_assert(is(&share, flows[1], 2.5));
    /* It had 100, and 2 of them went in the second before. */
    cr_assert(fabs(share.flows[flows[1]].left - 98) < 1e-9);
    share_close(&share);
}

Test(share, what_a_slow_flow_leaves_goes_to_the_others)
{
    struct share share;
    int32_t wide, narrow, both, alone;

    share_open(&share);
    wide = share_add_link(&share, 10);
    narrow = share_add_link(&share, 4);
    start(&share, both = add(&share, wide, narrow));
    start(&share, alone = add(&share, wide, -1));
    cr_assert(is(&share, both, 4) && is(&share, alone, 6));
    cr_assert_eq(share.flows[both].slowest, narrow);
    cr_assert_eq(share.flows[alone].slowest, wide);
    start(&share, add(&share, narrow, -1));
    cr_assert(is(&share, both, 2) && is(&share, alone, 8));
    share_close(&share);
}

/* Brute force: each flow has a full link on which nobody is faster. */
Test(share, every_flow_has_a_link_where_it_is_the_fastest_and_that_is_full)
{
    enum { LINKS = 12, FLOWS = 40 };
    unsigned seed = 1;
    struct share share;
    int32_t links[LINKS], flows[FLOWS];

    share_open(&share);
    for (int i = 0; i < LINKS; i++)
        links[i] = share_add_link(&share, 1 + i % 5);
    for (int i = 0; i < FLOWS; i++) {
        int a = (int)((seed = seed * 1103515245 + 12345) >> 16) % LINKS;
        int b = (int)((seed = seed * 1103515245 + 12345) >> 16) % LINKS;

        start(&share, flows[i] = add(&share, links[a], links[b]));
        if (i % 4 == 3) {
            share_stop(&share, flows[i - 2]);
            share_settle(&share, 0, ignore, &(int){0});
        }
    }
    for (int i = 0; i < FLOWS; i++) {
        const struct share_flow *flow = &share.flows[flows[i]];
        bool held = !flow->active;

        for (uint32_t h = flow->begin; h < flow->begin + flow->hops && !held; h++) {
            const struct share_link *link = &share.links[share.hops[h].link];
            double sum = 0, most = 0;

            for (int32_t o = link->first; o >= 0; o = share.hops[o].next) {
                sum += share.hops[o].weight * share.flows[share.hops[o].flow].rate;
                most = fmax(most, share.flows[share.hops[o].flow].rate);
            }
            cr_assert(sum <= link->bandwidth * (1 + 1e-6));
            held = sum >= link->bandwidth * (1 - 1e-6) && flow->rate >= most * (1 - 1e-6);
        }
        cr_assert(held, "flow %d", i);
    }
    share_close(&share);
}
