/* SPDX-License-Identifier: BSD-3-Clause */
/* chain.c - see chain.h. Calls that differ are found in differ.c. */
#include "comm/recorder/chain.h"
#include "comm/recorder/find.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

/* ---- The graph ------------------------------------------------------------------------------- */

struct search {
    const struct sightings *sightings;
    int *from;   /* the sighting from which this one was reached, -1: the start; -2: not yet */
    int *queue;  /* of sightings that were reached */
    int missing; /* a rank that is waited for and has no record, -1: none */
    int missing_by;
};

/* The sighting of a rank of a communicator; a rank that has ended may have an older one as well. */
static int find_rank(const struct sightings *sightings, int first, int rank)
{
    int end = sightings_comm_end(sightings, first), found = -1;

    for (int i = first; i < end; i++)
        if (sightings->at[i]->record.identity.rank == rank &&
            (found < 0 || sightings->at[found]->process.life == SIGHTING_ENDED))
            found = i;
    return found;
}

int sightings_comm_begin(const struct sightings *sightings, int of)
{
    while (of > 0 && sightings->at[of - 1]->record.comm == sightings->at[of]->record.comm)
        of--;
    return of;
}

bool sightings_share_memory(const struct sighting *a, const struct sighting *b)
{
    return memcmp(a->record.identity.host_id, b->record.identity.host_id,
                  sizeof(a->record.identity.host_id)) == 0;
}

static bool is_same_process(const struct sighting *a, const struct sighting *b)
{
    return a->record.identity.pid == b->record.identity.pid &&
           a->record.identity.started == b->record.identity.started &&
           a->record.identity.namespace_id == b->record.identity.namespace_id &&
           strcmp(a->where, b->where) == 0;
}

/* A process that is several ranks of one communicator has threads of which it isn't known who is
 * who. */
int sightings_elsewhere(const struct sightings *sightings, int of)
{
    const struct sighting *sighting = sightings->at[of];
    int found = -1;

    for (int i = 0; i < sightings->count; i++) {
        const struct sighting *other = sightings->at[i];

        if (i == of || !is_same_process(sighting, other))
            continue;
        if (other->record.comm == sighting->record.comm)
            return -1;
        if (sighting_state(other) == RANK_WAITS)
            found = i;
    }
    return found;
}

static void reach(struct search *search, int *end, int from, int to)
{
    if (search->from[to] != -2)
        return;
    search->from[to] = from;
    search->queue[(*end)++] = to;
}

/* True if the peer has done what the waiter's call needs of it. Then it is no culprit, or its
 * messages are lost. Of calls on streams that is not recorded. */
static bool has_done(const struct sighting *waiter, const struct sighting *peer)
{
    const struct sighting_call *own = sighting_call(waiter), *theirs = sighting_call(peer);
    bool on_stream = sighting_wait(waiter) == &waiter->record.waiting[1];
    uint32_t ahead;

    if (on_stream || !own || !theirs || !own->call || !theirs->call)
        return false;
    ahead = theirs->call - own->call;
    return (ahead == 0 && theirs->state != RECORDER_BEGUN) || (ahead && ahead < UINT32_MAX / 2);
}

/* Reaches all that the sighting waits for; false: it waits for nobody. */
static bool reach_next(struct search *search, int *end, int at)
{
    const struct sightings *sightings = search->sightings;
    const struct recorder_waiting *waiting = sighting_wait(sightings->at[at]);
    int elsewhere;

    if (sighting_state(sightings->at[at]) != RANK_WAITS) {
        elsewhere = sighting_state(sightings->at[at]) == RANK_OUTSIDE &&
                            sightings->at[at]->process.state != 'T'
                        ? sightings_elsewhere(sightings, at)
                        : -1;
        if (elsewhere < 0)
            return false;
        reach(search, end, at, elsewhere);
        return true;
    }
    for (int i = 0; i < waiting->peers_count; i++) {
        int peer = find_rank(sightings, sightings_comm_begin(sightings, at), waiting->peers[i]);

        if (peer >= 0 && has_done(sightings->at[at], sightings->at[peer]) &&
            sightings_share_memory(sightings->at[at], sightings->at[peer]) &&
            sighting_state(sightings->at[peer]) != RANK_ENDED)
            continue;
        if (peer >= 0) {
            reach(search, end, at, peer);
        } else if (search->missing < 0) {
            search->missing = waiting->peers[i];
            search->missing_by = at;
        }
    }
    return true;
}

/* The nearest sighting that waits for nobody; -1: there is none. */
static int find_culprit(struct search *search, int start)
{
    int end = 0;

    for (int i = 0; i < search->sightings->count; i++)
        search->from[i] = -2;
    search->missing = -1;
    reach(search, &end, -1, start);
    for (int i = 0; i < end; i++)
        if (!reach_next(search, &end, search->queue[i]))
            return search->queue[i];
    return -1;
}

/* ---- Findings -------------------------------------------------------------------------------- */

struct finding *finding_add(struct findings *findings)
{
    if (findings->count == findings->room) {
        int room = findings->room ? 2 * findings->room : 8;
        struct finding *larger = realloc(findings->at, (size_t)room * sizeof(*larger));

        if (!larger)
            return NULL;
        findings->at = larger;
        findings->room = room;
    }
    findings->at[findings->count] = (struct finding){.culprit = -1, .culprit_rank = -1};
    return &findings->at[findings->count++];
}

void finding_say(struct finding *finding, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(finding->sentence, sizeof(finding->sentence), format, arguments);
    va_end(arguments);
}

/* The way of the search to this sighting, from its start. */
static void keep_chain(const struct search *search, int last, struct finding *finding)
{
    int length = 0, at = last;

    for (; at >= 0 && length < CHAIN_MAX; at = search->from[at])
        finding->chain[length++] = at;
    for (int i = 0; i < length / 2; i++) {
        int swapped = finding->chain[i];

        finding->chain[i] = finding->chain[length - 1 - i];
        finding->chain[length - 1 - i] = swapped;
    }
    finding->length = length;
}

/* A rank that is in no call: why not? */
static enum cause why_absent(const struct sighting *sighting)
{
    const struct sighting_process *process = &sighting->process;

    if (process->state == 'D' || process->system_call == SYS_fsync ||
        process->system_call == SYS_fdatasync)
        return CAUSE_SLOW;
    if (process->system_call == SYS_futex || process->system_call == SYS_flock)
        return CAUSE_LOCK;
    return process->moved ? CAUSE_SLOW : CAUSE_NEVER_CALLED;
}

enum cause sighting_cause(const struct sighting *sighting)
{
    switch (sighting_state(sighting)) {
    case RANK_ENDED:
        return CAUSE_DEAD;
    case RANK_BROKEN:
        return CAUSE_FAILED;
    case RANK_OPENING:
        return CAUSE_NEVER_CALLED;
    default:
        break;
    }
    if (sighting->process.state == 'T' || sighting->process.state == 't')
        return CAUSE_STOPPED;
    return sighting_state(sighting) == RANK_INSIDE ? CAUSE_SLOW : why_absent(sighting);
}

/* Writes what helps against a cause. */
static void write_remedy(enum cause cause, int pid, char *text, size_t size)
{
    static const char *const remedies[CAUSES] = {
        [CAUSE_NEVER_CALLED] = ". It has to make the call that others wait in",
        [CAUSE_DEAD] = ". Look at its output for the reason",
        [CAUSE_LOCK] = ". `rondo ps --stack` shows who waits for the lock"};

    snprintf(text, size, "%s", remedies[cause] ? remedies[cause] : "");
    if (cause == CAUSE_STOPPED)
        snprintf(text, size, ". `kill -CONT %d` lets it go on", pid);
}

static void say_culprit(const struct sightings *sightings, struct finding *finding)
{
    const struct sighting *sighting = sightings->at[finding->culprit];
    const struct recorder_identity *identity = &sighting->record.identity;
    const struct sighting_call *call = sighting_call(sighting);
    char process[200], did[200] = "it has made no call yet", last[120], remedy[80];

    sighting_describe_process(sighting, process, sizeof(process));
    sighting_describe_call(sighting, last, sizeof(last));
    write_remedy(finding->cause, identity->pid, remedy, sizeof(remedy));
    if (call)
        snprintf(did, sizeof(did), "its %s call is %s%s",
                 call->state == RECORDER_BEGUN ? "present" : "last", last,
                 sighting->process.moved ? ", and it gets on" : "");
    finding_say(finding, "rank %d (process %d on %s) %s; %s%s", identity->rank, identity->pid,
                sighting->where, process, did, remedy);
}

static bool is_known(const struct findings *findings, int culprit)
{
    for (int i = 0; i < findings->count; i++)
        if (findings->at[i].culprit == culprit && culprit >= 0)
            return true;
    return false;
}

static void add_culprit(const struct search *search, int start, int culprit,
                        struct findings *findings)
{
    struct finding *finding = is_known(findings, culprit) ? NULL : finding_add(findings);

    if (!finding)
        return;
    finding->culprit = culprit;
    finding->culprit_rank = search->sightings->at[culprit]->record.identity.rank;
    finding->comm = sightings_comm_begin(search->sightings, start);
    finding->cause = sighting_cause(search->sightings->at[culprit]);
    finding->seconds = sighting_waited(search->sightings->at[start]);
    keep_chain(search, culprit, finding);
    say_culprit(search->sightings, finding);
}

static void add_missing(const struct search *search, int start, struct findings *findings)
{
    struct finding *finding;

    for (int i = 0; i < findings->count; i++)
        if (findings->at[i].cause == CAUSE_UNKNOWN &&
            findings->at[i].culprit_rank == search->missing &&
            findings->at[i].comm == sightings_comm_begin(search->sightings, start))
            return;
    finding = finding_add(findings);
    if (!finding)
        return;
    finding->cause = CAUSE_UNKNOWN;
    finding->culprit_rank = search->missing;
    finding->comm = sightings_comm_begin(search->sightings, start);
    finding->seconds = sighting_waited(search->sightings->at[start]);
    keep_chain(search, search->missing_by, finding);
    finding_say(finding,
                "rank %d is waited for, and has no record among those read: it is on a host that "
                "was not asked (--hosts), has closed the communicator, or records nothing "
                "(RONDO_RECORDER=0)",
                search->missing);
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void search_from(struct search *search, int start, struct findings *findings,
                        bool *in_circle)
{
    int culprit = find_culprit(search, start);

    if (culprit >= 0)
        add_culprit(search, start, culprit, findings);
    else if (search->missing >= 0)
        add_missing(search, start, findings);
    else
        circle_add(search->sightings, search->from, start, in_circle, findings);
}

static int compare_waits(const void *a, const void *b)
{
    const struct finding *one = a, *other = b;

    return one->seconds > other->seconds ? -1 : one->seconds < other->seconds;
}

/* Adds why those from `begin` to `end` wait that do. */
static void find_causes(const struct sightings *sightings, int begin, int end,
                        struct findings *findings)
{
    size_t count = (size_t)sightings->count;
    struct search search = {sightings, calloc(count + 1, sizeof(int)),
                            calloc(count + 1, sizeof(int)), -1, -1};
    bool *in_circle = calloc(count + 1, sizeof(*in_circle));

    for (int i = begin; i < end && search.from && search.queue && in_circle; i++)
        if (sighting_state(sightings->at[i]) == RANK_WAITS && !differ_has(findings, sightings, i))
            search_from(&search, i, findings, in_circle);
    free(search.from);
    free(search.queue);
    free(in_circle);
}

void findings_make(const struct sightings *sightings, struct findings *ret_findings)
{
    *ret_findings = (struct findings){0};
    for (int i = 0; i < sightings->count; i = sightings_comm_end(sightings, i))
        differ_add(sightings, i, ret_findings);
    find_causes(sightings, 0, sightings->count, ret_findings);
    for (int i = 0; i < sightings->count; i = sightings_comm_end(sightings, i))
        failure_add(sightings, i, ret_findings);
    if (ret_findings->count)
        qsort(ret_findings->at, (size_t)ret_findings->count, sizeof(*ret_findings->at),
              compare_waits);
}

bool finding_make(const struct sightings *sightings, int of, struct finding *ret_finding)
{
    struct findings findings = {0};
    bool found;

    differ_add(sightings, sightings_comm_begin(sightings, of), &findings);
    find_causes(sightings, of, of + 1, &findings);
    found = findings.count > 0;
    if (found)
        *ret_finding = findings.at[0];
    findings_done(&findings);
    return found;
}

void findings_done(struct findings *findings)
{
    free(findings->at);
    *findings = (struct findings){0};
}
