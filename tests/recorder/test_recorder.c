/* SPDX-License-Identifier: BSD-3-Clause */
/* test_recorder.c - records while they are written, and bytes that are none. */
#include <criterion/criterion.h>

#include "base/caller/times.h"
#include "comm/recorder/folder.h"
#include "comm/recorder/gather.h"
#include "comm/recorder/late.h"
#include "comm/recorder/recorder.h"
#include "comm/recorder/table.h"
#include "comm/recorder/wait_line.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A rank has begun to write this, and has written it at the third doze of who reads; NULL: none. */
static _Atomic uint64_t *unfinished;
static int dozes;

int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest);

/* Dozes take no time here, as a rank that writes without a pause would make them all long. */
int __wrap_nanosleep(const struct timespec *time, struct timespec *ret_rest)
{
    (void)time;
    (void)ret_rest;
    if (unfinished && ++dozes == 3)
        atomic_fetch_add_explicit(unfinished, 1, memory_order_release);
    return 0;
}

static char place[] = "/tmp/rondo_recorder_XXXXXX";

static struct recorder *open_one(int rank, int size)
{
    static const unsigned char host[16] = {1, 2, 3};

    return recorder_open(&(struct recorder_owner){.rank = rank, .size = size, .host_id = host});
}

static void make_place(void)
{
    cr_assert_not_null(mkdtemp(place));
    setenv("RONDO_RECORDER_DIR", place, 1);
}

static void remove_place(void)
{
    rmdir(place);
}

TestSuite(recorder, .init = make_place, .fini = remove_place);

/* Every field of a record of call n says n. */
static void write_call(struct recorder *recorder, uint32_t call)
{
    char name[16];
    const struct recorder_kind kind = {.record = {.collective = (uint8_t)(call % 11),
                                                  .type = (uint8_t)call,
                                                  .root = (int32_t)call,
                                                  .count = (uint64_t)call << 20,
                                                  .fingerprint = call},
                                       .algorithm = name,
                                       .is_long = true};
    uint64_t mark;

    snprintf(name, sizeof(name), "a%u", call);
    mark = recorder_begin(recorder, call, &kind);
    recorder_wait(recorder, 0,
                  &(struct recorder_waiting){.call = call, .since = call, .looked = call});
    recorder_end(recorder, mark, RECORDER_DONE);
}

struct writer {
    struct recorder *recorder;
    atomic_bool enough;
};

static void *write_calls(void *argument)
{
    struct writer *writer = argument;

    for (uint32_t call = 1; !atomic_load_explicit(&writer->enough, memory_order_relaxed); call++)
        write_call(writer->recorder, call);
    return NULL;
}

static bool is_whole(const struct sighting_record *record)
{
    char name[16];

    for (int i = 0; i < record->calls_count; i++) {
        const struct sighting_call *call = &record->calls[i];

        snprintf(name, sizeof(name), "a%u", call->call);
        if (call->record.root != (int32_t)call->call || call->record.fingerprint != call->call ||
            call->record.count != (uint64_t)call->call << 20 || strcmp(call->algorithm, name) != 0)
            return false;
    }
    return !record->waits[0] || (record->waiting[0].since == record->waiting[0].call &&
                                 record->waiting[0].looked == record->waiting[0].call);
}

Test(recorder, what_is_read_while_it_is_written_is_whole_or_left_out)
{
    struct writer writer = {.recorder = open_one(0, 2)};
    struct sightings seen = {0};
    int whole = 0, calls = 0;
    pthread_t thread;

    cr_assert_not_null(writer.recorder);
    cr_assert_eq(pthread_create(&thread, NULL, write_calls, &writer), 0);
    for (int look = 0; look < 2000; look++) {
        cr_assert(gather_here(0, &seen));
        cr_assert_eq(seen.count, 1);
        whole += is_whole(&seen.at[0]->record);
        calls += seen.at[0]->record.calls_count;
        sightings_done(&seen);
    }
    atomic_store_explicit(&writer.enough, true, memory_order_relaxed);
    pthread_join(thread, NULL);
    cr_expect_eq(whole, 2000);
    cr_expect_gt(calls, 0);
    recorder_close(writer.recorder);
}

/* Begins a call; true if the words of its record were written for it. */
static bool begin_writes(struct recorder *recorder, const struct recorder_kind *kind)
{
    struct recorder_call *call = &recorder->page->calls[(recorder->number + 1) % RECORDER_CALLS];
    uint64_t word = atomic_load_explicit(&call->words[0], memory_order_relaxed);
    bool written;

    atomic_store_explicit(&call->words[0], ~word, memory_order_relaxed); /* gone when written */
    recorder_begin(recorder, 0, kind);
    written = atomic_load_explicit(&call->words[0], memory_order_relaxed) != ~word;
    if (!written)
        atomic_store_explicit(&call->words[0], word, memory_order_relaxed);
    return written;
}

Test(recorder, records_of_two_kinds_in_turns_keep_their_words)
{
    const struct recorder_kind kinds[2] = {
        {.record = {.collective = RONDO_SEND, .fingerprint = 7}, .algorithm = "direct"},
        {.record = {.collective = RONDO_RECV, .fingerprint = 8}, .algorithm = "direct"}};
    struct recorder *recorder = open_one(1, 2);

    cr_assert_not_null(recorder);
    for (uint32_t call = 1; call <= 3 * RECORDER_CALLS; call++) {
        /* At last the turns are the other way round. */
        const struct recorder_kind *kind = &kinds[(call + (call > 2 * RECORDER_CALLS)) % 2];
        bool written = begin_writes(recorder, kind);

        cr_assert_eq(written, call <= RECORDER_CALLS || call > 2 * RECORDER_CALLS, "%u", call);
    }
    recorder_close(recorder);
}

Test(recorder, the_last_64_calls_are_read_in_their_order_also_when_they_are_all_alike)
{
    const struct recorder_kind kind = {.record = {.collective = RONDO_BARRIER, .fingerprint = 7},
                                       .algorithm = "tree"};
    struct recorder *recorder = open_one(1, 2);
    struct sightings seen = {0};

    cr_assert_not_null(recorder);
    for (uint32_t call = 1; call <= 201; call++) {
        uint64_t mark = recorder_begin(recorder, call, &kind);

        if (call <= 200)
            recorder_end(recorder, mark, RECORDER_DONE);
    }
    cr_assert(gather_here(0, &seen));
    cr_assert_eq(seen.count, 1);
    cr_expect_eq(seen.at[0]->record.calls_count, RECORDER_CALLS);
    for (int i = 0; i < RECORDER_CALLS; i++) {
        const struct sighting_call *call = &seen.at[0]->record.calls[i];

        cr_expect_eq(call->call, 201 - (uint32_t)i);
        cr_expect_eq(call->state, i ? RECORDER_DONE : RECORDER_BEGUN);
        cr_expect_eq(call->record.fingerprint, 7);
        cr_expect_str_eq(call->algorithm, "tree");
    }
    /* One in 64 was timed. */
    cr_expect_eq(seen.at[0]->record.arrivals_count, 3);
    sightings_done(&seen);
    recorder_close(recorder);
}

/* Both have made the same last call, and the calls of streams are not recorded. */
Test(recorder, a_wait_on_a_stream_is_told_with_its_peer)
{
    struct recorder *recorders[2] = {open_one(0, 2), open_one(1, 2)};
    struct recorder_waiting waiting = {
        .call = 1, .looked = clock_nanoseconds(), .culprit = -1, .peers_count = 1, .peers = {1}};
    struct sightings seen = {0};
    struct wait_line line;
    char text[1200];

    waiting.since = waiting.looked - 3000000000u;
    for (int i = 0; i < 2; i++) {
        cr_assert_not_null(recorders[i]);
        recorder_name(recorders[i], 0x3f9d);
        recorder_complete(recorders[i], 0);
        write_call(recorders[i], 1);
    }
    recorder_wait(recorders[0], 1, &waiting);
    cr_assert(gather_here(0, &seen));
    cr_assert_eq(seen.count, 2);
    cr_assert(wait_line_read(&seen, 0, &line));
    wait_line_write(&line, text, sizeof(text));
    cr_expect(strstr(text, "On a stream, rank 0 has waited 3.") == text, "%s", text);
    cr_expect(
        strstr(text, " s for rank 1 in a call, communicator 3f9d of 2 ranks. Rank 1 (process "),
        "%s", text);
    cr_assert_not(wait_line_read(&seen, 1, &line));
    sightings_done(&seen);
    for (int i = 0; i < 2; i++)
        recorder_close(recorders[i]);
}

/* Whether rank 0 is seen to wait on its stream. */
static bool is_seen_waiting(void)
{
    struct sightings seen = {0};
    bool waits;

    cr_assert(gather_here(0, &seen));
    cr_assert_eq(seen.count, 1);
    waits = sighting_wait(seen.at[0]) != NULL;
    sightings_done(&seen);
    return waits;
}

Test(recorder, a_rank_that_says_why_it_waits_is_waiting)
{
    struct recorder *recorder = open_one(0, 2);
    struct recorder_waiting waiting = {.looked = 1, .culprit = -1, .peers_count = 1, .peers = {1}};

    cr_assert_not_null(recorder);
    recorder_complete(recorder, 0);
    recorder_wait(recorder, 1, &waiting);
    cr_expect_not(is_seen_waiting());
    recorder_hold_wait(recorder, 1, true);
    cr_expect(is_seen_waiting());
    recorder_wait(recorder, 1, &waiting);
    cr_expect_not(is_seen_waiting());
    recorder_close(recorder);
}

Test(recorder, a_rank_that_loses_its_processor_while_it_writes_is_waiting)
{
    struct recorder *recorder = open_one(0, 2);

    cr_assert_not_null(recorder);
    recorder_complete(recorder, 0);
    recorder_wait(recorder, 1, &(struct recorder_waiting){.culprit = -1, .peers_count = 1});
    recorder_hold_wait(recorder, 1, true);
    unfinished = &recorder->page->waits[1].changes;
    atomic_fetch_add_explicit(unfinished, 1, memory_order_relaxed);
    cr_expect(is_seen_waiting());
    cr_expect_eq(dozes, 3);
    recorder_close(recorder);
}

struct taking {
    uint64_t began, first; /* when records were asked for, and when the first was taken */
    int count;
};

static bool note_age(void *context, const struct gathered *one)
{
    struct taking *taking = context;

    taking->first = taking->first ? taking->first : clock_nanoseconds();
    cr_expect(one->process.read >= taking->began && one->process.read <= taking->first);
    taking->count++;
    while (clock_nanoseconds() == taking->first) {
    }
    return true;
}

/* Many records may take seconds on a busy machine: who waits is not late because of that. */
Test(recorder, a_record_is_as_old_as_when_it_was_read)
{
    struct recorder *recorders[2] = {open_one(0, 2), open_one(1, 2)};
    struct taking taking = {.began = clock_nanoseconds()};

    cr_assert(recorders[0] && recorders[1]);
    cr_assert(gather_each(0, note_age, &taking));
    cr_expect_eq(taking.count, 2);
    for (int i = 0; i < 2; i++)
        recorder_close(recorders[i]);
}

Test(recorder, a_wait_that_was_written_while_it_was_copied_is_known)
{
    enum { COPIES = 3 };
    static struct recorder_page pages[COPIES];
    const uint64_t changes[2] = {2, 4};

    for (int i = 0; i < COPIES; i++)
        memcpy((char *)&pages[i] + offsetof(struct recorder_page, waits[0]), &changes[0],
               sizeof(changes[0]));
    cr_expect(sighting_settle(&pages[1], &pages[0], &pages[2], sizeof(pages[1])));
    memcpy((char *)&pages[2] + offsetof(struct recorder_page, waits[0]), &changes[1],
           sizeof(changes[1]));
    cr_expect_not(sighting_settle(&pages[1], &pages[0], &pages[2], sizeof(pages[1])));
}

/* Bytes of a record whose identity is right, and nothing else need be. */
static void make_wild(unsigned char *bytes, unsigned seed)
{
    struct recorder_identity identity = {.magic = RECORDER_MAGIC,
                                         .version = RECORDER_VERSION,
                                         .bytes = sizeof(struct recorder_page),
                                         .pid = 1,
                                         .tid = 1,
                                         .rank = 1,
                                         .size = 4};

    srand(seed);
    for (size_t i = 0; i < sizeof(struct recorder_page); i++)
        bytes[i] = (unsigned char)(rand() >> 7);
    memset(identity.host, 0xff, sizeof(identity.host));
    memcpy(bytes, &identity, sizeof(identity));
    /* Most records would be passed over: make them likely. */
    for (int i = 0; i < RECORDER_CALLS; i++)
        bytes[offsetof(struct recorder_page, calls[i].mark)] = (unsigned char)(rand() % 4);
}

Test(recorder, bytes_of_all_kinds_are_read_within_bounds)
{
    static unsigned char bytes[sizeof(struct recorder_page)];
    static struct sighting_record record;
    const struct sighting_process process = {.life = SIGHTING_ALIVE, .state = 'S'};
    struct sightings seen = {0};

    for (unsigned seed = 0; seed < 300; seed++) {
        make_wild(bytes, seed);
        cr_assert(sighting_parse(bytes, sizeof(bytes), &record));
        cr_assert_not(sighting_parse(bytes, sizeof(bytes) - 1, &record));
        cr_assert(sighting_parse(bytes, sizeof(bytes), &record));
        for (int i = 0; i < RECORDER_WAITS; i++)
            for (int k = 0; k < record.waiting[i].peers_count; k++)
                cr_assert(record.waiting[i].peers[k] >= 0 && record.waiting[i].peers[k] < 4);
        cr_assert_lt(strlen(record.identity.host), sizeof(record.identity.host));
        cr_assert(sightings_add(&seen, bytes, sizeof(bytes), &process, "here"));
    }
    sightings_sort(&seen);
    for (int i = 0; i < seen.count; i = sightings_comm_end(&seen, i)) {
        struct lateness *late;

        free(late_make(&seen, i, &late) ? late : NULL);
    }
    sightings_done(&seen);
}

Test(recorder, findings_in_wild_records_end)
{
    static unsigned char bytes[sizeof(struct recorder_page)];
    const struct sighting_process process = {.life = SIGHTING_ALIVE, .state = 'S'};
    struct sightings seen = {0};
    struct findings findings;
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);

    for (unsigned seed = 0; seed < 12; seed++) {
        uint64_t comm = 5;
        int32_t rank = (int32_t)(seed % 4);

        make_wild(bytes, seed);
        memcpy(bytes + offsetof(struct recorder_page, comm), &comm, sizeof(comm));
        memcpy(bytes + offsetof(struct recorder_page, identity.rank), &rank, sizeof(rank));
        cr_assert(sightings_add(&seen, bytes, sizeof(bytes), &process, "here"));
    }
    sightings_sort(&seen);
    findings_make(&seen, &findings);
    table_write(to, &seen, &findings, NULL, NULL);
    table_write_late(to, &seen);
    for (int i = 0; i < seen.count; i++) {
        struct wait_line line;
        char sentence[300];

        if (wait_line_read(&seen, i, &line))
            wait_line_write(&line, sentence, sizeof(sentence));
    }
    fclose(to);
    cr_expect(strstr(text, "communicator 5 of 4 ranks"), "%s", text);
    free(text);
    findings_done(&findings);
    sightings_done(&seen);
}
