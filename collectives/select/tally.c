/* SPDX-License-Identifier: BSD-3-Clause */
/* tally.c - counts what one rank does: see tally.h. */
#include "collectives/select/tally.h"

#include "collectives/levels/grouping.h"

#include <math.h>

static const struct round no_messages = {.first_sent = -1, .first_awaited = -1};

double tally_round(double messages)
{
    return messages > 1 ? 1 + 0.25 * (messages - 1) : messages;
}

static enum reach reach_of(const struct tally *tally, int rank, int peer)
{
    const struct grouping *groups = tally->groups;

    return groups && groups->group_of[rank] != groups->group_of[peer] ? FAR : NEAR;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void end_round(struct tally *tally)
{
    const struct round *round = &tally->round;

    for (int reach = 0; reach < REACHES; reach++)
        tally->steps[reach] += tally_round(fmax(round->sends[reach], round->waits[reach]));
    tally->round = no_messages;
}

static void read_sent(struct tally *tally, int peer, enum reach reach)
{
    if (tally->round.first_awaited >= 0 || tally->round.first_sent == peer)
        end_round(tally);
    if (tally->round.first_sent < 0)
        tally->round.first_sent = peer;
    tally->round.sends[reach]++;
    tally->sends[reach] = true;
    tally->longest[reach] = fmax(tally->longest[reach], tally->filled);
    tally->left = true;
}

static void read_awaited(struct tally *tally, int peer, enum reach reach)
{
    if (tally->round.first_awaited == peer)
        end_round(tally);
    if (tally->round.first_awaited < 0)
        tally->round.first_awaited = peer;
    tally->round.waits[reach]++;
    tally->takes[reach] = true;
}

/* ---- Bytes ----------------------------------------------------------------------------------- */

/* Counts the operands in others' memory, and the slots, which hold what others sent or shall
 * get. */
static int count_foreign(const struct tally *tally, const struct plan *plan,
                         const struct plan_operand *operands, int count, int *ret_far)
{
    int foreign = 0;

    *ret_far = 0;
    for (int i = 0; i < count; i++)
        if (operands[i].rank != plan->rank) {
            foreign++;
            *ret_far += reach_of(tally, plan->rank, operands[i].rank) == FAR;
        }
    return foreign;
}

static bool fills_slot(const struct plan *plan, const struct plan_step *step)
{
    const struct plan_operand *destinations = plan_destinations(plan, step);

    return destinations[step->destinations - 1].buffer == PLAN_SLOT;
}

static void read_move(struct tally *tally, const struct plan *plan, const struct plan_step *step)
{
    double length = step->atoms, beyond_first = length * (step->destinations - 1) / 2;
    double copied = step->verb == PLAN_COPY ? length + beyond_first : beyond_first;
    double reduced = step->verb == PLAN_REDUCE ? length * step->sources : 0;
    int far_taken, far_sent, program = plan->programs - 1;

    tally->taken +=
        length * count_foreign(tally, plan, plan_sources(plan, step), step->sources, &far_taken);
    tally->sent += length * count_foreign(tally, plan, plan_destinations(plan, step),
                                          step->destinations, &far_sent);
    tally->taken_far += length * far_taken;
    tally->sent_far += length * far_sent;
    tally->copied[program] += copied;
    tally->reduced[program] += reduced;
    if (far_taken || far_sent) {
        tally->copied_far += copied;
        tally->reduced_far += reduced;
    }
    if (fills_slot(plan, step)) {
        tally->filled = tally->left ? length : tally->filled + length;
        tally->left = false;
    }
}

static void read_step(struct plan_reader *reader, const struct plan *plan,
                      const struct plan_step *step)
{
    struct tally *tally = (struct tally *)reader; /* its first member */
    enum reach reach;

    if (step->verb == PLAN_COPY || step->verb == PLAN_REDUCE) {
        read_move(tally, plan, step);
        return;
    }
    if (step->event != PLAN_DATA || step->peer == plan->rank)
        return;
    reach = reach_of(tally, plan->rank, step->peer);
    if (step->verb == PLAN_SIGNAL)
        read_sent(tally, step->peer, reach);
    else
        read_awaited(tally, step->peer, reach);
}

void tally_open(struct tally *tally, const struct grouping *groups)
{
    *tally = (struct tally){.reader = {read_step}, .groups = groups, .round = no_messages};
}

void tally_close(struct tally *tally)
{
    end_round(tally);
}
