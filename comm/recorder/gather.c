/* SPDX-License-Identifier: BSD-3-Clause */
/* gather.c - see gather.h. */
#include "comm/recorder/gather.h"

#include "base/caller/times.h"
#include "comm/recorder/folder.h"
#include "comm/recorder/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RECORDS_MAX = 1 << 16 };

struct pile {
    struct gathered **at;
    char (*names)[64];
    int count, room;
};

static bool make_room(struct pile *pile)
{
    int room = pile->room ? 2 * pile->room : 16;
    struct gathered **at;
    char(*names)[64];

    if (pile->count < pile->room)
        return true;
    at = realloc(pile->at, (size_t)room * sizeof(*at));
    if (!at)
        return false;
    pile->at = at;
    names = realloc(pile->names, (size_t)room * sizeof(*names));
    if (!names)
        return false;
    pile->names = names;
    pile->room = room;
    return true;
}

static void identify(const struct gathered *one, struct recorder_identity *ret_identity)
{
    memcpy(ret_identity, one->bytes, sizeof(*ret_identity));
}

static bool read_all(int folder, const char *name, struct gathered *one)
{
    one->length = folder_read(folder, name, one->bytes, sizeof(one->bytes));
    return one->length == sizeof(one->bytes);
}

/*
 * Copies a record three times, so that what changes while it is copied is known, and again if that
 * was the wait: a rank that waits writes it about once a millisecond. On a busy machine it may lose
 * its processor in the middle, and whose wait is not known would be named as one that does not
 * wait: so later attempts leave it time, for each twice as much as for the one before.
 */
static bool copy(int folder, const char *name, struct gathered *one)
{
    enum { ATTEMPTS = 16, AT_ONCE = 4 };
    struct gathered *others = malloc(2 * sizeof(*others));
    struct recorder_identity identity;
    bool read = others, whole = false;
    uint64_t now = 0;

    for (int attempt = 0; attempt < ATTEMPTS && read && !whole; attempt++) {
        if (attempt >= AT_ONCE)
            doze_for(DOZE_WRITER * (1 << (attempt - AT_ONCE)));
        now = clock_nanoseconds();
        read = read_all(folder, name, &others[0]) && read_all(folder, name, one) &&
               read_all(folder, name, &others[1]);
        whole = read && sighting_settle(one->bytes, others[0].bytes, others[1].bytes, one->length);
    }
    if (read) {
        identify(one, &identity);
        sighting_look(folder, name, &identity, &one->process);
        one->process.read = now;
        one->ticks = sighting_ticks(identity.pid);
    }
    free(others);
    return read;
}

static bool add(void *context, int folder, const char *name)
{
    struct pile *pile = context;
    struct gathered *one;

    if (pile->count == RECORDS_MAX || strlen(name) >= sizeof(pile->names[0]) || !make_room(pile))
        return false;
    one = calloc(1, sizeof(*one));
    if (!one)
        return false;
    if (!copy(folder, name, one)) {
        free(one);
        return true;
    }
    snprintf(pile->names[pile->count], sizeof(pile->names[0]), "%s", name);
    pile->at[pile->count++] = one;
    return true;
}

/* True if the rank has made or ended a call. Whoever waits only looks again. */
static bool has_moved(const struct gathered *before, const struct gathered *after)
{
    size_t calls = offsetof(struct recorder_page, calls);

    return memcmp(before->bytes + calls, after->bytes + calls, sizeof(before->bytes) - calls) != 0;
}

/* The second look, at those that are still there. */
static void look_again(int folder, struct pile *pile)
{
    struct gathered *again = calloc(1, sizeof(*again));

    for (int i = 0; again && i < pile->count; i++) {
        struct gathered *one = pile->at[i], *before;

        if (!copy(folder, pile->names[i], again))
            continue;
        again->process.moved = has_moved(one, again);
        again->process.busy = again->ticks > one->ticks;
        before = one;
        pile->at[i] = again;
        again = before;
    }
    free(again);
}

bool gather_each(double pause, bool (*take)(void *context, const struct gathered *one),
                 void *context)
{
    struct pile pile = {0};
    int folder = folder_open(false);
    bool go_on = true;

    if (folder < 0)
        return false;
    folder_each(folder, add, &pile);
    if (pause > 0 && pile.count) {
        doze_for(pause);
        look_again(folder, &pile);
    }
    close(folder);
    for (int i = 0; i < pile.count && go_on; i++)
        go_on = take(context, pile.at[i]);
    for (int i = 0; i < pile.count; i++)
        free(pile.at[i]);
    free(pile.at);
    free(pile.names);
    return true;
}

static bool add_sighting(void *context, const struct gathered *one)
{
    struct recorder_identity identity;

    identify(one, &identity);
    identity.host[sizeof(identity.host) - 1] = '\0';
    sightings_add(context, one->bytes, one->length, &one->process, identity.host);
    return true;
}

bool gather_here(double pause, struct sightings *sightings)
{
    bool found = gather_each(pause, add_sighting, sightings);

    sightings_sort(sightings);
    return found;
}
