/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sightings.c - what another host says for `rondo ps`: records of ranks that anybody may have
 * written, and all that is made of them (cli/ps/, comm/recorder/). A record is 12 kB, most of it
 * empty: the input says what is where.
 */
#include "tests/fuzz/fuzz.h"

#include "cli/ps/ps.h"
#include "comm/recorder/table.h"

#include <stdlib.h>
#include <string.h>

enum { RECORDS = 8 };

/* Says what the next bytes of an input are. */
enum what { IDENTITY, CALL, WAIT, FAILURE, ARRIVAL, WORDS, KERNEL, NEXT_RECORD, WHATS };

/* Lies in memory as `rondo ps --raw` writes it. */
struct raw {
    struct {
        char magic[8];
        uint32_t record_bytes, process_bytes;
    } head;
    struct {
        unsigned char process[sizeof(struct sighting_process)];
        unsigned char page[sizeof(struct recorder_page)];
    } records[RECORDS];
};
_Static_assert(sizeof(((struct raw *)0)->records[0]) ==
                   sizeof(struct sighting_process) + sizeof(struct recorder_page),
               "one follows the other");

static void begin_record(struct raw *raw, int rank)
{
    const struct recorder_identity identity = {.magic = RECORDER_MAGIC,
                                               .version = RECORDER_VERSION,
                                               .bytes = sizeof(struct recorder_page),
                                               .pid = rank + 1,
                                               .tid = rank + 1,
                                               .rank = rank,
                                               .size = RECORDS,
                                               .world = rank};
    const uint64_t comm = 5, open = RECORDER_OPEN;
    unsigned char *page = raw->records[rank].page;

    memcpy(page, &identity, sizeof(identity));
    memcpy(page + offsetof(struct recorder_page, comm), &comm, sizeof(comm));
    memcpy(page + offsetof(struct recorder_page, stage), &open, sizeof(open));
    raw->records[rank].process[offsetof(struct sighting_process, state)] = 'S';
}

/* Fills a part of the record, of at most so many bytes, from somewhere in it. */
static void take_part(struct fuzz_input *input, unsigned char *part, size_t bytes)
{
    size_t from = fuzz_byte(input) % bytes, most = 1 + fuzz_byte(input);

    fuzz_bytes(input, part + from, most < bytes - from ? most : bytes - from);
}

/* A number that is even says that what follows it is whole. */
static void take_guarded(struct fuzz_input *input, unsigned char *changes, size_t bytes)
{
    changes[0] = (unsigned char)(2 + fuzz_byte(input) % 4);
    take_part(input, changes + sizeof(uint64_t), bytes);
}

static void take_call(struct fuzz_input *input, unsigned char *page)
{
    unsigned slot = fuzz_byte(input) % RECORDER_CALLS;
    uint64_t mark = fuzz_byte(input) % 4 | (uint64_t)slot << 8 | fuzz_number(input, 4) << 32;
    unsigned char *call = page + offsetof(struct recorder_page, calls[slot]);

    memcpy(call, &mark, sizeof(mark));
    take_part(input, call + offsetof(struct recorder_call, words),
              sizeof(struct recorder_call) - offsetof(struct recorder_call, words));
}

static void take(struct fuzz_input *input, enum what what, struct raw *raw, int rank)
{
    unsigned char *page = raw->records[rank].page;
    unsigned which = fuzz_byte(input);

    switch (what) {
    case IDENTITY:
        take_part(input, page, sizeof(struct recorder_identity));
        return;
    case CALL:
        take_call(input, page);
        return;
    case WAIT:
        take_guarded(input, page + offsetof(struct recorder_page, waits[which % RECORDER_WAITS]),
                     sizeof(struct recorder_waiting));
        return;
    case FAILURE:
        take_guarded(input, page + offsetof(struct recorder_page, failure),
                     sizeof(struct recorder_failure));
        return;
    case ARRIVAL:
        fuzz_bytes(input, page + offsetof(struct recorder_page, arrivals[which]),
                   sizeof(struct recorder_arrival));
        return;
    case KERNEL:
        take_part(input, raw->records[rank].process, sizeof(struct sighting_process));
        return;
    default:
        fuzz_bytes(input, page + offsetof(struct recorder_page, comm), 4 * sizeof(uint64_t));
    }
}

/* Returns how many bytes there are. */
static size_t make(struct fuzz_input *input, struct raw *raw)
{
    int rank = 0;

    memset(raw, 0, sizeof(*raw));
    memcpy(raw->head.magic, "rondops2", sizeof(raw->head.magic));
    raw->head.record_bytes = sizeof(struct recorder_page);
    raw->head.process_bytes = sizeof(struct sighting_process);
    for (; rank < RECORDS && fuzz_has_more(input); rank++) {
        enum what what;

        begin_record(raw, rank);
        while (fuzz_has_more(input) && (what = fuzz_byte(input) % WHATS) != NEXT_RECORD)
            take(input, what, raw, rank);
    }
    return offsetof(struct raw, records) + (size_t)rank * sizeof(raw->records[0]);
}

static void tell(const struct sightings *sightings)
{
    struct findings findings;
    size_t length;
    char *text;

    findings_make(sightings, &findings);
    fuzz_listen();
    table_write(stdout, sightings, &findings, NULL, NULL);
    table_write_late(stdout, sightings);
    free(fuzz_heard(&length));
    fuzz_listen();
    (void)!ps_write_json(sightings, &findings);
    text = fuzz_heard(&length);
    fuzz_expect_json(text, length);
    free(text);
    findings_done(&findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct raw raw;
    struct fuzz_input input = {bytes, bytes + count};
    struct sightings sightings = {0};

    if (fuzz_byte(&input) & 1)
        fuzz_expect(ps_read(&raw, make(&input, &raw), "there", &sightings),
                    "what is written as by `rondo ps --raw` is read");
    else
        (void)!ps_read(bytes, count, "there", &sightings);
    sightings_sort(&sightings);
    tell(&sightings);
    sightings_done(&sightings);
    return 0;
}
