/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * job.c - a job whose ranks may end and come, see rondo/elastic.h.
 *
 * All that ranks decide here comes out of agreements, which are the same on every rank that is
 * left, also when ranks end in the middle of them. The flags that go into one, and-ed over ranks:
 *
 *     WELL         this rank has done the piece of work
 *     NOBODY       nobody knocks (only rank 0 looks)
 *     IS_NEW       this rank came later and has no state; if all are new, nobody has it any more
 *     HAS_STATE    if all have it, nothing needs to be shared
 *     MAY_FAIL     this piece of work may fail and be tried again
 */
#include "rondo/elastic.h"

#include "base/caller/name.h"
#include "base/caller/times.h"
#include "ddp/elastic/door.h"
#include "ddp/elastic/grow.h"
#include "ddp/fail.h"
#include "rondo/bindings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WELL = 1, NOBODY = 2, IS_NEW = 4, HAS_STATE = 8, MAY_FAIL = 16 };
enum { FAILURES_MOST = 3, INVITATIONS_MOST = 5 };

struct rondo_elastic {
    rondo_comm *comm;
    rondo_config settings;
    char *algorithm, *network; /* copies of the names in the settings, or NULL */
    struct door *door;
    int least, most; /* most 0: any number */
    bool is_new;     /* it came to a job that ran, and has no state yet */
    bool has_state;  /* a piece of work has counted since it came */
    bool counted;    /* the last piece of work did */
    bool failed;     /* this rank has said so of itself */
    /* Failures in a row that this rank has seen, in which nobody was lost; settling in between does
     * not count. Newcomers have seen fewer, so ranks agree on MAY_FAIL, which it goes into. */
    int failures;
    bool settles; /* the next piece of work is the first one on this communicator */
};

/* ---- Opening --------------------------------------------------------------------------------- */

static rondo_result read_limits(rondo_elastic *job)
{
    const char *text = getenv("RONDO_ELASTIC");
    int least = 1, most = 0, length = 0;

    if (text && *text &&
        (sscanf(text, "%d:%d%n", &least, &most, &length) != 2 || text[length] || least < 1 ||
         most < least))
        return ddp_fail(RONDO_ERROR_INVALID,
                        "RONDO_ELASTIC is '%s': accepted is MIN:MAX, as 2:4, with 1 <= MIN <= MAX.",
                        text);
    job->least = job->least ? job->least : least;
    job->most = job->most ? job->most : most;
    if (job->least < 1 || (job->most && job->most < job->least))
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_elastic_open: from %d to %d ranks: accepted is 1 <= least <= most.",
                        job->least, job->most);
    return RONDO_OK;
}

static rondo_result begin(rondo_elastic *job)
{
    rondo_result result = door_begin(job->door);

    if (result)
        return result;
    result = rondo_comm_open(&job->settings, &job->comm);
    if (result)
        return ddp_fail_call(result, NULL, "Beginning the job");
    door_say_begun(job->door);
    return RONDO_OK;
}

/* Whoever is invited in vain knocks again, as a member may have ended at just that time, or another
 * newcomer. Who has met nobody (RONDO_ERROR_INVALID) is not invited by the same rank 0 again: the
 * members would stand still for it once more. */
static rondo_result join(rondo_elastic *job)
{
    rondo_result result = RONDO_ERROR_PEER;
    int invitations = 0;

    if (!job->door)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "This process is to join a job, and nobody has said which: set RONDO_DOOR "
                        "to the folder that the job has, or start it by `rondo run --join`.");
    job->is_new = true;
    while (result && invitations < INVITATIONS_MOST) {
        struct door_invitation invitation;
        rondo_result knocked = door_knock(job->door, result == RONDO_ERROR_INVALID, &invitation);

        if (knocked)
            return knocked;
        if (!invitation.size)
            break;
        invitations++;
        result = elastic_grow(NULL, &invitation.id, invitation.size, invitation.rank,
                              &job->settings, &job->comm);
    }
    if (result)
        return ddp_fail(result,
                        "Joining the job: %d invitation%s in vain, the last one because of "
                        "this: %s If this host cannot reach the members at that address, let "
                        "RONDO_INTERFACE say there which interface it can reach.",
                        invitations, invitations == 1 ? " was" : "s were", rondo_last_error(NULL));
    return door_enter(job->door);
}

rondo_result rondo_elastic_open(const rondo_elastic_config *config, const rondo_config *comm_config,
                                rondo_elastic **ret_job)
{
    static const rondo_config defaults = RONDO_CONFIG_INIT;
    const char *joins = getenv("RONDO_JOIN");
    rondo_elastic *job;
    rondo_result result;

    if (!ret_job || (config && config->struct_size != sizeof(*config)))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_elastic_open: %s.",
                        ret_job ? "the config is not of this version: set struct_size"
                                : "no place for the job");
    job = calloc(1, sizeof(*job));
    if (!job)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for a job.");
    job->settings = comm_config ? *comm_config : defaults;
    job->least = config ? config->least : 0;
    job->most = config ? config->most : 0;
    result = name_keep(&job->settings.algorithm, &job->algorithm) &&
                     name_keep(&job->settings.network, &job->network)
                 ? read_limits(job)
                 : ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for the names of algorithms.");
    if (!result)
        result =
            door_open(config && config->door ? config->door : getenv("RONDO_DOOR"), &job->door);
    if (!result)
        result =
            (config && config->newcomer) || (joins && !strcmp(joins, "1")) ? join(job) : begin(job);
    if (result) {
        rondo_elastic_close(job);
        return result;
    }
    *ret_job = job;
    return RONDO_OK;
}

void rondo_elastic_close(rondo_elastic *job)
{
    if (!job)
        return;
    if (job->counted && !job->failed)
        door_say_over(job->door);
    rondo_comm_close(job->comm);
    door_close(job->door);
    free(job->algorithm);
    free(job->network);
    free(job);
}

void rondo_elastic_fail(rondo_elastic *job)
{
    if (job)
        job->failed = true;
}

rondo_comm *rondo_elastic_comm(const rondo_elastic *job)
{
    return job ? job->comm : NULL;
}

int rondo_elastic_has_state(const rondo_elastic *job)
{
    return job && job->has_state;
}

/* ---- Ranks that have failed ------------------------------------------------------------------ */

static void replace(rondo_elastic *job, rondo_comm *comm)
{
    rondo_comm_close(job->comm);
    job->comm = comm;
    job->settles = true;
}

static rondo_result go_on_without(rondo_elastic *job, bool may_fail, rondo_elastic_outcome *outcome)
{
    rondo_comm *smaller = NULL;
    int before = rondo_comm_size(job->comm), left;
    rondo_result result = rondo_comm_shrink(job->comm, NULL, &smaller);

    if (result)
        return ddp_fail_call(result, job->comm, "Going on with the ranks that are left");
    replace(job, smaller);
    left = rondo_comm_size(smaller);
    outcome->changed = 1;
    outcome->lost = before - left;
    job->failures = outcome->lost ? 0 : job->failures + !outcome->counts;
    if (left < job->least)
        return ddp_fail(
            RONDO_ERROR_PEER,
            "%d of %d ranks have failed: the %d that %s left are fewer than the %d with "
            "which the job goes on.",
            outcome->lost, before, left, left == 1 ? "is" : "are", job->least);
    if (!outcome->counts && !outcome->lost && !may_fail)
        return ddp_fail(RONDO_ERROR_PEER,
                        "The same work has failed %d times in a row, though all %d ranks are "
                        "there: look at what each of them said.",
                        FAILURES_MOST, left);
    return RONDO_OK;
}

/* ---- Newcomers ------------------------------------------------------------------------------- */

/* Rank 0 tells the others this; `count` 0: nobody comes. */
struct call_for {
    int32_t count;
    rondo_unique_id id;
};

static int room_for(const rondo_elastic *job)
{
    int room = job->most ? job->most - rondo_comm_size(job->comm) : DOOR_GUESTS;

    return room < 0 ? 0 : room < DOOR_GUESTS ? room : DOOR_GUESTS;
}

static bool somebody_knocks(const rondo_elastic *job)
{
    char names[1][DOOR_NAME];

    return rondo_comm_rank(job->comm) == 0 && room_for(job) > 0 &&
           door_look(job->door, names, 1) > 0;
}

/* RONDO_ADDRESS does not count, unless this host has no network: it may be of this host only, or
 * that of another rank 0 before. */
static rondo_result create_id(rondo_unique_id *ret_id)
{
    rondo_result result = rondo_unique_id_create_at("", 2 * PATIENCE_GROW, ret_id);

    return result ? rondo_unique_id_create(ret_id) : result; /* without a network */
}

/* Rank 0's part; what goes wrong here means that nobody comes. */
static void invite(rondo_elastic *job, struct call_for *ret_call)
{
    char names[DOOR_GUESTS][DOOR_NAME];
    int count = door_look(job->door, names, room_for(job)), size = rondo_comm_size(job->comm);
    struct door_invitation invitation = {.size = size + count};

    if (!count || create_id(&invitation.id))
        return;
    for (int i = 0; i < count; i++) {
        invitation.rank = size + i;
        if (door_invite(job->door, names[i], &invitation))
            return; /* it would never come; those invited before find nobody, and knock again */
    }
    ret_call->id = invitation.id;
    ret_call->count = count;
}

/* Says whether all members know whom to let in. */
static bool all_heard(rondo_comm *comm, struct call_for *call)
{
    uint64_t heard =
        !rondo_broadcast(call, call, sizeof(*call), RONDO_UINT8, 0, comm, NULL) && call->count;
    int failed = 0;

    return !rondo_comm_agree(comm, &heard, NULL, &failed) && heard && !failed;
}

/* Members lose nothing when it fails: they stay as they are, newcomers knock again, and if a member
 * has failed the next piece of work does, too. */
static void let_in(rondo_elastic *job, rondo_elastic_outcome *outcome)
{
    struct call_for call = {0};
    rondo_comm *grown = NULL;
    int size = rondo_comm_size(job->comm);

    if (rondo_comm_rank(job->comm) == 0)
        invite(job, &call);
    if (!all_heard(job->comm, &call) ||
        elastic_grow(job->comm, &call.id, size + call.count, rondo_comm_rank(job->comm),
                     &job->settings, &grown))
        return;
    replace(job, grown);
    outcome->changed = outcome->share = 1;
    outcome->joined = call.count;
}

/* ---- Agreement ------------------------------------------------------------------------------- */

static uint64_t flags_of(const rondo_elastic *job, int well)
{
    uint64_t flags = (job->is_new ? IS_NEW : 0) | (job->has_state ? HAS_STATE : 0);

    if (well)
        flags |= WELL;
    if (job->failures + 1 < FAILURES_MOST)
        flags |= MAY_FAIL;
    if (!somebody_knocks(job))
        flags |= NOBODY;
    return flags;
}

rondo_result rondo_elastic_agree(rondo_elastic *job, int well, rondo_elastic_outcome *ret_outcome)
{
    rondo_elastic_outcome outcome = {0};
    rondo_result result;
    uint64_t flags;
    int failed = 0;

    if (!job || !ret_outcome)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_elastic_agree: there is no %s.",
                        job ? "place for the outcome" : "job");
    result = ddp_check_call(job, "rondo_elastic_agree");
    if (result)
        return result;
    flags = flags_of(job, well);
    job->counted = false;
    if (!well)
        rondo_comm_revoke(job->comm);
    result = rondo_comm_agree(job->comm, &flags, NULL, &failed);
    if (result)
        return ddp_fail_call(result, job->comm, "Agreeing on a piece of work");
    if (flags & IS_NEW)
        return ddp_fail(RONDO_ERROR_PEER, "All ranks that had the state of the job have failed; "
                                          "what is left are newcomers: go on from a checkpoint.");
    outcome.counts = (flags & WELL) != 0;
    job->counted = outcome.counts;
    outcome.share = !outcome.counts && !(flags & HAS_STATE);
    if (outcome.counts) {
        job->has_state = true;
        job->is_new = false;
        job->failures = job->settles ? job->failures : 0;
        job->settles = false;
    }
    if (!outcome.counts || failed)
        result = go_on_without(job, (flags & MAY_FAIL) != 0, &outcome);
    if (!result && !(flags & NOBODY))
        let_in(job, &outcome);
    if (!result)
        *ret_outcome = outcome;
    return result;
}
