/* SPDX-License-Identifier: BSD-3-Clause */
/* relay_tree.c - which client of a rendezvous waits where. No sockets in it. */
#include "comm/rendezvous/relay_tree.h"

#include "base/log.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

void relay_tree_init(struct relay_tree *tree, int clients)
{
    *tree = (struct relay_tree){.clients = clients};
}

void relay_tree_done(struct relay_tree *tree)
{
    free(tree->relays);
    relay_tree_init(tree, 0);
}

/* The first with a free position: the tree fills up from its root. */
static struct relay *find(const struct relay_tree *tree, bool local)
{
    for (int i = 0; i < tree->count; i++)
        if (tree->relays[i].free > 0 && (local || !tree->relays[i].local))
            return &tree->relays[i];
    return NULL;
}

enum position relay_tree_give(struct relay_tree *tree, bool local, bool patient,
                              struct wire_position *ret_position)
{
    struct relay *relay = tree->here < RELAY_WIDTH ? NULL : find(tree, local);

    if (tree->here >= RELAY_WIDTH && !relay && tree->expected > 0 && patient)
        return POSITION_LATER;
    memset(ret_position, 0, sizeof(*ret_position));
    wire_header_set(&ret_position->header, WIRE_POSITION, 0);
    tree->given++;
    if (RELAY_WIDTH * (long)tree->given < tree->clients) {
        ret_position->relay = htole32(1);
        tree->expected++;
    }
    if (!relay) {
        tree->here++;
        return POSITION_HERE;
    }
    relay->free--;
    ret_position->rank = htole32(relay->rank);
    ret_position->pid = htole32(relay->pid);
    memcpy(ret_position->host, relay->host, sizeof(ret_position->host));
    memcpy(ret_position->address, relay->address, sizeof(ret_position->address));
    return POSITION_THERE;
}

static void add(struct relay_tree *tree, const struct relay *relay)
{
    if (tree->count == tree->room) {
        int room = tree->room ? 2 * tree->room : RELAY_WIDTH;
        struct relay *relays = realloc(tree->relays, (size_t)room * sizeof(*relays));

        if (!relays)
            return; /* then its clients wait at the meeting point */
        tree->relays = relays;
        tree->room = room;
    }
    tree->relays[tree->count++] = *relay;
}

void relay_tree_taken(struct relay_tree *tree, const struct wire_position *told,
                      const struct wire_position *says, const struct relay *who)
{
    struct relay relay = *who;

    if (*told->address && !says->moved) {
        log_info("rank %u cannot reach rank %u at %s: it waits at the meeting point",
                 (unsigned)who->rank, (unsigned)le32toh(told->rank), told->address);
        tree->here++;
    }
    if (!told->relay)
        return;
    tree->expected--;
    if (!*says->address || !memchr(says->address, '\0', sizeof(says->address)))
        return;
    memcpy(relay.address, says->address, sizeof(relay.address));
    relay.free = RELAY_WIDTH;
    add(tree, &relay);
}
