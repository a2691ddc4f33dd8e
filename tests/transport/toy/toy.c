/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * toy.c - the smallest transport: one datagram per message, between sockets of one machine.
 *
 * It shows all that a network has to do (transport/link/ops.h, connection.h): a socket whose name
 * is on the endpoint; rings on both sides, of which push() sends what the executor has filled;
 * flags and counters stored when datagrams arrive. The system keeps datagrams in order and loses
 * none; what it doesn't take is sent again by progress(). There is one file and one line in
 * table.c.
 */
#include "transport/link/ops.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

struct toy_endpoint {
    char name[32]; /* of the socket; empty: none */
};

struct toy_head {
    int32_t from, channel;
    uint32_t inlined, given; /* messages of the other direction that were given back */
    uint64_t flag;           /* 0: only that */
    struct call_header call_header;
};

struct toy_message {
    const char *payload;
    size_t bytes;
    uint64_t flag;
    bool inlined; /* it lies beside the flag, and shall do so at the reader's */
};

struct toy_channel {
    struct connection base; /* first member */
    struct toy_peer *peer;
    char *rings;                 /* outbox, inbox */
    uint32_t pushed, sent, came; /* messages */
    uint32_t given, told;
    struct toy_message *messages; /* [slots], by number: pushed, not sent */
};

struct toy_peer {
    struct toy_network *network;
    struct toy_endpoint endpoint;
    struct call_header_page *page;
    struct toy_channel *channels;
};

struct toy_network {
    struct network base; /* first member */
    struct network_job job;
    int socket, epoll;
    struct toy_peer *peers; /* [rank] */
    size_t ring_bytes;
    char *room; /* for a datagram */
};

static socklen_t name_of(const struct toy_endpoint *endpoint, struct sockaddr_un *ret_name)
{
    *ret_name = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret_name->sun_path + 1, endpoint->name, sizeof(endpoint->name));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + sizeof(endpoint->name));
}

static struct link_slot *slot_of(const struct toy_channel *channel, bool in, uint32_t number)
{
    const struct toy_network *network = channel->peer->network;
    size_t at = sizeof(struct link_credit) +
                (number - 1) % (uint32_t)network->job.slots * link_stride(network->job.slot_bytes);

    return (struct link_slot *)(void *)(channel->rings + in * network->ring_bytes + at);
}

/* ---- Sending --------------------------------------------------------------------------------- */

/* One datagram; false: not now. What a peer does not hear that has ended, watch() says. */
static bool say(struct toy_channel *channel, const struct toy_message *what)
{
    const struct toy_network *network = channel->peer->network;
    struct toy_head head = {.from = network->job.rank,
                            .channel = channel->base.channel,
                            .inlined = what->inlined,
                            .given = channel->given,
                            .flag = what->flag};
    struct iovec pieces[2] = {{&head, sizeof(head)},
                              {(void *)(uintptr_t)what->payload, what->bytes}};
    struct sockaddr_un name;
    struct msghdr message = {.msg_name = &name, .msg_iov = pieces, .msg_iovlen = 2};

    message.msg_namelen = name_of(&channel->peer->endpoint, &name);
    call_header_say(network->job.owner.page, &head.call_header);
    if (sendmsg(network->socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EAGAIN)
        return false;
    channel->told = channel->given;
    return true;
}

static bool channel_owes(const struct toy_channel *channel)
{
    return channel->sent != channel->pushed ||
           channel->given - channel->told >= (uint32_t)channel->peer->network->job.slots / 2;
}

static void send_some(struct toy_channel *channel)
{
    unsigned slots = (unsigned)channel->peer->network->job.slots;

    for (; channel->sent != channel->pushed; channel->sent++)
        if (!say(channel, &channel->messages[channel->sent % slots]))
            return;
    if (channel_owes(channel))
        say(channel, &(struct toy_message){0});
}

static void push(struct connection *connection, struct link_slot *slot, const char *payload,
                 size_t bytes, uint64_t flag)
{
    struct toy_channel *channel = (struct toy_channel *)connection;
    unsigned at = channel->pushed++ % (unsigned)channel->peer->network->job.slots;

    channel->messages[at] =
        (struct toy_message){payload, bytes, flag, payload == slot->head.payload};
    send_some(channel);
}

static void give_back(struct connection *connection, uint32_t received)
{
    struct toy_channel *channel = (struct toy_channel *)connection;

    channel->given = received;
    send_some(channel);
}

static const struct connection_ops links = {.push = push, .give_back = give_back};

/* ---- Receiving ------------------------------------------------------------------------------- */

static void take(const struct toy_network *network, const struct toy_head *head, size_t bytes)
{
    struct toy_channel *channel = &network->peers[head->from].channels[head->channel];
    struct link_credit *credit = (struct link_credit *)(void *)channel->rings;
    struct link_slot *slot;

    /* Release, pairs with the acquire in step_wait_credit(). */
    atomic_store_explicit(&credit->consumed, head->given, memory_order_release);
    if (!head->flag)
        return;
    slot = slot_of(channel, true, ++channel->came);
    memcpy(head->inlined ? slot->head.payload : slot->payload, head + 1, bytes);
    call_header_hear(channel->peer->page, &head->call_header);
    /* Release, pairs with the acquire in step_wait_data(). */
    atomic_store_explicit(&slot->head.flag, head->flag, memory_order_release);
}

static rondo_result progress(struct network *base, bool *ret_moved)
{
    struct toy_network *network = (struct toy_network *)base;
    size_t room = sizeof(struct toy_head) + network->job.slot_bytes;
    const struct toy_head *head = (const struct toy_head *)(const void *)network->room;
    ssize_t got;

    *ret_moved = false;
    for (int i = 0; i < network->job.size * network->job.channels; i++)
        if (network->peers[i / network->job.channels].channels)
            send_some(
                &network->peers[i / network->job.channels].channels[i % network->job.channels]);
    while ((got = recv(network->socket, network->room, room, MSG_DONTWAIT)) >= 0) {
        take(network, head, (size_t)got - sizeof(*head));
        *ret_moved = true;
    }
    return RONDO_OK;
}

static bool owes(struct network *base, int rank)
{
    const struct toy_network *network = (const struct toy_network *)base;
    bool any = false;

    for (int i = 0; network->peers[rank].channels && i < network->job.channels; i++)
        any |= channel_owes(&network->peers[rank].channels[i]);
    return any;
}

static bool flushed(struct network *base, int *ret_peer)
{
    const struct toy_network *network = (const struct toy_network *)base;

    for (int rank = 0; rank < network->job.size; rank++)
        if (owes(base, rank)) {
            if (ret_peer)
                *ret_peer = rank;
            return false;
        }
    return true;
}

static void doze(struct network *base, double seconds)
{
    struct epoll_event event;

    epoll_wait(((struct toy_network *)base)->epoll, &event, 1, (int)(seconds * 1000) + 1);
}

/* Succeeds while somebody listens at the peer's name, or what a rank said
 * before it ended is unread: its last words decide whether it is missed. */
static rondo_result watch(struct network *base, int rank)
{
    const struct toy_network *network = (const struct toy_network *)base;
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un name;
    socklen_t length = name_of(&network->peers[rank].endpoint, &name);
    bool there = fd < 0 || !connect(fd, (struct sockaddr *)&name, length) ||
                 recv(network->socket, network->room, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;

    if (fd >= 0)
        close(fd);
    base->culprit = rank;
    return there ? RONDO_OK
                 : rondo_fail(RONDO_ERROR_PEER, "Rank %d has lost rank %d (toy): it has ended.",
                              network->job.rank, rank);
}

/* A rank that fails closes its socket soon, and so is watched. */
static void tell(struct network *base, const struct network_failure *failure)
{
    (void)base;
    (void)failure;
}

static void close_network(struct network *base)
{
    struct toy_network *network = (struct toy_network *)base;

    for (int rank = 0; network->peers && rank < network->job.size; rank++) {
        struct toy_channel *channels = network->peers[rank].channels;

        for (int i = 0; channels && i < network->job.channels; i++) {
            free(channels[i].rings);
            free(channels[i].messages);
        }
        free(channels);
    }
    close(network->socket);
    close(network->epoll);
    free(network->peers);
    free(network->room);
    free(network);
}

static const struct network_ops ops = {.name = "toy",
                                       .progress = progress,
                                       .flushed = flushed,
                                       .owes = owes,
                                       .doze = doze,
                                       .watch = watch,
                                       .tell = tell,
                                       .close = close_network};

/* ---- Opening --------------------------------------------------------------------------------- */

static rondo_result open_network(const struct network_wish *wish, void *ret_part,
                                 struct network **ret_network)
{
    struct toy_network *network = calloc(1, sizeof(*network));
    struct epoll_event event = {.events = EPOLLIN};
    struct toy_endpoint *endpoint = ret_part;
    struct sockaddr_un name;
    socklen_t length;

    (void)wish;
    if (!network)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a toy.");
    randombytes_buf(endpoint->name, sizeof(endpoint->name));
    endpoint->name[0] = 't'; /* a zero would say that there is none */
    length = name_of(endpoint, &name);
    network->base.ops = &ops;
    network->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    network->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (bind(network->socket, (struct sockaddr *)&name, length) ||
        epoll_ctl(network->epoll, EPOLL_CTL_ADD, network->socket, &event)) {
        close_network(&network->base);
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot open a toy");
    }
    *ret_network = &network->base;
    return RONDO_OK;
}

static rondo_result start(struct network *base, const struct network_job *job)
{
    struct toy_network *network = (struct toy_network *)base;

    network->job = *job;
    network->ring_bytes = link_ring_bytes(job->slots, job->slot_bytes);
    network->room = malloc(sizeof(struct toy_head) + job->slot_bytes);
    network->peers = calloc((size_t)job->size, sizeof(*network->peers));
    return network->room && network->peers
               ? RONDO_OK
               : rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a toy.");
}

static rondo_result open_channel(struct toy_channel *channel, struct link_out *out,
                                 struct link_in *in)
{
    const struct toy_network *network = channel->peer->network;
    uint32_t slots = (uint32_t)network->job.slots;
    size_t stride = link_stride(network->job.slot_bytes);

    channel->messages = calloc(slots, sizeof(*channel->messages));
    channel->rings = aligned_alloc(LINK_LINE, 2 * network->ring_bytes);
    if (!channel->messages || !channel->rings)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a toy.");
    memset(channel->rings, 0, 2 * network->ring_bytes);
    *out = (struct link_out){.credit = (struct link_credit *)(void *)channel->rings,
                             .slots = (char *)slot_of(channel, false, 1),
                             .connection = &channel->base,
                             .stride = stride,
                             .slot_count = slots};
    *in = (struct link_in){.credit =
                               (struct link_credit *)(void *)(channel->rings + network->ring_bytes),
                           .slots = (char *)slot_of(channel, true, 1),
                           .connection = &channel->base,
                           .stride = stride,
                           .slot_count = slots};
    return RONDO_OK;
}

static rondo_result connect_pair(const struct transport_pair *pair, struct link_out *out,
                                 struct link_in *in)
{
    struct toy_network *network = (struct toy_network *)pair->network;
    int rank = pair->peer->rank;
    struct toy_peer *peer = &network->peers[rank];
    rondo_result result = RONDO_OK;

    peer->network = network;
    peer->page = pair->page;
    memcpy(&peer->endpoint, pair->peer_part, sizeof(peer->endpoint));
    peer->channels = calloc((size_t)pair->channels, sizeof(*peer->channels));
    if (!peer->channels)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a toy.");
    for (int i = 0; i < pair->channels && !result; i++) {
        int at = i * network->job.size + rank;

        peer->channels[i] =
            (struct toy_channel){.base = {.ops = &links, .peer = rank, .channel = i}, .peer = peer};
        result = open_channel(&peer->channels[i], &out[at], &in[at]);
    }
    return result;
}

static bool can_connect(const struct transport_pair *pair, const char **why)
{
    *why = "the toy is not plugged in";
    return ((const struct toy_endpoint *)pair->own_part)->name[0] &&
           ((const struct toy_endpoint *)pair->peer_part)->name[0];
}

const struct transport_ops toy_transport = {.name = "toy",
                                            .can_connect = can_connect,
                                            .connect = connect_pair,
                                            .part_bytes = sizeof(struct toy_endpoint),
                                            .open = open_network,
                                            .start = start};
