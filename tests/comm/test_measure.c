/* SPDX-License-Identifier: BSD-3-Clause */
/* test_measure.c - costs: given ones are taken as they are,
 * nonsense is refused, measured ones make sense. */
#include "comm/state/comm.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static rondo_result open_with(const char *costs, int size, rondo_comm **comms)
{
    if (costs)
        setenv("RONDO_COSTS", costs, 1);
    else
        unsetenv("RONDO_COSTS");
    return rondo_comm_open_all(size, NULL, comms);
}

Test(measure, given_costs_are_used_on_every_rank)
{
    rondo_comm *comms[3];

    cr_assert(open_with("2.5,4,8", 3, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < 3; r++) {
        cr_expect(fabs(comms[r]->tuning.costs.latency - 2.5e-6) < 1e-12);
        cr_expect(comms[r]->tuning.costs.copy_bw == 4e9 && comms[r]->tuning.costs.direct_bw == 4e9);
        cr_expect(comms[r]->tuning.costs.reduce_bw == 8e9 && comms[r]->tuning.costs.cores >= 1);
        rondo_comm_close(comms[r]);
    }
}

Test(measure, costs_that_make_no_sense_are_refused_and_shown)
{
    static const char *const wrong[] = {"1",           "1,2",          "0,1,1",     "1,-1,1",
                                        "1,1,0",       "nan,1,1",      "1,inf,1",   "1,2,3junk",
                                        "a,b,c",       "1,2,3,4",      "1,2,3,4,0", "1,2,3,0,5,1",
                                        "1,2,3,4,5,0", "1,2,3,4,5,6,7"};

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        for (int size = 1; size < 4; size++) {
            rondo_comm *comms[3] = {NULL};

            cr_expect(open_with(wrong[i], size, comms) == RONDO_ERROR_INVALID, "%s", wrong[i]);
            cr_expect(strstr(rondo_last_error(NULL), wrong[i]), "%s", rondo_last_error(NULL));
            cr_expect(comms[0] == NULL);
        }
}

Test(measure, measured_costs_are_positive_and_the_same_on_every_rank)
{
    for (int size = 1; size < 5; size++) {
        rondo_comm *comms[4];

        cr_assert(open_with(NULL, size, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
        for (int r = 0; r < size; r++) {
            const struct link_costs *costs = &comms[r]->tuning.costs;

            cr_expect(costs->latency > 0 && costs->copy_bw > 0 && costs->direct_bw > 0 &&
                      costs->reduce_bw > 0);
            cr_expect(memcmp(costs, &comms[0]->tuning.costs, sizeof(*costs)) == 0);
            cr_expect(comms[r]->tuning.reads_across == comms[0]->tuning.reads_across);
        }
        for (int r = 0; r < size; r++)
            rondo_comm_close(comms[r]);
    }
}

Test(measure, costs_from_group_to_group_are_given_or_measured)
{
    rondo_comm *comms[4];

    setenv("RONDO_GROUPS", "2x2", 1);
    cr_assert(open_with("1,2,3,40,0.5,2", 4, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < 4; r++) {
        cr_expect(fabs(comms[r]->tuning.costs.across.latency - 40e-6) < 1e-12);
        cr_expect(comms[r]->tuning.costs.across.bandwidth == 5e8 &&
                  comms[r]->tuning.costs.across.rails == 2);
        rondo_comm_close(comms[r]);
    }
    cr_assert(open_with(NULL, 4, comms) == RONDO_OK, "%s", rondo_last_error(NULL));
    for (int r = 0; r < 4; r++) {
        const struct group_costs *costs = &comms[r]->tuning.costs.across;

        cr_expect(costs->latency > 0 && costs->bandwidth > 0 && costs->rails == 2);
        cr_expect(costs->latency == comms[0]->tuning.costs.across.latency);
    }
    for (int r = 0; r < 4; r++)
        rondo_comm_close(comms[r]);
}
