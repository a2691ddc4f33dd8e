/* SPDX-License-Identifier: BSD-3-Clause */
/* recorder.c - see recorder.h. */
#include "comm/recorder/recorder.h"

#include "base/caller/times.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/mapped.h"
#include "base/process.h"
#include "base/setting.h"
#include "comm/recorder/folder.h"
#include "comm/recorder/signal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Opening and closing --------------------------------------------------------------------- */

static void identify(struct recorder_identity *identity, const struct recorder_owner *owner)
{
    *identity = (struct recorder_identity){.version = RECORDER_VERSION,
                                           .bytes = sizeof(struct recorder_page),
                                           .pid = getpid(),
                                           .tid = (int32_t)syscall(SYS_gettid),
                                           .rank = owner->rank,
                                           .size = owner->size,
                                           .world = log_rank(),
                                           .started = process_started(getpid(), NULL),
                                           .namespace_id = process_namespace(),
                                           .opened = clock_nanoseconds()};
    memcpy(identity->host_id, owner->host_id, sizeof(identity->host_id));
    gethostname(identity->host, sizeof(identity->host) - 1);
    snprintf(identity->program, sizeof(identity->program), "%s", program_invocation_short_name);
}

static struct recorder *open_in(int folder, const struct recorder_owner *owner)
{
    static atomic_uint last;
    struct recorder *recorder = calloc(1, sizeof(*recorder));

    if (!recorder)
        return NULL;
    do {
        snprintf(recorder->name, sizeof(recorder->name), "%d.%llx.%u.rec", (int)getpid(),
                 (unsigned long long)clock_nanoseconds(),
                 atomic_fetch_add_explicit(&last, 1, memory_order_relaxed));
        recorder->page = mapped_create(folder, recorder->name, 0600, sizeof(struct recorder_page));
    } while (!recorder->page && errno == EEXIST);
    if (!recorder->page) {
        free(recorder);
        return NULL;
    }
    identify(&recorder->page->identity, owner);
    /* Readers that come too soon find no magic. */
    atomic_thread_fence(memory_order_release);
    recorder->page->identity.magic = RECORDER_MAGIC;
    return recorder;
}

struct recorder *recorder_open(const struct recorder_owner *owner)
{
    static atomic_flag swept = ATOMIC_FLAG_INIT;
    struct recorder *recorder = NULL;
    bool on = true;
    int folder;

    if (setting_read_bool(SETTING_RECORDER, &on) || !on)
        return NULL;
    folder = folder_open(true);
    if (folder >= 0 && !atomic_flag_test_and_set_explicit(&swept, memory_order_relaxed))
        folder_sweep(folder, false);
    if (folder >= 0)
        recorder = open_in(folder, owner);
    if (folder >= 0)
        close(folder);
    if (!recorder)
        log_info("calls are not recorded, `rondo ps` will not see rank %d: %s", owner->rank,
                 folder < 0 ? fail_sentence() : "the folder has no room");
    recorder_listen();
    return recorder;
}

void recorder_close(struct recorder *recorder)
{
    int folder;

    if (!recorder)
        return;
    folder = folder_open(false);
    if (folder >= 0) {
        unlinkat(folder, recorder->name, 0);
        close(folder);
    }
    munmap(recorder->page, sizeof(*recorder->page));
    free(recorder);
}

void recorder_name(struct recorder *recorder, uint64_t comm)
{
    if (recorder)
        atomic_store_explicit(&recorder->page->comm, comm, memory_order_release);
}

void recorder_complete(struct recorder *recorder, uint32_t internal)
{
    if (!recorder)
        return;
    atomic_store_explicit(&recorder->page->internal, internal, memory_order_relaxed);
    atomic_store_explicit(&recorder->page->stage, RECORDER_OPEN, memory_order_release);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

/* The next record gets its words, unless it has them already. */
void recorder_note_kind(struct recorder *recorder, const struct recorder_kind *kind)
{
    uint32_t at = (recorder->number + 1) % RECORDER_CALLS;
    struct recorder_call *call = &recorder->page->calls[at];
    uint64_t words[CALL_RECORD_WORDS], algorithm[RECORDER_NAME] = {0};

    recorder->words[at].kind = kind;
    recorder->words[at].fingerprint = kind->record.fingerprint;
    memcpy(words, &kind->record, sizeof(words));
    memcpy(algorithm, kind->algorithm, strnlen(kind->algorithm, sizeof(algorithm) - 1));
    atomic_store_explicit(&call->mark, RECORDER_EMPTY, memory_order_relaxed);
    /* Who sees a new word also sees the empty mark. */
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < CALL_RECORD_WORDS; i++)
        atomic_store_explicit(&call->words[i], words[i], memory_order_relaxed);
    for (int i = 0; i < RECORDER_NAME; i++)
        atomic_store_explicit(&call->algorithm[i], algorithm[i], memory_order_relaxed);
}

void recorder_arrive(struct recorder *recorder, uint32_t call)
{
    struct recorder_arrival *arrival =
        &recorder->page->arrivals[recorder->timed++ % RECORDER_ARRIVALS];

    atomic_store_explicit(&arrival->call, 0, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    atomic_store_explicit(&arrival->begun, clock_nanoseconds(), memory_order_relaxed);
    atomic_store_explicit(&arrival->call, call, memory_order_release);
}

/* ---- Waits and failures ---------------------------------------------------------------------- */

static void show(_Atomic uint64_t *changes, _Atomic uint64_t *words, const void *from, int count)
{
    uint64_t before = atomic_load_explicit(changes, memory_order_relaxed);
    const char *bytes = from;

    atomic_store_explicit(changes, before + 1, memory_order_relaxed);
    /* Who sees a new word also sees the odd number. */
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < count; i++) {
        uint64_t word;

        memcpy(&word, bytes + 8 * i, sizeof(word));
        atomic_store_explicit(&words[i], word, memory_order_relaxed);
    }
    atomic_store_explicit(changes, before + 2, memory_order_release);
}

void recorder_wait(struct recorder *recorder, int which, const struct recorder_waiting *waiting)
{
    if (recorder)
        show(&recorder->page->waits[which].changes, recorder->page->waits[which].words, waiting,
             RECORDER_WAITING_WORDS);
}

void recorder_hold_wait(struct recorder *recorder, int which, bool held)
{
    enum { LOOKED = offsetof(struct recorder_waiting, looked) / 8 };

    if (recorder)
        atomic_store_explicit(&recorder->page->waits[which].words[LOOKED],
                              held ? UINT64_MAX / 2 : clock_nanoseconds(), memory_order_relaxed);
}

void recorder_fail(struct recorder *recorder, int result, int culprit, const char *sentence)
{
    struct recorder_failure failure = {
        .result = result, .culprit = culprit, .when = clock_nanoseconds()};

    if (!recorder)
        return;
    snprintf(failure.sentence, sizeof(failure.sentence), "%s", sentence);
    show(&recorder->page->failure.changes, recorder->page->failure.words, &failure,
         RECORDER_FAILURE_WORDS);
}
