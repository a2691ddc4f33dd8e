/* SPDX-License-Identifier: BSD-3-Clause */
/* seats.c - which guest of a meeting waits where. No sockets in it. */
#include "comm/rendezvous/seats.h"

#include "base/log.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

void seats_init(struct seats *seats, int guests)
{
    *seats = (struct seats){.guests = guests};
}

void seats_done(struct seats *seats)
{
    free(seats->relays);
    seats_init(seats, 0);
}

/* The first with a free seat: the tree fills up from its root. */
static struct relay *find(const struct seats *seats, bool local)
{
    for (int i = 0; i < seats->count; i++)
        if (seats->relays[i].free > 0 && (local || !seats->relays[i].local))
            return &seats->relays[i];
    return NULL;
}

enum seat seats_give(struct seats *seats, bool local, bool patient, struct wire_seat *ret_seat)
{
    struct relay *relay = seats->here < SEATS_EACH ? NULL : find(seats, local);

    if (seats->here >= SEATS_EACH && !relay && seats->expected > 0 && patient)
        return SEAT_LATER;
    memset(ret_seat, 0, sizeof(*ret_seat));
    wire_header_set(&ret_seat->header, WIRE_SEAT, 0);
    seats->given++;
    if (SEATS_EACH * (long)seats->given < seats->guests) {
        ret_seat->relay = htole32(1);
        seats->expected++;
    }
    if (!relay) {
        seats->here++;
        return SEAT_HERE;
    }
    relay->free--;
    ret_seat->rank = htole32(relay->rank);
    ret_seat->pid = htole32(relay->pid);
    memcpy(ret_seat->host, relay->host, sizeof(ret_seat->host));
    memcpy(ret_seat->address, relay->address, sizeof(ret_seat->address));
    return SEAT_THERE;
}

static void add(struct seats *seats, const struct relay *relay)
{
    if (seats->count == seats->room) {
        int room = seats->room ? 2 * seats->room : SEATS_EACH;
        struct relay *relays = realloc(seats->relays, (size_t)room * sizeof(*relays));

        if (!relays)
            return; /* then its guests wait at the meeting point */
        seats->relays = relays;
        seats->room = room;
    }
    seats->relays[seats->count++] = *relay;
}

void seats_taken(struct seats *seats, const struct wire_seat *told, const struct wire_seat *says,
                 const struct relay *who)
{
    struct relay relay = *who;

    if (*told->address && !says->moved) {
        log_info("rank %u cannot reach rank %u at %s: it waits at the meeting point",
                 (unsigned)who->rank, (unsigned)le32toh(told->rank), told->address);
        seats->here++;
    }
    if (!told->relay)
        return;
    seats->expected--;
    if (!*says->address || !memchr(says->address, '\0', sizeof(says->address)))
        return;
    memcpy(relay.address, says->address, sizeof(relay.address));
    relay.free = SEATS_EACH;
    add(seats, &relay);
}
