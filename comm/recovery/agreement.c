/* SPDX-License-Identifier: BSD-3-Clause */
/* agreement.c - see agreement.h. A ballot is round * size + rank of its coordinator + 1. */
#include "comm/recovery/agreement.h"

#include <string.h>

static int coordinator_of(const struct agreement *agreement, uint64_t ballot)
{
    return ballot ? (int)((ballot - 1) % (uint64_t)agreement->size) : -1;
}

static bool is_suspect(const struct agreement *agreement, int rank)
{
    return rank < 0 || (rank != agreement->rank && set_has(agreement->own.suspects, rank));
}

/* A vote in this agreement, of a rank that is believed; NULL: there is none. */
static const struct vote *vote_of(const struct agreement *agreement, int rank)
{
    const struct vote *vote = &agreement->others[rank];

    return rank != agreement->rank && !is_suspect(agreement, rank) &&
                   vote->number == agreement->own.number
               ? vote
               : NULL;
}

/* True if the owner of the vote suspects others than this rank, whom this one does not. */
static bool names_more(const struct agreement *agreement, const struct vote *vote)
{
    uint64_t more[VOTE_SET], any = 0;

    memcpy(more, vote->suspects, sizeof(more));
    set_leave(more, agreement->own.suspects);
    set_remove(more, agreement->rank);
    for (int i = 0; i < VOTE_SET; i++)
        any |= more[i];
    return any;
}

static bool is_doubted(const struct agreement *agreement)
{
    for (int rank = 0; rank < agreement->size; rank++) {
        const struct vote *vote = vote_of(agreement, rank);

        if (vote && set_has(vote->suspects, agreement->rank))
            return true;
    }
    return false;
}

int agreement_lowest(const struct agreement *agreement)
{
    bool doubted = is_doubted(agreement);

    for (int rank = 0; rank < agreement->size; rank++)
        if (!is_suspect(agreement, rank) && !(doubted && rank == agreement->rank))
            return rank;
    return -1;
}

bool agreement_leads(const struct agreement *agreement)
{
    return coordinator_of(agreement, agreement->own.promised) == agreement->rank;
}

bool agreement_has_come(const struct agreement *agreement, int rank)
{
    return agreement->others[rank].number >= agreement->own.number;
}

void agreement_begin(struct agreement *agreement, uint64_t purpose, uint64_t flags)
{
    struct vote *own = &agreement->own;
    int first = 0;

    set_join(own->suspects, own->verdict.failed);
    set_leave(own->lost, own->verdict.failed);
    set_remove(own->suspects, agreement->rank);
    own->asks = 0;
    memset(agreement->watched, 0, sizeof(agreement->watched));
    /* All know the verdict before, and so who coordinates first: that needs no promise. */
    while (first < agreement->size - 1 && set_has(own->verdict.failed, first))
        first++;
    own->number++;
    own->purpose = purpose;
    own->flags = flags;
    own->promised = (uint64_t)first + 1;
    own->accepted = 0;
    memset(&own->proposal, 0, sizeof(own->proposal));
    agreement->changed = true;
}

void agreement_suspect(struct agreement *agreement, int rank)
{
    struct vote *own = &agreement->own;

    if (set_has(own->suspects, rank) && !set_has(own->lost, rank))
        return;
    set_add(own->suspects, rank);
    set_remove(own->lost, rank);
    agreement->changed = true;
}

void agreement_lose(struct agreement *agreement, int rank)
{
    if (set_has(agreement->own.suspects, rank))
        return;
    agreement_suspect(agreement, rank);
    set_add(agreement->own.lost, rank);
}

/* ---- What is heard --------------------------------------------------------------------------- */

/* Take the verdict of any rank that has it. */
static bool hear_verdict(struct agreement *agreement)
{
    struct vote *own = &agreement->own;

    for (int rank = 0; rank < agreement->size; rank++) {
        const struct vote *vote = &agreement->others[rank];

        if (rank == agreement->rank || vote->decided != own->number)
            continue;
        own->decided = own->number;
        own->verdict = vote->verdict;
        agreement->changed = true;
        return true;
    }
    return false;
}

/* Others have ended this agreement and the next: they did not miss this rank. */
static bool is_left_behind(const struct agreement *agreement)
{
    for (int rank = 0; rank < agreement->size; rank++)
        if (rank != agreement->rank && agreement->others[rank].decided > agreement->own.number)
            return true;
    return false;
}

/* ---- Suspicions of others -------------------------------------------------------------------- */

/* How many of the ranks that are not suspected here a rank has lost, or have lost it. */
static int losses_of(const struct agreement *agreement, int rank)
{
    int losses = 0;

    for (int other = 0; other < agreement->size; other++) {
        const struct vote *others = vote_of(agreement, other);

        losses += !set_has(agreement->own.suspects, other) &&
                  (set_has(agreement->others[rank].suspects, other) ||
                   (others && set_has(others->suspects, rank)));
    }
    return losses;
}

/* Two ranks that this one hears have lost each other, so they cannot both go on: the one stays that
 * has lost fewer, or is the lower one. */
static void part(struct agreement *agreement, int one, int other)
{
    int more = losses_of(agreement, one) - losses_of(agreement, other);

    agreement_suspect(agreement, more > 0 || (!more && one > other) ? one : other);
}

/* Believe what a rank says for sure. What it has only lost, others may still hear. Also passed on
 * is that this rank is suspected, as who follows it may not hear those who suspect it. */
static void believe(struct agreement *agreement, const struct vote *vote)
{
    struct vote *own = &agreement->own;
    uint64_t sure[VOTE_SET];

    memcpy(sure, vote->suspects, sizeof(sure));
    set_leave(sure, vote->lost);
    agreement->changed |= set_join(own->suspects, sure);
    set_leave(own->lost, sure);
}

/* A rank has lost some that this one has not. Those that this one hears, and that have lost the
 * rank as well, cannot go on with it. The others are watched until this rank loses or hears
 * them. */
static void settle(struct agreement *agreement, int rank)
{
    const struct vote *vote = vote_of(agreement, rank);

    for (int other = 0; other < agreement->size; other++) {
        const struct vote *others = vote_of(agreement, other);

        if (!others || !set_has(vote->lost, other))
            continue;
        if (set_has(others->suspects, rank))
            part(agreement, rank, other);
        if (is_suspect(agreement, rank))
            return;
    }
}

/* Note whom to watch: those that others have lost, and whom one of them asks to look at. */
static void watch(struct agreement *agreement, int rank)
{
    const struct vote *vote = vote_of(agreement, rank);

    set_join(agreement->watched, vote->lost);
    if (set_has(vote->lost, agreement->rank))
        set_add(agreement->watched, rank);
    if (vote->asks && vote->asks <= (uint64_t)agreement->size)
        set_add(agreement->watched, (int)vote->asks - 1);
}

static void hear_suspicions(struct agreement *agreement)
{
    uint64_t asks = 0, before[VOTE_SET];

    for (int rank = 0; rank < agreement->size; rank++)
        if (vote_of(agreement, rank))
            believe(agreement, vote_of(agreement, rank));
    for (int rank = 0; rank < agreement->size; rank++)
        if (vote_of(agreement, rank) && names_more(agreement, vote_of(agreement, rank)))
            settle(agreement, rank);
    memcpy(before, agreement->watched, sizeof(before));
    memset(agreement->watched, 0, sizeof(agreement->watched));
    for (int rank = 0; rank < agreement->size; rank++) {
        const struct vote *vote = vote_of(agreement, rank);

        if (!vote)
            continue;
        watch(agreement, rank);
        if (!names_more(agreement, vote))
            continue;
        set_add(agreement->watched, rank); /* what it has lost is of no account once it has ended */
        if (!asks)
            asks = (uint64_t)rank + 1;
    }
    agreement->changed |= set_join(before, agreement->watched) || asks != agreement->own.asks;
    agreement->own.asks = asks;
}

/* ---- Following ------------------------------------------------------------------------------- */

/* Promise the highest ballot that its coordinator asks for, and accept its proposal. */
static void follow(struct agreement *agreement)
{
    struct vote *own = &agreement->own;
    const struct vote *vote;
    int coordinator;

    for (int rank = 0; rank < agreement->size; rank++) {
        vote = vote_of(agreement, rank);
        if (vote && !names_more(agreement, vote) && vote->promised > own->promised &&
            coordinator_of(agreement, vote->promised) == rank) {
            own->promised = vote->promised;
            agreement->changed = true;
        }
    }
    coordinator = coordinator_of(agreement, own->promised);
    vote = is_suspect(agreement, coordinator) ? NULL : vote_of(agreement, coordinator);
    if (vote && !names_more(agreement, vote) && vote->accepted == own->promised &&
        own->accepted != own->promised) {
        own->accepted = vote->accepted;
        own->proposal = vote->proposal;
        agreement->changed = true;
    }
}

/* ---- The coordinator ------------------------------------------------------------------------- */

/* A ballot of this rank that is higher than any it has seen. */
static uint64_t next_ballot(const struct agreement *agreement)
{
    uint64_t size = (uint64_t)agreement->size, highest = agreement->own.promised;

    for (int rank = 0; rank < agreement->size; rank++)
        if (agreement->others[rank].number == agreement->own.number &&
            agreement->others[rank].promised > highest)
            highest = agreement->others[rank].promised;
    return ((highest - 1) / size + 1) * size + (uint64_t)agreement->rank + 1;
}

/* True if a rank has promised a higher ballot to a coordinator that is suspected by now. It cannot
 * take that back, and waits for a ballot that is higher still. */
static bool is_overtaken(const struct agreement *agreement)
{
    for (int rank = 0; rank < agreement->size; rank++) {
        const struct vote *vote = vote_of(agreement, rank);

        if (vote && vote->promised > agreement->own.promised &&
            is_suspect(agreement, coordinator_of(agreement, vote->promised)))
            return true;
    }
    return false;
}

/* Take over from a coordinator that is suspected; false: this rank does not coordinate. */
static bool take_over(struct agreement *agreement)
{
    int coordinator = coordinator_of(agreement, agreement->own.promised);

    if (coordinator == agreement->rank ? !is_overtaken(agreement)
                                       : !is_suspect(agreement, coordinator))
        return coordinator == agreement->rank;
    if (agreement_lowest(agreement) != agreement->rank)
        return false;
    agreement->own.promised = next_ballot(agreement);
    agreement->changed = true;
    return true;
}

/* True if the rank has promised the ballot and, once that is proposed, accepted it. */
static bool is_with(const struct agreement *agreement, int rank)
{
    const struct vote *own = &agreement->own;
    const struct vote *vote = vote_of(agreement, rank);

    return vote && vote->promised == own->promised &&
           (own->accepted != own->promised || vote->accepted == own->promised);
}

static bool all_are_with(const struct agreement *agreement)
{
    for (int rank = 0; rank < agreement->size; rank++)
        if (rank != agreement->rank && !is_suspect(agreement, rank) && !is_with(agreement, rank))
            return false;
    return true;
}

/* Proposes what was accepted under the highest ballot, or what the votes give if nothing was. */
static void propose(struct agreement *agreement)
{
    struct vote *own = &agreement->own;
    const struct vote *best = own;
    struct verdict fresh = {.flags = own->flags, .purposes = own->purpose};

    memcpy(fresh.failed, own->suspects, sizeof(fresh.failed));
    set_remove(fresh.failed, agreement->rank);
    for (int rank = 0; rank < agreement->size; rank++) {
        const struct vote *vote = vote_of(agreement, rank);

        if (!vote)
            continue;
        fresh.flags &= vote->flags;
        fresh.purposes |= vote->purpose;
        if (vote->accepted > best->accepted)
            best = vote;
    }
    own->proposal = best->accepted ? best->proposal : fresh;
    own->accepted = own->promised;
    agreement->changed = true;
}

/* Nothing is decided while a rank that is heard has lost others that this one has not. */
static void lead(struct agreement *agreement)
{
    struct vote *own = &agreement->own;

    if (!take_over(agreement) || own->asks || !all_are_with(agreement))
        return;
    if (own->accepted != own->promised)
        propose(agreement);
    if (!all_are_with(agreement))
        return;
    own->decided = own->number;
    own->verdict = own->proposal;
    agreement->changed = true;
}

/* ---- Public ---------------------------------------------------------------------------------- */

enum agreement_state agreement_step(struct agreement *agreement)
{
    struct vote *own = &agreement->own;

    if (own->decided != own->number && !hear_verdict(agreement)) {
        if (is_left_behind(agreement))
            return AGREEMENT_OUT;
        hear_suspicions(agreement);
        follow(agreement);
        lead(agreement);
    }
    if (own->decided != own->number)
        return AGREEMENT_WAITS;
    return set_has(own->verdict.failed, agreement->rank) ? AGREEMENT_OUT : AGREEMENT_DECIDED;
}

bool agreement_asks(const struct agreement *agreement, int rank)
{
    return agreement->own.asks && rank != agreement->rank && !is_suspect(agreement, rank) &&
           set_has(agreement->watched, rank);
}

bool agreement_awaits(const struct agreement *agreement, int rank)
{
    int coordinator = coordinator_of(agreement, agreement->own.promised);

    if (rank == agreement->rank || is_suspect(agreement, rank))
        return false;
    if (agreement_leads(agreement) || set_has(agreement->watched, rank))
        return true;
    return rank == (is_suspect(agreement, coordinator) ? agreement_lowest(agreement) : coordinator);
}
