/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * among.c - a communicator among some ranks of another, of which others may be dead.
 *
 * A message on the parent would break it if one more rank died meanwhile. So nothing is sent there:
 * the first of the ranks opens a meeting point and shows on its status page where that is, which a
 * note tells to the mirrors on other hosts; the secret follows from the parent's. Through the
 * parent everybody knows the processes of those who are to come, and watches them: who has not
 * reached the meeting point all of them, and who serves it as well, who tells those that wait
 * there.
 */
#include "base/cancel.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/proof.h"
#include "comm/engine/call.h"
#include "comm/failure/error.h"
#include "comm/failure/health.h"
#include "comm/failure/network.h"
#include "comm/open.h"
#include "comm/rendezvous/bootstrap.h"
#include "comm/rendezvous/socket.h"
#include "comm/rendezvous/wire.h"
#include "comm/start.h"
#include "transport/memory/process.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(struct invitation_note) <= NETWORK_NOTE, "a note holds an invitation");
_Static_assert(sizeof(((struct invitation *)NULL)->address) == BOOTSTRAP_SHORT_ADDRESS_MAX,
               "an invitation holds any address without a name");

struct among {
    rondo_comm *parent;
    const int *ranks;
    int count, rank; /* of the new communicator */
    struct bootstrap_place place;
    struct invitation invitation;
    double looked;
};

/* ---- The others ------------------------------------------------------------------------------ */

/* Let the networks see what has come. If another thread's call has the turn, that one does so. What
 * they say of a rank that is not wanted any more is nobody's error here. */
static bool take_networks(rondo_comm *parent, unsigned *ret_ticket)
{
    bool moved;

    if (!networks_any(parent) || !turn_take_idle(&parent->turn, ret_ticket))
        return false;
    networks_look(&parent->networks, 1, &moved);
    return true;
}

/* True if the rank has ended. A rank of another host also counts as ended if it has closed the
 * parent. */
static bool has_ended(const rondo_comm *parent, int rank, bool networks)
{
    if (rank == parent->rank)
        return false;
    if (parent->processes[rank])
        return !process_alive(parent->processes[rank]);
    return networks && networks_has_lost(&parent->networks, rank);
}

/* A rank of this host that lives. */
static bool has_closed(const rondo_comm *parent, int rank)
{
    return comm_is_assembled(parent) && rank != parent->rank && parent->processes[rank] &&
           health_has_closed(parent, rank);
}

static void add_name(const rondo_comm *parent, int rank, char *text, size_t size)
{
    size_t used = strlen(text);
    const char *comma = used ? ", " : "";

    if (parent->processes[rank])
        snprintf(text + used, size - used, "%srank %d (process %d)", comma, rank,
                 process_id(parent->processes[rank]));
    else
        snprintf(text + used, size - used, "%srank %d (on another host)", comma, rank);
}

/* Those who will not come, by name. Who closed the parent because somebody else has ended does not
 * count beside that one. */
static int find_missing(const struct among *among, char *text, size_t size, const char **ret_how)
{
    rondo_comm *parent = among->parent;
    unsigned ticket;
    bool networks = take_networks(parent, &ticket);
    int missing = 0;

    *text = '\0';
    *ret_how = "ended";
    for (int i = 0; i < among->count; i++)
        if (has_ended(parent, among->ranks[i], networks)) {
            add_name(parent, among->ranks[i], text, size);
            missing++;
        }
    if (networks)
        turn_pass(&parent->turn);
    for (int i = 0; i < among->count && (!missing || **ret_how == 'c'); i++)
        if (has_closed(parent, among->ranks[i])) {
            add_name(parent, among->ranks[i], text, size);
            *ret_how = "closed the parent";
            missing++;
        }
    return missing;
}

static rondo_result check_others(const struct among *among)
{
    char text[FAIL_SENTENCE_MAX / 2];
    const char *how;
    int missing = find_missing(among, text, sizeof(text), &how);

    if (!missing)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_PEER,
                      "Of the parent communicator, %s %s %s while %d ranks of it were opening "
                      "another one; look at the output for the reason, and do it again (open "
                      "among ranks, or shrink) without %s.",
                      text, missing > 1 ? "have" : "has", how, among->count,
                      missing > 1 ? "them" : "that rank");
}

/* ---- The meeting ----------------------------------------------------------------------------- */

static bool find_invitation(struct among *among)
{
    const rondo_comm *parent = among->parent;
    struct invitation found;

    if (!status_invited(parent->status_pages[among->ranks[0]], among->invitation.tag, &found))
        return false;
    memcpy(among->place.address, found.address, sizeof(found.address));
    return true;
}

static rondo_result look(void *context)
{
    struct among *among = context;
    double now = clock_seconds();

    if (now - among->looked < LOOK_MEMBERS)
        return RONDO_OK;
    among->looked = now;
    if (among->rank)
        find_invitation(among); /* another one, if this is the second try of the same ranks */
    return check_others(among);
}

/* In the first rank: where to, for all the others. */
static void invite(void *context, const char *address)
{
    struct among *among = context;
    rondo_comm *parent = among->parent;
    struct invitation_note note;

    snprintf(among->invitation.address, sizeof(among->invitation.address), "%s", address);
    status_invite(parent->status, &among->invitation);
    note = status_invitation_note(&among->invitation);
    for (int i = 1; i < among->count; i++)
        if (!parent->processes[among->ranks[i]])
            networks_note(&parent->networks, among->ranks[i], &note, sizeof(note));
}

/* For the first rank: on this host alone, or at the address that its endpoint told all the
 * others. */
static rondo_result choose_place(struct among *among)
{
    const rondo_comm *parent = among->parent;

    if (networks_any(parent))
        return networks_place(&parent->networks, among->place.address,
                              sizeof(among->place.address));
    socket_fresh_name("among", among->place.address);
    return RONDO_OK;
}

/* For the other ranks. */
static rondo_result await_invitation(struct among *among, double timeout)
{
    double began = clock_seconds();
    rondo_result result = RONDO_OK;

    while (!find_invitation(among) && !result) {
        result = look(among);
        if (!result && timeout > 0 && clock_seconds() - began > timeout)
            return rondo_fail(RONDO_ERROR_TIMEOUT,
                              "Rank %d waited %.1f s for rank %d of the parent communicator to "
                              "open another one among %d ranks; it has not made this call.",
                              among->parent->rank, timeout, among->ranks[0], among->count);
        doze_for(DOZE_NEWS);
    }
    return result;
}

/* Random numbers of all ranks are on the endpoints, and only ranks of the parent have seen them. */
static rondo_result derive_secret(struct among *among)
{
    const rondo_comm *parent = among->parent;
    unsigned char *secret = among->place.secret, hash[WIRE_HASH];
    rondo_result result = wire_init();

    if (result)
        return result;
    proof_derive(parent->key, parent->endpoints, (size_t)parent->size * sizeof(*parent->endpoints),
                 secret);
    proof_derive(secret, among->ranks, (size_t)among->count * sizeof(*among->ranks), secret);
    wire_hash(secret, BOOTSTRAP_SECRET, hash);
    memcpy(among->invitation.tag, hash, sizeof(among->invitation.tag));
    return RONDO_OK;
}

/* The others are looked at once more: what is seen of a dead rank in the meeting counts ranks in
 * another way, and a broken connection is not all that is known of it. */
static rondo_result explain(const struct among *among, rondo_result result)
{
    double until = clock_seconds() + (result == RONDO_ERROR_PEER ? PATIENCE_CORPSE : 0);
    char sentence[FAIL_SENTENCE_MAX];

    snprintf(sentence, sizeof(sentence), "%s", fail_sentence());
    for (;;) {
        if (check_others(among))
            return RONDO_ERROR_PEER;
        if (clock_seconds() >= until)
            break;
        doze_for(DOZE_PROOF);
    }
    return rondo_fail(result, "%s (Ranks are numbered as in the new communicator of %d.)", sentence,
                      among->count);
}

static rondo_result open_among(struct among *among, const rondo_config *config,
                               rondo_comm **ret_comm)
{
    const struct bootstrap_watch watch = {
        .look = look, .everybody = true, .opened = invite, .context = among};
    const struct membership membership = {.place = among->count > 1 ? &among->place : NULL,
                                          .rank = among->rank,
                                          .size = among->count,
                                          .serve = true,
                                          .watch = &watch};
    struct comm_settings settings;
    rondo_result result = derive_secret(among);

    if (result || among->count == 1)
        return result ? result : start_member(&membership, config, ret_comm);
    if (comm_read_settings(config, among->count, &settings)) /* it declines, at the meeting */
        settings.timeout = comm_timeout(among->parent);
    result = among->rank ? await_invitation(among, settings.timeout) : choose_place(among);
    if (result)
        return result;
    result = start_member(&membership, config, ret_comm);
    return result ? explain(among, result) : RONDO_OK;
}

/* ---- Public ---------------------------------------------------------------------------------- */

static rondo_result check(struct among *among)
{
    const rondo_comm *parent = among->parent;

    among->rank = -1;
    for (int i = 0; i < among->count; i++) {
        int rank = among->ranks[i];
        bool again = false;

        if (rank < 0 || rank >= parent->size)
            return rondo_fail(RONDO_ERROR_INVALID,
                              "rondo_comm_open_among: rank %d is not in the parent, whose ranks go "
                              "from 0 to %d.",
                              rank, parent->size - 1);
        for (int before = 0; before < i; before++)
            again |= among->ranks[before] == rank;
        if (again)
            return rondo_fail(RONDO_ERROR_INVALID,
                              "rondo_comm_open_among: rank %d is in the list twice.", rank);
        if (rank == parent->rank)
            among->rank = i;
    }
    if (among->rank < 0)
        return rondo_fail(RONDO_ERROR_INVALID,
                          "rondo_comm_open_among: rank %d is not among the %d ranks that it names.",
                          parent->rank, among->count);
    return RONDO_OK;
}

rondo_result rondo_comm_open_among(rondo_comm *parent, const int *ranks, int count,
                                   const rondo_config *config, rondo_comm **ret_comm)
{
    CANCEL_LATER();
    struct among among = {.parent = parent, .ranks = ranks, .count = count};
    rondo_config own = config ? *config : (rondo_config)RONDO_CONFIG_INIT;
    rondo_result result = RONDO_OK;

    if (!parent || !ranks || !ret_comm)
        return rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_open_among: needs a communicator, its "
                                               "ranks that go on, and a place for the new one.");
    if (fork_is_foreign(parent->home))
        return comm_refuse(parent, "rondo_comm_open_among");
    if (group_is_open())
        result = rondo_fail(RONDO_ERROR_INVALID, "rondo_comm_open_among: not inside of a group; it "
                                                 "has to wait for the other ranks.");
    if (!result)
        result = check(&among);
    if (!result) {
        own.cuda_device = comm_choose_device(&own);
        result = open_among(&among, &own, ret_comm);
    }
    return comm_note_error(parent, result);
}
