/* SPDX-License-Identifier: BSD-3-Clause */
/* auto.c - asks the choice of the library, which goes by what messages and bytes cost. */
#include "cli/explain/auto.h"

/* Groups matter to the choice also where the algorithm of the subject does not look at them. */
static rondo_result selection_open(const struct subject *subject, unsigned forbid,
                                   struct grouping **ret_groups, struct selection *ret_selection)
{
    *ret_groups = NULL;
    *ret_selection = (struct selection){.collective = subject->collective,
                                        .size = subject->ranks,
                                        .bytes = subject->count * ELEMENT_BYTES,
                                        .forbid = forbid,
                                        .quiet = true};
    if (subject->group_text) {
        rondo_result result = grouping_parse(subject->group_text, subject->ranks, ret_groups);

        if (result)
            return result;
    }
    ret_selection->groups = *ret_groups;
    return RONDO_OK;
}

rondo_result auto_choose(const struct subject *subject, const struct link_costs *costs,
                         unsigned forbid, const struct algorithm **ret_algorithm)
{
    struct grouping *groups;
    struct selection selection;
    rondo_result result = selection_open(subject, forbid, &groups, &selection);

    if (!result)
        result = select_algorithm(&selection, costs, ret_algorithm);
    grouping_close(groups);
    return result;
}

rondo_result auto_predict(const struct subject *subject, const struct link_costs *costs,
                          double *ret_seconds)
{
    struct grouping *groups;
    struct selection selection;
    rondo_result result = selection_open(subject, 0, &groups, &selection);

    if (!result)
        result = select_predict(subject->algorithm, &selection, costs, ret_seconds);
    grouping_close(groups);
    return result;
}

/* "direct 8.1 us" */
static void print_time(struct subject subject, const struct algorithm *algorithm,
                       const struct link_costs *costs)
{
    double seconds;

    subject.algorithm = algorithm;
    printf("%s", algorithm->name);
    if (!auto_predict(&subject, costs, &seconds))
        printf(" (%.4g us)", 1e6 * seconds);
}

void auto_print(const struct subject *subject, const struct link_costs *costs)
{
    const struct algorithm *first, *other;
    char block[40];

    if (auto_choose(subject, costs, 0, &first) ||
        auto_choose(subject, costs, PROMISE_PEER_MEMORY, &other))
        return;
    subject_bytes(subject->count * ELEMENT_BYTES, block, sizeof(block));
    printf("This is what auto takes for %s where a message takes %.3g us and a rank copies\n"
           "%.3g GB/s and reduces %.3g GB/s (--costs): ",
           subject->collective == RONDO_BARRIER ? "a barrier" : block, 1e6 * costs->latency,
           costs->copy_bw / 1e9, costs->reduce_bw / 1e9);
    print_time(*subject, first, costs);
    if (other != first) {
        printf(", and where ranks can't reach\neach other's memory ");
        print_time(*subject, other, costs);
    }
    printf(".\n--algo names another, --predict shows all.\n");
    if (subject->group_text && !subject_sees_groups(subject))
        printf("It does not look at the groups %s, so nothing below does.\n", subject->group_text);
}
