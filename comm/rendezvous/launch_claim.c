/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch_claim.c - a rank of a job is one process.
 *
 * Two jobs that were told the same place, and a program that a rank starts and that inherits its
 * variables, say that they are a rank which another process is already. So a process takes a name
 * for its rank, an abstract Unix socket that it holds until it ends, and who finds the name taken
 * is refused and told who has it.
 *
 *     rondo-rank-JOB-RANK        the rank is meeting the others
 *     rondo-rank-JOB-RANK.met    it has met them: nobody can disturb its job any more
 *
 * A rank that is still meeting the others can't know whose ranks it has got or will get. So a rival
 * leaves a byte with it, and goes to the meeting point as well: whoever hears of it first ends
 * the meeting on all ranks (docs/rendezvous.md, "Two jobs at one place").
 */
#include "comm/rendezvous/launch.h"

#include "base/caller/descriptor.h"
#include "base/clock.h"
#include "base/fail.h"
#include "base/fork.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/process.h"
#include "comm/rendezvous/socket.h"

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_ROOM = 64 };

struct launch_claim {
    struct launch_claim *next;
    char name[NAME_ROOM - 4];
    int rank, listener;
    pid_t owner; /* after fork() the child has the list, but not the rank */
    bool met;    /* the name has its second form */
    pid_t rival; /* the last process that wanted the rank as well; 0: none */
    char place[BOOTSTRAP_ADDRESS_MAX];
};

static struct lock claims_lock = LOCK_AT(LOCK_LAUNCH_CLAIMS);
FORK_RENEWS({.lock = &claims_lock});
static struct launch_claim *claims;

/* The process in which this library was loaded: a child of fork() is another one. */
static pid_t loaded_by;

__attribute__((constructor)) static void note_process(void)
{
    loaded_by = getpid();
}

/* ---- Relatives ------------------------------------------------------------------------------- */

static bool is_ancestor(pid_t pid)
{
    struct process_look process = {.parent = getppid()};

    for (long at = process.parent; at > 1; at = process.parent)
        if (at == pid)
            return true;
        else if (!process_look((pid_t)at, &process))
            break;
    return false;
}

/* True if a process was started with the variables by which we are a rank. */
static bool has_our_rank(long pid)
{
    static const char *const names[] = {
        "RONDO_RANK",    "RONDO_SIZE",   "RONDO_ADDRESS",        "RANK",
        "WORLD_SIZE",    "MASTER_ADDR",  "MASTER_PORT",          "TORCHELASTIC_RESTART_COUNT",
        "PMI_RANK",      "PMIX_RANK",    "OMPI_COMM_WORLD_RANK", "PMIX_NAMESPACE",
        "SLURM_STEP_ID", "SLURM_JOB_ID", "SLURM_PROCID"};
    enum { NAMES = sizeof(names) / sizeof(names[0]) };
    char path[64], *entry = NULL;
    size_t room = 0;
    int wanted = 0, found = 0;
    bool same = true;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
    file = descriptor_stream(path, "r");
    if (!file)
        return false;
    for (int i = 0; i < NAMES; i++)
        wanted += getenv(names[i]) != NULL;
    while (same && getdelim(&entry, &room, '\0', file) > 0) {
        char *equals = strchr(entry, '=');

        if (equals)
            *equals = '\0';
        if (!strcmp(entry, "LD_PRELOAD")) /* a shell has the library, too, and does not use it */
            same = false;
        for (int i = 0; equals && i < NAMES; i++) {
            const char *ours = getenv(names[i]);

            if (!strcmp(entry, names[i])) {
                same = ours && !strcmp(ours, equals + 1);
                found++;
            }
        }
    }
    free(entry);
    fclose(file);
    return same && found == wanted;
}

/* The number of a file that a process has mapped: at `address`, or (0) anywhere, if it is `inode`;
 * 0: it has not. */
static unsigned long long find_file(long pid, uintptr_t address, unsigned long long inode)
{
    unsigned long long from, to, number, found = 0;
    char path[64], *line = NULL;
    size_t room = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%ld/maps", pid);
    file = descriptor_stream(path, "r");
    while (file && !found && getline(&line, &room, file) > 0)
        if (sscanf(line, "%llx-%llx %*s %*s %*s %llu", &from, &to, &number) == 3 &&
            (address ? from <= address && address < to : number == inode))
            found = number;
    free(line);
    if (file)
        fclose(file);
    return found;
}

/* True if a process uses Rondo, too: it has mapped the file that this function is in. */
static bool has_library(long pid)
{
    unsigned long long ours = find_file(getpid(), (uintptr_t)has_library, 0);

    return ours && find_file(pid, 0, ours);
}

/* A process that has started us, uses Rondo, and was told the rank that we were told; 0: none. Who
 * was forked, and has not executed a program, was made to take the rank. */
static pid_t find_parent_with_our_rank(void)
{
    struct process_look process = {.parent = getppid()};

    for (long at = process.parent; loaded_by == getpid() && at > 1; at = process.parent)
        if (has_our_rank(at) && has_library(at))
            return (pid_t)at;
        else if (!process_look((pid_t)at, &process))
            break;
    return 0;
}

/* ---- Names ----------------------------------------------------------------------------------- */

/* A connection to the process of our user that holds a name, and its number; -1: nobody does. */
static int reach(const char *name, pid_t *ret_pid)
{
    struct sockaddr_un where;
    socklen_t length = socket_abstract(name, &where);
    int fd = socket_connect_at((struct sockaddr *)&where, length, clock_seconds() + PATIENCE_RIVAL);

    if (fd >= 0 && socket_same_user(fd, NULL, ret_pid) && (!*ret_pid || !kill(*ret_pid, 0)))
        return fd;
    if (fd >= 0)
        close(fd); /* of another user, or a child of fork() has it still of one that has ended */
    return -1;
}

static int hold(const char *name)
{
    struct sockaddr_un where;
    socklen_t length = socket_abstract(name, &where);

    return socket_listen_at((struct sockaddr *)&where, length, SOCK_STREAM);
}

static void name_met(const struct launch_claim *claim, char ret_name[NAME_ROOM])
{
    snprintf(ret_name, NAME_ROOM, "%s.met", claim->name);
}

enum holder {
    HOLDER_US,
    HOLDER_MEETING, /* a process that is still meeting the others */
    HOLDER_MET,
    HOLDER_UNKNOWN, /* another user, or somebody who has let go of it just now */
};

/* Tries once to take the name. A process that is still meeting the others can be told through
 * *ret_fd. */
static enum holder try_name(struct launch_claim *claim, pid_t *ret_pid, int *ret_fd)
{
    char met[NAME_ROOM];
    int fd;

    name_met(claim, met);
    *ret_fd = -1;
    fd = reach(met, ret_pid);
    if (fd < 0) {
        claim->listener = hold(claim->name);
        if (claim->listener < 0) {
            *ret_fd = reach(claim->name, ret_pid);
            return *ret_fd < 0 ? HOLDER_UNKNOWN : HOLDER_MEETING;
        }
        fd = reach(met, ret_pid); /* it may have got its second form meanwhile */
        if (fd < 0)
            return HOLDER_US;
        close(claim->listener);
        claim->listener = -1;
    }
    close(fd);
    return HOLDER_MET;
}

/* Takes the name, or does without if nobody knows who has it or if it is another copy of this
 * library in this process. False: process *ret_pid is the rank, see try_name(). */
static bool take_name(struct launch_claim *claim, pid_t *ret_pid, int *ret_fd)
{
    double until = clock_seconds() + PATIENCE_CLAIM;

    for (;; doze_for(DOZE_NAME)) {
        enum holder holder = try_name(claim, ret_pid, ret_fd);
        bool over = clock_seconds() > until;

        if (holder == HOLDER_US || (holder == HOLDER_UNKNOWN && over))
            return true;
        if (holder == HOLDER_UNKNOWN)
            continue;
        if (*ret_pid == getpid()) {
            if (*ret_fd >= 0)
                close(*ret_fd);
            return true;
        }
        if (holder == HOLDER_MEETING || over || is_ancestor(*ret_pid))
            return false;
    }
}

/* Look who has come. */
static pid_t find_rival(struct launch_claim *claim)
{
    pid_t rival;

    lock_take(&claims_lock);
    for (int fd; claim->listener >= 0 && (fd = socket_accept(claim->listener)) >= 0;) {
        char byte;

        socket_same_user(fd, NULL, &rival);
        if (socket_receive(fd, &byte, 1, clock_seconds() + PATIENCE_RIVAL) != SOCKET_CLOSED)
            claim->rival = rival;
        close(fd);
    }
    rival = claim->rival;
    lock_give(&claims_lock);
    return rival;
}

/* ---- While ranks meet ------------------------------------------------------------------------ */

static unsigned rival(void *context)
{
    return (unsigned)find_rival(context);
}

/* In rank 0, which serves. */
static rondo_result look(void *context)
{
    struct launch_claim *claim = context;
    pid_t pid = find_rival(claim);

    if (!pid)
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INVALID,
                      "two jobs meet at %s: processes %d and %d of one host are both rank %d, so "
                      "nobody knows whose the other ranks are; give each job an address of its own "
                      "(MASTER_PORT or RONDO_ADDRESS)",
                      claim->place, (int)getpid(), (int)pid, claim->rank);
}

/* The meeting point hears from us that the rank is claimed twice. */
static void tell_meeting_point(const struct launch *launch, pid_t holder)
{
    const struct bootstrap_part part = {.place = &launch->place,
                                        .rank = launch->rank,
                                        .size = launch->size,
                                        .timeout = PATIENCE_TWICE,
                                        .holder = (unsigned)holder};

    bootstrap_take_part(&part, NULL, 0, NULL);
}

rondo_result launch_refuse_child(pid_t parent, int rank)
{
    return rondo_fail(RONDO_ERROR_INVALID,
                      "process %d is rank %d of this job, and this one, which it has started, "
                      "has only inherited its variables: unset them here, or give this job "
                      "RONDO_RANK, RONDO_SIZE and RONDO_ADDRESS of its own",
                      (int)parent, rank);
}

static rondo_result refuse(const struct launch *launch, pid_t holder, int fd)
{
    bool child = is_ancestor(holder);

    if (fd >= 0 && !child) {
        socket_say(fd, "!", 1);
        if (launch->rank > 0)
            tell_meeting_point(launch, holder);
    }
    if (fd >= 0)
        close(fd);
    if (child)
        return launch_refuse_child(holder, launch->rank);
    return rondo_fail(RONDO_ERROR_INVALID,
                      "process %d of this host is rank %d of the job at %s already: give each job "
                      "an address of its own (MASTER_PORT or RONDO_ADDRESS), and end both if they "
                      "were started at the same time",
                      (int)holder, launch->rank, launch->place.address);
}

/* The claim of this process to the rank; NULL: it has none yet. What a child of fork() has
 * inherited is closed, so that a name is free when its process ends. The list is locked. */
static struct launch_claim *find(const char *name)
{
    struct launch_claim *found = NULL;

    for (struct launch_claim *claim = claims; claim; claim = claim->next) {
        if (claim->owner != getpid() && claim->listener >= 0) {
            close(claim->listener);
            claim->listener = -1;
        }
        if (claim->owner == getpid() && !strcmp(claim->name, name))
            found = claim;
    }
    return found;
}

/* Makes the first claim of this process to a rank; NULL: process *ret_holder has the rank, see
 * take_name(), or 0: there is no memory. The list is locked. */
static struct launch_claim *claim_first(const struct launch *launch, const char *name,
                                        pid_t *ret_holder, int *ret_fd)
{
    struct launch_claim *claim = calloc(1, sizeof(*claim));

    if (!claim)
        return NULL;
    *claim = (struct launch_claim){.rank = launch->rank, .owner = getpid(), .listener = -1};
    strcpy(claim->name, name);
    *ret_holder = find_parent_with_our_rank();
    if (*ret_holder || !take_name(claim, ret_holder, ret_fd)) {
        free(claim);
        return NULL;
    }
    *ret_holder = 0;
    if (claim->listener < 0)
        log_info("rank %d can't take the name %s: only the meeting point sees whether others claim "
                 "the rank",
                 launch->rank, name);
    claim->next = claims;
    return claims = claim;
}

rondo_result launch_claim(struct launch *launch)
{
    char name[NAME_ROOM - 4];
    struct launch_claim *claim;
    pid_t holder = 0;
    int fd = -1;

    if (launch->size == 1 || !*launch->job)
        return RONDO_OK;
    snprintf(name, sizeof(name), "rondo-rank-%s-%d", launch->job, launch->rank);
    lock_take(&claims_lock);
    claim = find(name);
    if (!claim)
        claim = claim_first(launch, name, &holder, &fd);
    if (claim) {
        claim->rival = 0;
        strcpy(claim->place, launch->place.address);
        if (!claim->met)
            launch->watch = (struct bootstrap_watch){.look = launch->rank ? NULL : look,
                                                     .rival = rival,
                                                     .settle = launch->unnamed ? PATIENCE_QUIET : 0,
                                                     .context = claim};
    }
    lock_give(&claims_lock);
    if (claim)
        return RONDO_OK;
    return holder || fd >= 0
               ? refuse(launch, holder, fd)
               : rondo_fail(RONDO_ERROR_MEMORY, "no memory for the claim to rank %d", launch->rank);
}

void launch_met(const struct launch *launch)
{
    struct launch_claim *claim = launch->watch.context;
    char met[NAME_ROOM];
    int listener;

    if (!claim)
        return;
    name_met(claim, met);
    lock_take(&claims_lock);
    if (!claim->met && claim->listener >= 0 && (listener = hold(met)) >= 0) {
        close(claim->listener);
        claim->listener = listener;
    }
    claim->met = true;
    lock_give(&claims_lock);
}
