/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * meeting.c - who has come to the meeting point, and what to tell everybody if it cannot
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

static void seal(struct meeting *meeting, rondo_result result, const void *answer, size_t bytes)
{
    meeting->decided = true;
    meeting->result = result;
    meeting->answer = answer;
    meeting->answer_bytes = bytes;
    wire_hash(answer, bytes, meeting->answer_hash);
}

/* Decide that the meeting has failed, with a sentence for all members. */
__attribute__((format(printf, 3, 4))) static void
decide(struct meeting *meeting, rondo_result result, const char *format, ...)
{
    va_list arguments;

    if (meeting->decided)
        return;
    va_start(arguments, format);
    vsnprintf(meeting->sentence, sizeof(meeting->sentence), format, arguments);
    va_end(arguments);
    seal(meeting, result, meeting->sentence, strlen(meeting->sentence));
}

static void fill_member(struct member *member, unsigned pid, const char *host)
{
    member->present = true;
    member->pid = pid;
    memcpy(member->host, host, WIRE_HOST);
    member->host[WIRE_HOST - 1] = '\0';
}

static rondo_result allocate(struct meeting *meeting, int size, size_t blob_bytes)
{
    size_t total = (size_t)size * blob_bytes;

    meeting->members = calloc((size_t)size, sizeof(*meeting->members));
    meeting->blobs = malloc(total ? total : 1);
    if (!meeting->members || !meeting->blobs)
        return rondo_fail(RONDO_ERROR_MEMORY, "no memory for the blobs of %d ranks", size);
    meeting->size = size;
    meeting->blob_bytes = blob_bytes;
    seats_init(&meeting->seats, meeting->relays ? 0 : size);
    return RONDO_OK;
}

rondo_result meeting_init(struct meeting *meeting, const struct server_task *task)
{
    char host[WIRE_HOST] = "";
    rondo_result result;

    memset(meeting, 0, sizeof(*meeting));
    meeting->address = task->place->address;
    meeting->relays = task->relays;
    if (!task->size)
        return RONDO_OK;
    result = allocate(meeting, task->size, task->blob_bytes);
    if (result || !task->blob)
        return result;
    gethostname(host, sizeof(host) - 1);
    meeting->claims++;
    meeting->seats.guests--;
    fill_member(&meeting->members[0], (unsigned)getpid(), host);
    memcpy(meeting->blobs, task->blob, task->blob_bytes);
    meeting_arrive(meeting, 0);
    meeting_seat(meeting, 0);
    return RONDO_OK;
}

void meeting_done(struct meeting *meeting)
{
    free(meeting->members);
    free(meeting->blobs);
    seats_done(&meeting->seats);
    memset(meeting, 0, sizeof(*meeting));
}

static bool plausible(uint32_t size, size_t blob_bytes)
{
    return size >= 1 && size <= WIRE_RANKS_MAX && blob_bytes <= WIRE_BLOB_MAX &&
           size * (uint64_t)blob_bytes <= WIRE_ALL_BLOBS_MAX;
}

static bool fits(struct meeting *meeting, const struct member *who, uint32_t rank, uint32_t size,
                 size_t blob_bytes)
{
    if (size != (uint32_t)meeting->size)
        decide(meeting, RONDO_ERROR_MISMATCH,
               "rank %u (pid %u on %s) says that the job has %u ranks, others at the meeting point "
               "%s say %d: start all ranks with the same size",
               (unsigned)rank, who->pid, who->host, (unsigned)size, meeting->address,
               meeting->size);
    else if (rank >= size)
        decide(meeting, RONDO_ERROR_INVALID,
               "pid %u on %s claims rank %u of %u: ranks go from 0 to %u", who->pid, who->host,
               (unsigned)rank, (unsigned)size, (unsigned)size - 1);
    else if (blob_bytes != meeting->blob_bytes)
        decide(meeting, RONDO_ERROR_MISMATCH,
               "rank %u (pid %u on %s) brings %zu bytes where others bring %zu: is Rondo the same "
               "version everywhere?",
               (unsigned)rank, who->pid, who->host, blob_bytes, meeting->blob_bytes);
    else if (meeting->members[rank].present)
        decide(meeting, RONDO_ERROR_INVALID,
               "two ranks claimed number %u: pid %u on %s and pid %u on %s", (unsigned)rank,
               meeting->members[rank].pid, meeting->members[rank].host, who->pid, who->host);
    return !meeting->decided;
}

bool meeting_claim(struct meeting *meeting, const struct wire_claim *claim, size_t blob_bytes)
{
    uint32_t rank = le32toh(claim->rank), size = le32toh(claim->size);
    struct member who;

    meeting->claims++;
    fill_member(&who, le32toh(claim->pid), claim->host);
    if (meeting->decided)
        return false;
    if (!meeting->size && !plausible(size, blob_bytes))
        decide(meeting, RONDO_ERROR_INVALID,
               "pid %u on %s asks for a job of %u ranks with %zu bytes each: that is too much",
               who.pid, who.host, (unsigned)size, blob_bytes);
    else if (!meeting->size && allocate(meeting, (int)size, blob_bytes))
        decide(meeting, RONDO_ERROR_MEMORY, "%s", fail_sentence());
    else if (fits(meeting, &who, rank, size, blob_bytes))
        meeting->members[rank] = who;
    return !meeting->decided;
}

unsigned char *meeting_blob(struct meeting *meeting, int rank)
{
    return meeting->blobs + (size_t)rank * meeting->blob_bytes;
}

void meeting_arrive(struct meeting *meeting, int rank)
{
    meeting->members[rank].arrived = true;
    meeting->present++;
    log_debug("rank %d is at the meeting point: %d of %d", rank, meeting->present, meeting->size);
}

void meeting_seat(struct meeting *meeting, int rank)
{
    meeting->members[rank].seated = true;
    meeting->seated++;
    if (meeting->seated == meeting->size && !meeting->relays && !meeting->decided)
        seal(meeting, RONDO_OK, meeting->blobs, (size_t)meeting->size * meeting->blob_bytes);
}

void meeting_leave(struct meeting *meeting, int rank)
{
    const struct member *who = &meeting->members[rank];

    decide(meeting, RONDO_ERROR_PEER,
           "rank %d (pid %u on %s) went away while the job was starting: look at what it said last",
           rank, who->pid, who->host);
}

void meeting_news(struct meeting *meeting, rondo_result result, const char *sentence)
{
    char text[WIRE_SENTENCE];

    memcpy(text, sentence, sizeof(text));
    text[sizeof(text) - 1] = '\0';
    decide(meeting, result, "%s", text);
}

void meeting_told(struct meeting *meeting, rondo_result result, const void *blobs, size_t bytes)
{
    if (result) {
        snprintf(meeting->sentence, sizeof(meeting->sentence), "%s", fail_sentence());
        seal(meeting, result, meeting->sentence, strlen(meeting->sentence));
    } else {
        seal(meeting, RONDO_OK, blobs, bytes);
    }
}

struct group {
    int first, last;
};

/* Those that have not come; if all have, those that did not get to their seats. */
static bool is_missing(const struct meeting *meeting, int rank)
{
    return meeting->present == meeting->size ? !meeting->members[rank].seated
                                             : !meeting->members[rank].arrived;
}

/* Runs of missing ranks, at most `room` of them. Also counts the ranks, and those left out. */
static int group_missing(const struct meeting *meeting, struct group *groups, int room,
                         int *ret_missing, int *ret_left)
{
    int count = 0;

    *ret_missing = *ret_left = 0;
    for (int rank = 0; rank < meeting->size; rank++) {
        struct group *run = count ? &groups[count - 1] : NULL;

        if (!is_missing(meeting, rank))
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
static int list_missing(const struct meeting *meeting, char *ret_text, size_t room)
{
    struct group groups[12];
    int missing, left;
    int count = group_missing(meeting, groups, 12, &missing, &left);
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

void meeting_time_out(struct meeting *meeting, double waited, unsigned refused)
{
    char missing[512], remark[160] = "";
    int count;

    if (refused)
        snprintf(remark, sizeof(remark), " (which is short of file descriptors: raise ulimit -n)");
    if (!meeting->size) {
        decide(meeting, RONDO_ERROR_TIMEOUT, "waited %g s for ranks at %s, nobody came%s", waited,
               meeting->address, remark);
        return;
    }
    count = list_missing(meeting, missing, sizeof(missing));
    decide(meeting, RONDO_ERROR_TIMEOUT,
           "waited %g s for rank%s %s of %d at %s%s: were they started, and can they reach it?",
           waited, count == 1 ? "" : "s", missing, meeting->size, meeting->address, remark);
}

void meeting_stop(struct meeting *meeting)
{
    decide(meeting, RONDO_ERROR_PEER,
           "the process that made the unique id of %s ended before all ranks had come",
           meeting->address);
}
