/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * roster.c - who has come to the meeting point, and what to tell everybody if it cannot
 * work.
 *
 * Only proven claims get here, so a sentence of this file always speaks about members of the job.
 */
#include "comm/rendezvous/server.h"

#include "base/fail.h"
#include "base/log.h"

#include <endian.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void seal(struct roster *roster, rondo_result result, const void *answer, size_t bytes)
{
    roster->decided = true;
    roster->result = result;
    roster->answer = answer;
    roster->answer_bytes = bytes;
    wire_hash(answer, bytes, roster->answer_hash);
}

/* Decide that the rendezvous has failed, with a sentence for all members. */
__attribute__((format(printf, 3, 4))) static void decide(struct roster *roster, rondo_result result,
                                                         const char *format, ...)
{
    va_list arguments;

    if (roster->decided)
        return;
    va_start(arguments, format);
    vsnprintf(roster->sentence, sizeof(roster->sentence), format, arguments);
    va_end(arguments);
    seal(roster, result, roster->sentence, strlen(roster->sentence));
}

static void fill_member(struct member *member, unsigned pid, const char *host)
{
    *member = (struct member){.present = true, .pid = pid};
    memcpy(member->host, host, WIRE_HOST);
    member->host[WIRE_HOST - 1] = '\0';
}

static rondo_result allocate(struct roster *roster, int size, size_t blob_bytes)
{
    size_t total = (size_t)size * blob_bytes;

    roster->members = calloc((size_t)size, sizeof(*roster->members));
    roster->blobs = malloc(total ? total : 1);
    if (!roster->members || !roster->blobs)
        return rondo_fail(RONDO_ERROR_MEMORY, "no memory for the blobs of %d ranks", size);
    roster->size = size;
    roster->blob_bytes = blob_bytes;
    relay_tree_init(&roster->tree, roster->relays ? 0 : size);
    return RONDO_OK;
}

rondo_result roster_init(struct roster *roster, const struct server_task *task)
{
    char host[WIRE_HOST] = "";
    rondo_result result;

    memset(roster, 0, sizeof(*roster));
    roster->address = task->place->address;
    roster->relays = task->relays;
    if (!task->size)
        return RONDO_OK;
    result = allocate(roster, task->size, task->blob_bytes);
    if (result || !task->blob)
        return result;
    gethostname(host, sizeof(host) - 1);
    roster->claims++;
    roster->tree.clients--;
    fill_member(&roster->members[0], (unsigned)getpid(), host);
    memcpy(roster->blobs, task->blob, task->blob_bytes);
    roster_arrive(roster, 0);
    roster_position(roster, 0);
    return RONDO_OK;
}

void roster_done(struct roster *roster)
{
    free(roster->members);
    free(roster->blobs);
    relay_tree_done(&roster->tree);
    memset(roster, 0, sizeof(*roster));
}

static bool plausible(uint32_t size, size_t blob_bytes)
{
    return size >= 1 && size <= WIRE_RANKS_MAX && blob_bytes <= WIRE_BLOB_MAX &&
           size * (uint64_t)blob_bytes <= WIRE_ALL_BLOBS_MAX;
}

/* Two processes of one rank: nobody can know whose the other ranks are. */
static void decide_twice(struct roster *roster, uint32_t rank, const struct member *who,
                         unsigned pid, const char *host)
{
    decide(roster, RONDO_ERROR_INVALID,
           "two ranks claimed number %u: pid %u on %s and pid %u on %s; give each job an address "
           "of its own (MASTER_PORT or RONDO_ADDRESS)",
           (unsigned)rank, pid, host, who->pid, who->host);
}

static bool fits(struct roster *roster, const struct member *who, uint32_t rank, uint32_t size,
                 size_t blob_bytes)
{
    if (size != (uint32_t)roster->size)
        decide(roster, RONDO_ERROR_MISMATCH,
               "rank %u (pid %u on %s) says that the job has %u ranks, others at the meeting point "
               "%s say %d: start all ranks with the same size",
               (unsigned)rank, who->pid, who->host, (unsigned)size, roster->address, roster->size);
    else if (rank >= size)
        decide(roster, RONDO_ERROR_INVALID,
               "pid %u on %s claims rank %u of %u: ranks go from 0 to %u", who->pid, who->host,
               (unsigned)rank, (unsigned)size, (unsigned)size - 1);
    else if (blob_bytes != roster->blob_bytes)
        decide(roster, RONDO_ERROR_MISMATCH,
               "rank %u (pid %u on %s) brings %zu bytes where others bring %zu: is Rondo the same "
               "version everywhere?",
               (unsigned)rank, who->pid, who->host, blob_bytes, roster->blob_bytes);
    else if (roster->members[rank].present)
        decide_twice(roster, rank, who, roster->members[rank].pid, roster->members[rank].host);
    return !roster->decided;
}

bool roster_claim(struct roster *roster, const struct wire_claim *claim, size_t blob_bytes)
{
    uint32_t rank = le32toh(claim->rank), size = le32toh(claim->size);
    struct member who;

    roster->claims++;
    fill_member(&who, le32toh(claim->pid), claim->host);
    if (roster->decided)
        return false;
    if (claim->rival)
        decide_twice(roster, rank, &who, le32toh(claim->rival), who.host);
    else if (!roster->size && !plausible(size, blob_bytes))
        decide(roster, RONDO_ERROR_INVALID,
               "pid %u on %s asks for a job of %u ranks with %zu bytes each: that is too much",
               who.pid, who.host, (unsigned)size, blob_bytes);
    else if (!roster->size && allocate(roster, (int)size, blob_bytes))
        decide(roster, RONDO_ERROR_MEMORY, "%s", fail_sentence());
    else if (fits(roster, &who, rank, size, blob_bytes))
        roster->members[rank] = who;
    return !roster->decided;
}

unsigned char *roster_blob(struct roster *roster, int rank)
{
    return roster->blobs + (size_t)rank * roster->blob_bytes;
}

void roster_arrive(struct roster *roster, int rank)
{
    roster->members[rank].arrived = true;
    roster->present++;
    log_debug("rank %d is at the meeting point: %d of %d", rank, roster->present, roster->size);
}

void roster_position(struct roster *roster, int rank)
{
    roster->members[rank].positioned = true;
    roster->positioned++;
}

bool roster_is_complete(const struct roster *roster)
{
    return roster->size && roster->positioned == roster->size && !roster->relays;
}

void roster_complete(struct roster *roster)
{
    if (!roster->decided)
        seal(roster, RONDO_OK, roster->blobs, (size_t)roster->size * roster->blob_bytes);
}

void roster_leave(struct roster *roster, int rank)
{
    const struct member *who = &roster->members[rank];

    decide(roster, RONDO_ERROR_PEER,
           "rank %d (pid %u on %s) went away while the job was starting: look at what it said last",
           rank, who->pid, who->host);
}

void roster_news(struct roster *roster, rondo_result result, const char *sentence)
{
    char text[WIRE_SENTENCE];

    memcpy(text, sentence, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    decide(roster, result, "%s", text);
}

void roster_told(struct roster *roster, rondo_result result, const void *blobs, size_t bytes)
{
    if (result) {
        snprintf(roster->sentence, sizeof(roster->sentence), "%s", fail_sentence());
        seal(roster, result, roster->sentence, strlen(roster->sentence));
    } else {
        seal(roster, RONDO_OK, blobs, bytes);
    }
}

struct group {
    int first, last;
};

/* Those that have not come; if all have, those that did not get to their positions. */
static bool is_missing(const struct roster *roster, int rank)
{
    return roster->present == roster->size ? !roster->members[rank].positioned
                                           : !roster->members[rank].arrived;
}

/* Runs of missing ranks, at most `room` of them. Also counts the ranks, and those left out. */
static int group_missing(const struct roster *roster, struct group *groups, int room,
                         int *ret_missing, int *ret_left)
{
    int count = 0;

    *ret_missing = *ret_left = 0;
    for (int rank = 0; rank < roster->size; rank++) {
        struct group *run = count ? &groups[count - 1] : NULL;

        if (!is_missing(roster, rank))
            continue;
        ++*ret_missing;
        if (run && run->last == rank - 1 && !*ret_left)
            run->last = rank;
        else if (count < room)
            groups[count++] = (struct group){rank, rank};
        else
            ++*ret_left;
    }
    return count;
}

/* "2, 5 to 9 and 12"; what does not fit is only counted. */
static int list_missing(const struct roster *roster, char *ret_text, size_t room)
{
    struct group groups[12];
    int missing, left;
    int count = group_missing(roster, groups, 12, &missing, &left);
    size_t used = 0;

    *ret_text = '\0';
    for (int i = 0; i < count; i++) {
        const char *between = i == 0 ? "" : i == count - 1 && !left ? " and " : ", ";

        used += (size_t)snprintf(ret_text + used, room - used, "%s%d", between, groups[i].first);
        if (groups[i].last > groups[i].first)
            used += (size_t)snprintf(ret_text + used, room - used, " to %d", groups[i].last);
    }
    if (left)
        snprintf(ret_text + used, room - used, " and %d more", left);
    return missing;
}

void roster_time_out(struct roster *roster, double waited, unsigned refused)
{
    char missing[512], remark[160] = "";
    int count;

    if (refused)
        snprintf(remark, sizeof(remark), " (which is short of file descriptors: raise ulimit -n)");
    if (!roster->size) {
        decide(roster, RONDO_ERROR_TIMEOUT, "waited %g s for ranks at %s, nobody came%s", waited,
               roster->address, remark);
        return;
    }
    count = list_missing(roster, missing, sizeof(missing));
    decide(roster, RONDO_ERROR_TIMEOUT,
           "waited %g s for rank%s %s of %d at %s%s: were they started, and can they reach it?",
           waited, count == 1 ? "" : "s", missing, roster->size, roster->address, remark);
}

void roster_stop(struct roster *roster)
{
    decide(roster, RONDO_ERROR_PEER,
           "the process that made the unique id of %s ended before all ranks had come",
           roster->address);
}
