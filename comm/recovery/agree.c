/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * agree.c - an agreement in a communicator: shows this rank's vote, looks at the others', and finds
 * out whom to suspect.
 *
 * Suspected is who is waited for and has ended, or has closed the communicator; who has not come
 * within the timeout; and who has come and shows no heartbeats any more. One that is seen to have
 * ended is suspected at the second look, when its last vote has been read; if it is on another
 * host, it is only lost, as its connection may be all that has ended. A rank that was itself away,
 * as its whole job may have been stopped, gives the others their time again.
 */
#include "comm/recovery/agreement.h"
#include "comm/recovery/recovery.h"

#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"
#include "comm/engine/post.h"
#include "comm/failure/answer.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/network.h"
#include "comm/state/wait.h"
#include "transport/memory/process.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rank waits for another and knows this of it. */
struct suspicion {
    uint64_t seen; /* of its vote, see vote_read() */
    uint32_t heartbeats;
    double since;  /* when it was last known to be there, or the wait for it began */
    bool ended;    /* it had, at the last look */
    bool heard;    /* a vote has come since */
    uint64_t told; /* number of the agreement of which it was last told */
};

struct recovery {
    struct agreement agreement;
    bool out;             /* the others have gone on without this rank, for good */
    rondo_result parted;  /* recovery_part() */
    double looked, began; /* when the others were looked at; when this rank came */
    int reminders;        /* that the log has of its wait */
    struct vote *votes;
    struct suspicion *suspicions;
};

static struct recovery *recovery_open(const rondo_comm *comm)
{
    size_t size = (size_t)comm->size;
    struct recovery *recovery = calloc(1, sizeof(*recovery));

    if (!recovery)
        return NULL;
    recovery->votes = calloc(size, sizeof(*recovery->votes));
    recovery->suspicions = calloc(size, sizeof(*recovery->suspicions));
    recovery->agreement =
        (struct agreement){.size = comm->size, .rank = comm->rank, .others = recovery->votes};
    if (recovery->votes && recovery->suspicions)
        return recovery;
    free(recovery->votes);
    free(recovery->suspicions);
    free(recovery);
    return NULL;
}

/*
 * Nobody needs what was sent to ranks that an agreement left behind, one perhaps stopped for
 * ever: closing is not to wait for these. The others may still have to read what this rank sent
 * them. A rank that was itself left out waits for nobody.
 */
static void forsake_failed(rondo_comm *comm)
{
    const struct recovery *recovery = comm->recovery;

    for (int rank = 0; rank < comm->size && networks_any(comm); rank++)
        if (rank != comm->rank &&
            (recovery->out || set_has(recovery->agreement.own.verdict.failed, rank)))
            networks_forsake(comm, rank);
}

void recovery_close(rondo_comm *comm)
{
    if (!comm->recovery)
        return;
    forsake_failed(comm);
    free(comm->recovery->votes);
    free(comm->recovery->suspicions);
    free(comm->recovery);
    comm->recovery = NULL;
}

/* ---- Votes ----------------------------------------------------------------------------------- */

static bool is_near(const rondo_comm *comm, int rank)
{
    return comm->processes[rank];
}

static void tell(rondo_comm *comm, int rank)
{
    const struct vote *own = &comm->recovery->agreement.own;

    comm->recovery->suspicions[rank].told = own->number;
    for (int i = 0; i < vote_notes(comm->size); i++) {
        const struct vote_note note = vote_note(own, comm->size, i);

        networks_note(&comm->networks, rank, &note, sizeof(note));
    }
}

/* True if the rank is the lowest of its host that is not suspected: it speaks for its host. */
static bool speaks_for_its_host(const rondo_comm *comm, int rank)
{
    const struct agreement *agreement = &comm->recovery->agreement;
    const unsigned char *host = comm->endpoints[rank].host;

    for (int lower = 0; lower < rank; lower++)
        if (!set_has(agreement->own.suspects, lower) &&
            memcmp(comm->endpoints[lower].host, host, sizeof(comm->endpoints[0].host)) == 0)
            return false;
    return true;
}

/* True if the rank has told this one of this agreement. */
static bool has_told(const rondo_comm *comm, int rank)
{
    const struct recovery *recovery = comm->recovery;

    return recovery->votes[rank].number == recovery->agreement.own.number;
}

/* A coordinator tells all, others tell coordinators, and whom they ask and who asks them; a verdict
 * is told to every host. */
static bool is_told(const rondo_comm *comm, int rank)
{
    const struct agreement *agreement = &comm->recovery->agreement;
    const struct vote *own = &agreement->own;

    if (is_near(comm, rank))
        return false;
    if (agreement_leads(agreement) || agreement_lowest(agreement) == rank ||
        agreement_asks(agreement, rank) || has_told(comm, rank) ||
        (own->promised - 1) % (uint64_t)comm->size == (uint64_t)rank)
        return true;
    return own->decided == own->number && speaks_for_its_host(comm, rank);
}

static void show(rondo_comm *comm)
{
    struct agreement *agreement = &comm->recovery->agreement;

    agreement->changed = false;
    vote_show(&comm->status->vote, &agreement->own);
    for (int rank = 0; rank < comm->size && networks_any(comm); rank++)
        if (is_told(comm, rank))
            tell(comm, rank);
}

/* Ranks of other hosts that have told this one hear its vote as well. */
static void reply(rondo_comm *comm)
{
    const struct recovery *recovery = comm->recovery;

    for (int rank = 0; rank < comm->size && networks_any(comm); rank++)
        if (has_told(comm, rank) && is_told(comm, rank) &&
            recovery->suspicions[rank].told != recovery->agreement.own.number)
            tell(comm, rank);
}

/* The page of a rank that has closed the communicator stays as it is until all have. */
static void read_votes(rondo_comm *comm)
{
    struct recovery *recovery = comm->recovery;

    for (int rank = 0; rank < comm->size; rank++)
        if (rank != comm->rank && health_status(comm, rank))
            recovery->suspicions[rank].heard |=
                vote_read(&comm->status_pages[rank]->vote, &recovery->suspicions[rank].seen,
                          &recovery->votes[rank]);
}

/* ---- Suspicions ------------------------------------------------------------------------------ */

bool recovery_has_ended(const rondo_comm *comm, int rank, bool networks)
{
    if (rank == comm->rank)
        return false;
    if (is_near(comm, rank))
        return !process_alive(comm->processes[rank]) ||
               (comm_is_assembled(comm) && health_has_closed(comm, rank));
    return networks && networks_has_lost(&comm->networks, rank);
}

/* A rank that has come is suspected after so many seconds without a heartbeat. */
static double patience(double timeout)
{
    return timeout > 0 ? fmin(timeout / 2, PATIENCE_SUSPECT) : INFINITY;
}

/* The communicator broke because this rank was silent for the timeout: it had its time. */
static bool had_its_time(const rondo_comm *comm, int rank)
{
    char sentence[FAIL_SENTENCE_MAX];
    int culprit;

    return status_failure(comm->status, &culprit, sentence) == RONDO_ERROR_TIMEOUT &&
           culprit == rank;
}

static double time_for(const rondo_comm *comm, int rank)
{
    double timeout = comm_timeout(comm);

    if (timeout <= 0)
        return INFINITY;
    return agreement_has_come(&comm->recovery->agreement, rank) || had_its_time(comm, rank)
               ? patience(timeout)
               : timeout;
}

static bool is_silent(const rondo_comm *comm, int rank, double now)
{
    struct suspicion *suspicion = &comm->recovery->suspicions[rank];
    const struct status *status = health_status(comm, rank);
    uint32_t heartbeats =
        status ? atomic_load_explicit(&status->heartbeats, memory_order_acquire) : 0;

    if (suspicion->heard || (heartbeats != suspicion->heartbeats &&
                             agreement_has_come(&comm->recovery->agreement, rank)))
        suspicion->since = now;
    suspicion->heartbeats = heartbeats;
    suspicion->heard = false;
    return now - suspicion->since > time_for(comm, rank);
}

static void look_at(rondo_comm *comm, int rank, double now)
{
    struct recovery *recovery = comm->recovery;
    struct suspicion *suspicion = &recovery->suspicions[rank];

    if (!agreement_awaits(&recovery->agreement, rank)) {
        suspicion->since = now;
        return;
    }
    if (recovery_has_ended(comm, rank, true)) {
        if (suspicion->ended && is_near(comm, rank))
            agreement_suspect(&recovery->agreement, rank);
        else if (suspicion->ended)
            agreement_lose(&recovery->agreement, rank); /* the connection may be all that ended */
        suspicion->ended = true;
    } else if (is_silent(comm, rank, now)) {
        agreement_suspect(&recovery->agreement, rank);
    }
}

static void look_after(rondo_comm *comm, double now)
{
    struct recovery *recovery = comm->recovery;
    bool was_away = now - recovery->looked > patience(comm_timeout(comm)) / 2;

    recovery->looked = now;
    status_heartbeat(comm->status, 0);
    for (int rank = 0; rank < comm->size; rank++) {
        if (was_away)
            recovery->suspicions[rank].since = now;
        if (rank != comm->rank)
            look_at(comm, rank, now);
    }
}

/* The first ranks that have not come, as far as this one sees, or (`any`) that it waits for. */
static int list_awaited(const rondo_comm *comm, bool any, char ret_text[128])
{
    const struct agreement *agreement = &comm->recovery->agreement;
    int used = 0;

    for (int rank = 0; rank < comm->size && used < 112; rank++) {
        bool missing = rank != comm->rank && !agreement_has_come(agreement, rank);

        if ((missing && is_near(comm, rank)) ||
            ((missing || any) && agreement_awaits(agreement, rank)))
            used += sprintf(ret_text + used, used ? ", %d" : "%d", rank);
    }
    return used;
}

/* Log who is waited for, when it is time for that. */
static void remind(const rondo_comm *comm, double now)
{
    struct recovery *recovery = comm->recovery;
    char ranks[128];

    if (now < clock_reminder(recovery->began, comm->settings.late, recovery->reminders))
        return;
    recovery->reminders++;
    if (list_awaited(comm, false, ranks) || list_awaited(comm, true, ranks))
        log_warn("Rank %d has waited %g s for rank %s in agreement %llu of communicator %llx of %d "
                 "ranks: all that are left have to make the same call.",
                 comm->rank, clock_tenths(now - recovery->began), ranks,
                 (unsigned long long)recovery->agreement.own.number, (unsigned long long)comm->id,
                 comm->size);
}

/* ---- An agreement ---------------------------------------------------------------------------- */

/* One pause; true: it is time to look after the others. */
static bool pause_agreement(rondo_comm *comm, struct waiter *waiter)
{
    bool moved;

    if (!networks_any(comm))
        return waiter_pause(waiter);
    networks_look(&comm->networks, 1, &moved); /* who is lost is found by who waits for it */
    return networks_pause(comm, waiter, true);
}

static enum agreement_state meet(rondo_comm *comm)
{
    struct recovery *recovery = comm->recovery;
    enum agreement_state state;
    struct waiter waiter;

    waiter_init(&waiter, &comm->tuning.wait);
    recovery->looked = recovery->began = clock_seconds();
    recovery->reminders = 0;
    for (int rank = 0; rank < comm->size; rank++)
        recovery->suspicions[rank].since = recovery->looked;
    show(comm);
    for (;;) {
        read_votes(comm);
        state = agreement_step(&recovery->agreement);
        if (recovery->agreement.changed) {
            show(comm);
            waiter_reset(&waiter);
        }
        if (state != AGREEMENT_WAITS)
            return state;
        reply(comm);
        if (pause_agreement(comm, &waiter)) {
            look_after(comm, waiter.now);
            remind(comm, waiter.now);
        }
    }
}

static rondo_result left_out(const rondo_comm *comm)
{
    return rondo_fail(RONDO_ERROR_PEER,
                      "The other ranks have gone on without rank %d: in an agreement they heard "
                      "nothing from it for the timeout (RONDO_TIMEOUT), or could not reach it. It "
                      "can only close this communicator and join another one.",
                      comm->rank);
}

static rondo_result different(const rondo_comm *comm)
{
    return rondo_fail(RONDO_ERROR_MISMATCH,
                      "In agreement %llu of the communicator some ranks called one of "
                      "rondo_comm_agree(), rondo_comm_shrink() and rondo_comm_grow() and others "
                      "another: all ranks have to call the same functions in the same order.",
                      (unsigned long long)comm->recovery->agreement.own.number);
}

rondo_result recovery_decide(rondo_comm *comm, uint64_t purpose, uint64_t flags,
                             struct verdict *ret_verdict)
{
    if (!comm->recovery)
        comm->recovery = recovery_open(comm);
    if (!comm->recovery)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for an agreement of %d ranks.",
                          comm->size);
    if (comm->recovery->out)
        return left_out(comm);
    if (purpose != PURPOSE_OPEN) /* then calls follow, and with them a thread is not needed */
        answer_start(comm);
    agreement_begin(&comm->recovery->agreement, purpose, flags);
    if (meet(comm) == AGREEMENT_OUT) {
        comm->recovery->out = true;
        return left_out(comm);
    }
    *ret_verdict = comm->recovery->agreement.own.verdict;
    return RONDO_OK;
}

void recovery_part(rondo_comm *comm, rondo_result result)
{
    if (comm->recovery && !comm->recovery->parted)
        comm->recovery->parted = result;
}

rondo_result recovery_parted(const rondo_comm *comm)
{
    return comm->recovery ? comm->recovery->parted : RONDO_OK;
}

/* Ranks that are in a collective, whose result is agreed on (uniform.c), come to this agreement
 * after that: they have parted, and make no such agreement any more. */
static rondo_result agree_in_turn(rondo_comm *comm, enum recovery_purpose purpose, uint64_t flags,
                                  struct verdict *ret_verdict)
{
    rondo_result result = recovery_decide(comm, purpose, flags, ret_verdict);

    if (!result && ret_verdict->purposes & PURPOSE_CALL) {
        recovery_part(comm, uniform_result(ret_verdict->purposes));
        result = recovery_decide(comm, purpose, flags, ret_verdict);
    }
    if (!result && ret_verdict->purposes & (ret_verdict->purposes - 1))
        return different(comm);
    return result;
}

rondo_result recovery_agree(rondo_comm *comm, enum recovery_purpose purpose, uint64_t flags,
                            struct verdict *ret_verdict)
{
    unsigned ticket = turn_take(&comm->turn);
    rondo_result result;

    while (!turn_is(&comm->turn, ticket))
        post_finish_or_doze(comm);
    result = agree_in_turn(comm, purpose, flags, ret_verdict);
    turn_pass(&comm->turn);
    return result;
}

/* ---- Public ---------------------------------------------------------------------------------- */

rondo_result rondo_comm_agree(rondo_comm *comm, uint64_t *flags, int *ret_failed, int *ret_count)
{
    CANCEL_LATER();
    struct verdict verdict;
    rondo_result result = recovery_check(comm, "rondo_comm_agree");
    int count;

    if (!result)
        result = recovery_agree(comm, PURPOSE_AGREE, flags ? *flags : UINT64_MAX, &verdict);
    if (result)
        return comm ? comm_note_error(comm, result) : result;
    if (flags)
        *flags = verdict.flags;
    count = recovery_list(verdict.failed, comm->size, ret_failed);
    if (ret_count)
        *ret_count = count;
    return RONDO_OK;
}
