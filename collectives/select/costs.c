/* SPDX-License-Identifier: BSD-3-Clause */
/* costs.c - costs that somebody has written down: RONDO_COSTS, `rondo explain --costs`. */
#include "collectives/select/select.h"

#include "base/caller/number.h"

#include <math.h>

enum { INSIDE = 3, WITHOUT_RAILS = 5, COSTS = 6, RAILS_MAX = 1024 };

/* Positive numbers with ',' between. Returns how many, 0 if that is not what the text is. */
static int read_numbers(const char *text, double ret_numbers[COSTS])
{
    for (int i = 0; i < COSTS; i++) {
        char *end;

        ret_numbers[i] = number_read(text, &end);
        if (end == text || !isfinite(ret_numbers[i]) || ret_numbers[i] <= 0)
            return 0;
        if (!*end)
            return i + 1;
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

bool costs_read(const char *text, struct link_costs *costs)
{
    double numbers[COSTS] = {[COSTS - 1] = 1};
    int read = read_numbers(text, numbers);

    if ((read != INSIDE && read != WITHOUT_RAILS && read != COSTS) || numbers[COSTS - 1] < 1 ||
        numbers[COSTS - 1] > RAILS_MAX)
        return false;
    if (read > INSIDE)
        costs->across = (struct group_costs){
            .latency = 1e-6 * numbers[3], .bandwidth = 1e9 * numbers[4], .rails = (int)numbers[5]};
    costs->latency = 1e-6 * numbers[0];
    costs->copy_bw = costs->direct_bw = 1e9 * numbers[1];
    costs->reduce_bw = 1e9 * numbers[2];
    return true;
}
