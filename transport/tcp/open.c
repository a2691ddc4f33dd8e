/* SPDX-License-Identifier: BSD-3-Clause */
/* open.c - making the network of a communicator: a listener, then rings for every peer. */
#include "transport/tcp/engine.h"

#include "base/caller/descriptor.h"
#include "base/setting.h"
#include "base/net/socket.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>

static rondo_result read_settings(struct tcp_network *network)
{
    long streams = 0;
    rondo_result result = setting_read_int(SETTING_TCP_STREAMS, &streams);

    network->streams = (int)streams;
    network->congestion = setting_read_word(SETTING_TCP_CONGESTION);
    if (!result)
        result = setting_read_seconds(SETTING_TCP_PATIENCE, &network->patience);
    return result ? result : proof_init();
}

/* On all addresses: who connects has to prove itself. */
static rondo_result listen_for_peers(struct tcp_network *network)
{
    network->listener = socket_listen_everywhere(0);
    network->endpoint.space = net_space();
    network->endpoint.port = (uint16_t)socket_port(network->listener);
    return network->endpoint.port
               ? RONDO_OK
               : rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot listen for TCP connections of peers");
}

static rondo_result open_network(const struct network_wish *wish, void *ret_part,
                                 struct network **ret_network)
{
    struct tcp_network *network = calloc(1, sizeof(*network));
    rondo_result result;

    if (!network)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for connections over TCP.");
    network->base.ops = &tcp_network_ops;
    network->rank = wish->rank;
    network->traffic_class = wish->traffic_class;
    network->listener = network->epoll = -1;
    lock_init(&network->lock, LOCK_TCP_NETWORK);
    result = read_settings(network);
    if (!result)
        result = net_addresses_find(&network->endpoint.addresses);
    if (!result)
        result = listen_for_peers(network);
    if (!result) {
        tcp_seal_make_keys(network);
        network->epoll = descriptor_above(epoll_create1(EPOLL_CLOEXEC));
        if (network->epoll < 0 || !tcp_socket_watch(network, network->listener, EPOLLIN, NULL))
            result = rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot watch TCP connections (epoll)");
    }
    if (result) {
        tcp_network_ops.close(&network->base);
        return result;
    }
    memcpy(ret_part, &network->endpoint, sizeof(network->endpoint));
    *ret_network = &network->base;
    return RONDO_OK;
}

static uint32_t power_of_2(uint32_t least)
{
    uint32_t power = 1;

    while (power < least)
        power *= 2;
    return power;
}

static rondo_result start(struct network *base, const struct network_job *job)
{
    struct tcp_network *network = (struct tcp_network *)base;
    const size_t page = 4096;

    network->owner = job->owner;
    memcpy(network->key, job->key, sizeof(network->key));
    network->comm = job->comm;
    network->security = job->security;
    network->rank = job->rank;
    network->channels = job->channels;
    network->slots = job->slots;
    network->slot_bytes = job->slot_bytes;
    network->stride = link_stride(job->slot_bytes);
    network->ring_bytes = (link_ring_bytes(job->slots, job->slot_bytes) + page - 1) / page * page;
    /* Every slot of every channel, and what is given back; both halves of it at the most. */
    network->queue_room = power_of_2((uint32_t)job->channels * ((uint32_t)job->slots + 4));
    /* Rings that are never used cost address space only. */
    network->rings_bytes = 2 * (size_t)job->size * (size_t)job->channels * network->ring_bytes;
    network->rings = mmap(NULL, network->rings_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (network->rings == MAP_FAILED) {
        network->rings = NULL;
        return rondo_fail_errno(RONDO_ERROR_MEMORY,
                                "Cannot map %zu bytes of address space for slots (ulimit -v?)",
                                network->rings_bytes);
    }
    network->peers = calloc((size_t)job->size, sizeof(*network->peers));
    if (!network->peers)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for connections over TCP.");
    network->size = job->size;
    tcp_enlist(network);
    return RONDO_OK;
}

static void make_link(struct tcp_peer *peer, int channel, struct link_out *out, struct link_in *in)
{
    struct tcp_network *network = peer->network;
    size_t ring = network->ring_bytes;
    int at = channel * network->size + peer->rank;
    char *outbox = network->rings + 2 * (size_t)at * ring;
    char *inbox = outbox + ring;
    struct tcp_link *link = &peer->links[channel];

    *link =
        (struct tcp_link){.base = {.ops = &tcp_link_ops, .peer = peer->rank, .channel = channel},
                          .peer = peer,
                          .inbox = inbox + sizeof(struct link_credit),
                          .credit = (struct link_credit *)(void *)outbox};
    out[at] = (struct link_out){.credit = link->credit,
                                .slots = outbox + sizeof(struct link_credit),
                                .connection = &link->base,
                                .stride = network->stride,
                                .slot_count = (uint32_t)network->slots};
    in[at] = (struct link_in){.credit = (struct link_credit *)(void *)inbox,
                              .slots = link->inbox,
                              .connection = &link->base,
                              .stride = network->stride,
                              .slot_count = (uint32_t)network->slots};
}

static rondo_result connect_pair(const struct transport_pair *pair, struct link_out *out,
                                 struct link_in *in)
{
    struct tcp_network *network = (struct tcp_network *)pair->network;
    int rank = pair->peer->rank;
    struct tcp_peer *peer =
        calloc(1, sizeof(*peer) + (size_t)network->channels * sizeof(peer->links[0]));

    if (!peer)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for connections over TCP.");
    peer->network = network;
    peer->rank = rank;
    peer->page = pair->page;
    memcpy(&peer->endpoint, pair->peer_part, sizeof(peer->endpoint));
    if (peer->endpoint.addresses.count > NET_ADDRESSES)
        peer->endpoint.addresses.count = NET_ADDRESSES;
    network->peers[rank] = peer;
    for (int channel = 0; channel < network->channels; channel++)
        make_link(peer, channel, out, in);
    return RONDO_OK;
}

static bool can_connect(const struct transport_pair *pair, const char **why)
{
    const struct tcp_endpoint *own = pair->own_part;
    const struct tcp_endpoint *peer = pair->peer_part;
    bool beyond = own->space == peer->space;

    for (unsigned i = 0; i < NET_ADDRESSES && i < peer->addresses.count; i++)
        beyond |= !net_address_is_loopback(&peer->addresses.at[i]);
    *why = own->port && peer->port ? "one of them has no network but loopback"
                                   : "the job meets at a socket of one host";
    return own->port && peer->port && peer->addresses.count && beyond;
}

static enum link_length length(const void *own_part, const void *peer_part)
{
    (void)own_part;
    (void)peer_part;
    return LINK_LONG_ONE_WAY;
}

const struct transport_ops tcp_transport = {
    .name = "tcp",
    .can_connect = can_connect,
    .connect = connect_pair,
    .part_bytes = sizeof(struct tcp_endpoint),
    .open = open_network,
    .start = start,
    .length = length,
};
