/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * endpoints.c - what ranks tell each other when a communicator opens, with any numbers in it: are
 * they fit for each other, who is near whom, in which order, and where they listen
 * (comm/connect.c, nearby.c, order.c, state/tuning.c, transport/tcp/open.c, base/net/address.c).
 */
#include "tests/fuzz/fuzz.h"

#include "base/net/address.h"
#include "collectives/levels/grouping.h"
#include "comm/open.h"
#include "comm/state/comm.h"
#include "transport/tcp/tcp.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 6 };

static struct endpoint good_endpoint(int rank, int size)
{
    struct endpoint endpoint = {.magic = ENDPOINT_MAGIC,
                                .version = ENDPOINT_VERSION,
                                .slots = 4,
                                .slot_bytes = 4096,
                                .rank = rank,
                                .size = size,
                                .place = {1, 0, 0, 0}};
    struct tcp_endpoint part = {.space = 1, .port = 4000};

    part.addresses = (struct net_addresses){.at = {{4, 24, 0, {10, 0, 0, 1}}}, .count = 1};
    memcpy(endpoint.parts, &part, sizeof(part));
    endpoint.cpus[0] = 3;
    return endpoint;
}

/* Writes bytes of the input over places of an endpoint. */
static void damage(struct endpoint *endpoint, struct fuzz_input *input)
{
    for (unsigned times = fuzz_byte(input) % 16; times; times--) {
        size_t at = fuzz_number(input, 2) % sizeof(*endpoint);
        size_t count = fuzz_byte(input) % 32;

        if (count > sizeof(*endpoint) - at)
            count = sizeof(*endpoint) - at;
        fuzz_bytes(input, (char *)endpoint + at, count);
    }
}

static void take_part(const struct endpoint *own, const struct endpoint *peer)
{
    struct tcp_endpoint parts[2];
    struct transport_pair pair = {.own = own, .peer = peer};
    int order[NET_ADDRESSES];
    struct sockaddr_storage where;
    const char *why = NULL;
    char text[64];

    memcpy(&parts[0], own->parts, sizeof(parts[0]));
    memcpy(&parts[1], peer->parts, sizeof(parts[1]));
    pair.own_part = &parts[0];
    pair.peer_part = &parts[1];
    fuzz_expect(tcp_transport.can_connect(&pair, &why) || why, "there is a reason");
    if (tcp_transport.length)
        tcp_transport.length(&parts[0], &parts[1]);
    net_addresses_order(&parts[0].addresses, &parts[1].addresses, order);
    for (int i = 0; i < NET_ADDRESSES; i++) {
        fuzz_expect(order[i] >= 0 && order[i] < NET_ADDRESSES, "the order is of addresses");
        net_address_socket(&parts[1].addresses.at[order[i]], parts[1].port, &where);
        net_address_text(&parts[1].addresses.at[order[i]], parts[1].port, text, sizeof(text));
    }
    device_endpoint_link(&own->device, &peer->device);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    struct endpoint endpoints[MOST];
    int size = 1 + (int)fuzz_byte(&input) % MOST;
    rondo_comm comm = {.size = size, .endpoints = endpoints, .settings.groups = ""};
    bool fits = true;

    fuzz_environment(NULL);
    for (int rank = 0; rank < size; rank++) {
        endpoints[rank] = good_endpoint(rank, size);
        if (rank) /* the own one is right */
            damage(&endpoints[rank], &input);
        endpoints[rank].host[0] ^= (unsigned char)(fuzz_byte(&input) % 3);
    }
    for (int rank = 0; rank < size; rank++) {
        fits &= !comm_check_endpoint(&comm, rank);
        take_part(&endpoints[0], &endpoints[rank]);
    }
    if (!fits) /* the communicator does not open */
        return 0;
    (void)!comm_find_groups(&comm); /* and the order */
    grouping_close(comm.groups);
    free(comm.order);
    return 0;
}
