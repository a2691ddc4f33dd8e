/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - see read.h. Everything that comes out is within its bounds, whatever the bytes were. */
#include "comm/recorder/read.h"

#include <stdlib.h>
#include <string.h>

/* ---- A record -------------------------------------------------------------------------------- */

static uint64_t word_at(const void *bytes, size_t offset)
{
    uint64_t word;

    memcpy(&word, (const char *)bytes + offset, sizeof(word));
    return word;
}

#define WORD(bytes, member) word_at(bytes, offsetof(struct recorder_page, member))

static void clean(char *text, size_t size)
{
    text[size - 1] = '\0';
    for (char *c = text; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static bool read_identity(const void *bytes, struct recorder_identity *ret_identity)
{
    struct recorder_identity *identity = ret_identity;

    memcpy(identity, bytes, sizeof(*identity));
    clean(identity->host, sizeof(identity->host));
    clean(identity->program, sizeof(identity->program));
    if (identity->world < -1 || identity->world >= RECORDER_WORLD_MAX)
        identity->world = -1;
    return identity->magic == RECORDER_MAGIC && identity->version == RECORDER_VERSION &&
           identity->bytes == sizeof(struct recorder_page) && identity->pid > 0 &&
           identity->tid > 0 && identity->size > 0 && identity->rank >= 0 &&
           identity->rank < identity->size;
}

static void read_waiting(const char *bytes, int which, struct sighting_record *record)
{
    size_t offset = offsetof(struct recorder_page, waits[which]);
    uint64_t changes = word_at(bytes, offset);
    struct recorder_waiting *waiting = &record->waiting[which];
    int32_t size = record->identity.size;
    int kept = 0;

    record->waits[which] = changes && changes % 2 == 0;
    memcpy(waiting, bytes + offset + sizeof(changes), sizeof(*waiting));
    clean(waiting->what, sizeof(waiting->what));
    if (waiting->culprit < -1 || waiting->culprit >= size)
        waiting->culprit = -1;
    for (int i = 0; i < waiting->peers_count && i < RECORDER_PEERS; i++)
        if (waiting->peers[i] >= 0 && waiting->peers[i] < size)
            waiting->peers[kept++] = waiting->peers[i];
    waiting->peers_count = kept;
}

static void read_failure(const char *bytes, struct sighting_record *record)
{
    size_t offset = offsetof(struct recorder_page, failure);
    uint64_t changes = word_at(bytes, offset);
    struct recorder_failure *failure = &record->failure;

    record->failed = changes && changes % 2 == 0;
    memcpy(failure, bytes + offset + sizeof(changes), sizeof(*failure));
    clean(failure->sentence, sizeof(failure->sentence));
    if (failure->culprit < -1 || failure->culprit >= record->identity.size)
        failure->culprit = -1;
}

/* Records are numbered in 24 bits, and the oldest is less than RECORDER_CALLS before the newest. */
static int compare_calls(const void *a, const void *b)
{
    const struct sighting_call *one = a, *other = b;
    uint32_t ahead = (one->number - other->number) % RECORDER_NUMBERS;

    return ahead == 0 ? 0 : ahead < 0x800000 ? -1 : 1;
}

static void read_calls(const char *bytes, struct sighting_record *record)
{
    int count = 0;

    for (int i = 0; i < RECORDER_CALLS; i++) {
        const char *at = bytes + offsetof(struct recorder_page, calls[i]);
        struct sighting_call *call = &record->calls[count];
        uint64_t mark = word_at(at, 0);

        if ((mark & 0xff) == RECORDER_EMPTY || (mark & 0xff) > RECORDER_REPEATED ||
            (mark >> 8 & 0xffffff) % RECORDER_CALLS != (uint64_t)i)
            continue;
        call->call = (uint32_t)(mark >> 32);
        call->number = (uint32_t)(mark >> 8 & 0xffffff);
        call->state = (enum recorder_state)(mark & 0xff);
        memcpy(&call->record, at + offsetof(struct recorder_call, words), sizeof(call->record));
        memcpy(call->algorithm, at + offsetof(struct recorder_call, algorithm),
               sizeof(call->algorithm) - 1);
        clean(call->algorithm, sizeof(call->algorithm));
        count++;
    }
    qsort(record->calls, (size_t)count, sizeof(*record->calls), compare_calls);
    record->calls_count = count;
}

static void read_arrivals(const char *bytes, struct sighting_record *record)
{
    int count = 0;

    for (int i = 0; i < RECORDER_ARRIVALS; i++) {
        const char *at = bytes + offsetof(struct recorder_page, arrivals[i]);
        uint64_t call = word_at(at, offsetof(struct recorder_arrival, call));

        if (!call || call > UINT32_MAX)
            continue;
        record->arrivals[count++] = (struct sighting_arrival){
            .call = (uint32_t)call, .begun = word_at(at, offsetof(struct recorder_arrival, begun))};
    }
    record->arrivals_count = count;
}

bool sighting_parse(const void *bytes, size_t length, struct sighting_record *ret_record)
{
    struct sighting_record *record = ret_record;

    memset(record, 0, sizeof(*record));
    if (length < sizeof(struct recorder_page) || !read_identity(bytes, &record->identity))
        return false;
    record->comm = WORD(bytes, comm);
    record->stage = WORD(bytes, stage) ? RECORDER_OPEN : RECORDER_OPENING;
    record->internal = (uint32_t)WORD(bytes, internal);
    record->told = WORD(bytes, told);
    read_failure(bytes, record);
    for (int i = 0; i < RECORDER_WAITS; i++)
        read_waiting(bytes, i, record);
    read_calls(bytes, record);
    read_arrivals(bytes, record);
    return true;
}

/* Words are those of a mark that was there before they were copied, and still was afterwards. */
struct copies {
    char *copy;
    const char *before, *after;
};

static void settle(const struct copies *copies, size_t offset, uint64_t spoilt)
{
    uint64_t mark = word_at(copies->after, offset);

    if (word_at(copies->before, offset) != mark)
        mark = spoilt;
    memcpy(copies->copy + offset, &mark, sizeof(mark));
}

/* A call that ends meanwhile has the same words. */
static void settle_call(const struct copies *copies, size_t offset)
{
    const uint64_t number = 0xffffff00;
    uint64_t mark = word_at(copies->after, offset);

    if ((word_at(copies->before, offset) & number) != (mark & number))
        mark = RECORDER_EMPTY;
    memcpy(copies->copy + offset, &mark, sizeof(mark));
}

bool sighting_settle(void *copy, const void *before, const void *after, size_t length)
{
    const struct copies copies = {copy, before, after};
    bool whole = true;

    if (length < sizeof(struct recorder_page))
        return true;
    settle(&copies, offsetof(struct recorder_page, failure), 1);
    for (int i = 0; i < RECORDER_WAITS; i++) {
        settle(&copies, offsetof(struct recorder_page, waits[i]), 1);
        whole &= word_at(copy, offsetof(struct recorder_page, waits[i])) % 2 == 0;
    }
    for (int i = 0; i < RECORDER_ARRIVALS; i++)
        settle(&copies, offsetof(struct recorder_page, arrivals[i].call), 0);
    for (int i = 0; i < RECORDER_CALLS; i++)
        settle_call(&copies, offsetof(struct recorder_page, calls[i].mark));
    return whole;
}

/* ---- A list of sightings --------------------------------------------------------------------- */

bool sightings_add(struct sightings *sightings, const void *bytes, size_t length,
                   const struct sighting_process *process, const char *where)
{
    struct sighting *sighting = malloc(sizeof(*sighting));

    if (!sighting || !sighting_parse(bytes, length, &sighting->record)) {
        free(sighting);
        return false;
    }
    if (sightings->count == sightings->room) {
        int room = sightings->room ? 2 * sightings->room : 16;
        struct sighting **larger = realloc(sightings->at, (size_t)room * sizeof(*larger));

        if (!larger) {
            free(sighting);
            return false;
        }
        sightings->at = larger;
        sightings->room = room;
    }
    sighting->process = *process;
    sighting->process.inside[sizeof(sighting->process.inside) - 1] = '\0';
    clean(sighting->process.inside, sizeof(sighting->process.inside));
    clean(sighting->process.file, sizeof(sighting->process.file));
    memset(sighting->where, 0, sizeof(sighting->where));
    strncpy(sighting->where, where, sizeof(sighting->where) - 1);
    clean(sighting->where, sizeof(sighting->where));
    sightings->at[sightings->count++] = sighting;
    return true;
}

static int compare_sightings(const void *a, const void *b)
{
    const struct sighting_record *one = &(*(struct sighting *const *)a)->record;
    const struct sighting_record *other = &(*(struct sighting *const *)b)->record;

    if (one->comm != other->comm)
        return one->comm < other->comm ? -1 : 1;
    if (one->identity.rank != other->identity.rank)
        return one->identity.rank < other->identity.rank ? -1 : 1;
    return one->identity.pid < other->identity.pid ? -1 : one->identity.pid > other->identity.pid;
}

void sightings_sort(struct sightings *sightings)
{
    if (sightings->count)
        qsort(sightings->at, (size_t)sightings->count, sizeof(*sightings->at), compare_sightings);
}

void sightings_done(struct sightings *sightings)
{
    for (int i = 0; i < sightings->count; i++)
        free(sightings->at[i]);
    free(sightings->at);
    *sightings = (struct sightings){0};
}
