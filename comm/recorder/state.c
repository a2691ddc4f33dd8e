/* SPDX-License-Identifier: BSD-3-Clause */
/* state.c - one rank: what its record and its process say of it. */
#include "comm/recorder/chain.h"
#include "comm/recorder/find.h"

#include "base/caller/times.h"
#include "base/collective.h"

#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

const char *cause_name(enum cause cause)
{
    static const char *const names[CAUSES] = {
        "none",     "never called", "dead",         "stopped", "slow",   "other call",
        "deadlock", "link cut",     "held by lock", "failed",  "unknown"};

    return (unsigned)cause < CAUSES ? names[cause] : "unknown";
}

const char *rank_state_name(enum rank_state state)
{
    static const char *const names[] = {"outside", "in a call", "waits",
                                        "broken",  "opening",   "ended"};

    return names[state];
}

static bool is_stopped(const struct sighting *sighting)
{
    return sighting->process.state == 'T' || sighting->process.state == 't';
}

const struct sighting_call *sighting_call(const struct sighting *sighting)
{
    const struct sighting_record *record = &sighting->record;

    /* Of a call group the oldest that has not ended is what holds it up. */
    for (int i = record->calls_count; i-- > 0;)
        if (record->calls[i].state == RECORDER_BEGUN)
            return &record->calls[i];
    return record->calls_count ? &record->calls[0] : NULL;
}

/* True if the wait has lasted until just now. Who is stopped, or has ended, has not looked since.
 */
static bool is_fresh(const struct sighting *sighting, const struct recorder_waiting *waiting)
{
    return is_stopped(sighting) || sighting->process.life != SIGHTING_ALIVE ||
           waiting->looked + (uint64_t)(1e9 * RECORD_FRESH) > sighting->process.read;
}

const struct recorder_waiting *sighting_wait(const struct sighting *sighting)
{
    const struct sighting_call *call = sighting_call(sighting);
    const struct sighting_record *record = &sighting->record;

    if (record->waits[0] && call && call->state == RECORDER_BEGUN &&
        record->waiting[0].call == call->call && is_fresh(sighting, &record->waiting[0]))
        return &record->waiting[0];
    /* Calls on streams are not recorded one by one; a call that is done may have messages left. */
    for (int i = 0; i < RECORDER_WAITS; i++)
        if (record->waits[i] && record->waiting[i].peers_count &&
            record->waiting[i].looked + (uint64_t)(1e9 * RECORD_LEFT) > sighting->process.read &&
            (i > 0 ||
             (call && call->state == RECORDER_DONE && record->waiting[i].call == call->call)))
            return &record->waiting[i];
    return NULL;
}

double sighting_waited(const struct sighting *sighting)
{
    const struct recorder_waiting *waiting = sighting_wait(sighting);

    return waiting && sighting->process.read > waiting->since
               ? 1e-9 * (double)(sighting->process.read - waiting->since)
               : 0;
}

enum rank_state sighting_state(const struct sighting *sighting)
{
    const struct sighting_call *call = sighting_call(sighting);

    if (sighting->process.life == SIGHTING_ENDED)
        return RANK_ENDED;
    if (sighting->record.failed)
        return RANK_BROKEN;
    if (sighting->record.stage == RECORDER_OPENING && !sighting_wait(sighting))
        return RANK_OPENING;
    if (is_stopped(sighting))
        return call && call->state == RECORDER_BEGUN ? RANK_INSIDE : RANK_OUTSIDE;
    if (sighting_wait(sighting))
        return RANK_WAITS;
    return call && call->state == RECORDER_BEGUN ? RANK_INSIDE : RANK_OUTSIDE;
}

void sighting_describe_call(const struct sighting *sighting, char *text, size_t size)
{
    const struct sighting_call *call = sighting_call(sighting);
    size_t used;

    snprintf(text, size, "no call");
    if (!call)
        return;
    call_describe(&call->record, text, size);
    used = strlen(text);
    if (collective_is_pair(call->record.collective))
        snprintf(text + used, size - used, " %s rank %d",
                 call->record.collective == RONDO_SEND ? "to" : "from", call->record.root);
}

/* Writes numbers in order, as "0-3, 7". */
static void write_world(const struct sightings *sightings, int first, int end, char *text,
                        size_t size)
{
    size_t used = 0;

    *text = '\0';
    for (int i = first, last; i < end && used < size; i = last + 1) {
        int world = sightings->at[i]->record.identity.world;

        for (last = i; last + 1 < end &&
                       sightings->at[last + 1]->record.identity.world == world + (last + 1 - i);)
            last++;
        if (world < 0)
            continue;
        used += (size_t)snprintf(text + used, size - used, "%s%d", used ? ", " : "", world);
        if (last > i && used < size)
            used += (size_t)snprintf(text + used, size - used, "-%d", world + (last - i));
    }
}

void sightings_describe_comm(const struct sightings *sightings, int of, char *text, size_t size)
{
    int first = sightings_comm_begin(sightings, of), end = sightings_comm_end(sightings, first);
    const struct sighting_record *record = &sightings->at[of]->record;
    char world[80];

    write_world(sightings, first, end, world, sizeof(world));
    snprintf(text, size, "communicator %llx of %d rank%s%s%s%s%s", (unsigned long long)record->comm,
             record->identity.size, record->identity.size == 1 ? "" : "s",
             !*world                ? ""
             : strpbrk(world, "-,") ? " (world ranks "
                                    : " (world rank ",
             world, *world && end - first < record->identity.size ? " on this host" : "",
             *world ? ")" : "");
}

int sightings_comm_end(const struct sightings *sightings, int first)
{
    int end = first;

    while (end < sightings->count &&
           sightings->at[end]->record.comm == sightings->at[first]->record.comm)
        end++;
    return end;
}

/* The system calls that hold up programs, in words; NULL: another. */
static const char *system_call_name(int number)
{
    static const struct {
        int number;
        const char *name;
    } calls[] = {{SYS_read, "read"},
                 {SYS_pread64, "read"},
                 {SYS_readv, "read"},
                 {SYS_write, "write"},
                 {SYS_pwrite64, "write"},
                 {SYS_writev, "write"},
                 {SYS_fsync, "fsync"},
                 {SYS_fdatasync, "fsync"},
                 {SYS_openat, "open"},
                 {SYS_futex, "futex, a lock or condition"},
                 {SYS_flock, "flock"},
                 {SYS_fcntl, "fcntl"},
                 {SYS_nanosleep, "nanosleep"},
                 {SYS_clock_nanosleep, "nanosleep"},
                 {SYS_ppoll, "poll"},
                 {SYS_pselect6, "select"},
                 {SYS_epoll_pwait, "epoll_wait"},
                 {SYS_recvfrom, "recv"},
                 {SYS_recvmsg, "recv"},
                 {SYS_sendto, "send"},
                 {SYS_sendmsg, "send"},
                 {SYS_connect, "connect"},
                 {SYS_accept, "accept"},
                 {SYS_accept4, "accept"},
                 {SYS_wait4, "wait for a child"},
                 {SYS_waitid, "wait for a child"},
                 {SYS_rt_sigsuspend, "sigsuspend"},
#ifdef SYS_pause
                 {SYS_pause, "pause"},
                 {SYS_poll, "poll"},
                 {SYS_select, "select"},
                 {SYS_epoll_wait, "epoll_wait"},
#endif
                 {SYS_ioctl, "ioctl"}};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i].number == number)
            return calls[i].name;
    return NULL;
}

void sighting_describe_process(const struct sighting *sighting, char *text, size_t size)
{
    const struct sighting_process *process = &sighting->process;
    const char *call = system_call_name(process->system_call);
    const char *does = "sleeps", *where = "";

    if (process->life == SIGHTING_ENDED) {
        snprintf(text, size, "has ended");
        return;
    }
    if (process->life == SIGHTING_HIDDEN) {
        snprintf(text, size, "cannot be seen from here: it has a namespace of its own");
        return;
    }
    if (sighting_state(sighting) == RANK_OUTSIDE && !is_stopped(sighting))
        where = " outside of Rondo";
    if (is_stopped(sighting))
        does = "is stopped (SIGSTOP or a debugger)";
    else if (process->state == 'D')
        does = "waits for a device, such as a disk (state D)";
    else if (process->state == 'R' || process->busy)
        does = *where ? "computes" : "is running";
    snprintf(text, size, "%s%s%s%s%s%s%s%s%s", does, where, call ? " in " : "", call ? call : "",
             *process->file ? " of " : "", process->file, *process->inside ? " (" : "",
             process->inside, *process->inside ? ")" : "");
}
