/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_nodes.c - see tcp_nodes.h. */
#include "tests/transport/tcp/tcp_nodes.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct node nodes[NODES];
static const unsigned char key[NETWORK_KEY] = "nobody else knows that";
static const double patience = 60; /* seconds until the event that is awaited: a guard */

/* ---- Their owner ----------------------------------------------------------------------------- */

static void waits(void *context, struct network_wait *ret_wait)
{
    *ret_wait = ((struct node *)context)->wait;
}

static void waited(void *context, int peer, const struct network_wait *wait)
{
    struct node *node = context;

    (void)peer;
    node->waited = *wait;
}

static void failed(void *context, int peer, const struct network_failure *failure)
{
    struct node *node = context;

    node->failed_from = peer;
    node->failure = *failure;
    snprintf(node->sentence, sizeof(node->sentence), "%s", failure->sentence);
}

static void left(void *context, int peer, bool parted)
{
    struct node *node = context;

    node->left = peer + 1;
    node->parted = parted;
}

static void note(void *context, int peer, const void *bytes, size_t count)
{
    struct node *node = context;

    node->notes += 1 + 100 * peer;
    node->note_bytes = count;
    memcpy(node->note, bytes, count < sizeof(node->note) ? count : sizeof(node->note));
    if (node->on_note)
        node->on_note();
}

/* meson runs some programs once for each. */
enum seal_mode nodes_security(void)
{
    const char *wanted = getenv("NODES_SECURITY");
    enum seal_mode mode = SEAL_NONE;

    while (wanted && mode < SEAL_SECRET && strcmp(wanted, seal_mode_name(mode)) != 0)
        mode++;
    return mode;
}

/* ---- Opening --------------------------------------------------------------------------------- */

static rondo_result open_node(int rank)
{
    struct node *node = &nodes[rank];

    *node = (struct node){.rank = rank, .endpoint.rank = rank, .failed_from = -1};
    traffic_begin_call(rank);
    return tcp_transport.open(&(struct network_wish){.rank = rank}, &node->part, &node->network);
}

static rondo_result start_node(int rank)
{
    struct node *node = &nodes[rank];
    const struct network_job job = {.owner = {.page = &traffic_calls[rank].page,
                                              .context = node,
                                              .waits = waits,
                                              .waited = waited,
                                              .failed = failed,
                                              .left = left,
                                              .note = note},
                                    .key = key,
                                    .comm = NODE_COMM,
                                    .security = nodes_security(),
                                    .rank = rank,
                                    .size = NODES,
                                    .channels = NODE_CHANNELS,
                                    .slots = NODE_SLOTS,
                                    .slot_bytes = NODE_SLOT_BYTES};
    rondo_result result = tcp_transport.start(node->network, &job);

    for (int peer = 0; peer < NODES && !result; peer++) {
        struct transport_pair pair = {.own = &node->endpoint,
                                      .peer = &nodes[peer].endpoint,
                                      .own_part = &node->part,
                                      .peer_part = &nodes[peer].part,
                                      .page = &traffic_calls[rank].pages[peer],
                                      .network = node->network,
                                      .channels = NODE_CHANNELS};

        if (peer != rank)
            result = tcp_transport.connect(&pair, node->out, node->in);
    }
    return result;
}

rondo_result nodes_open(void)
{
    rondo_result result = RONDO_OK;

    memset(nodes, 0, sizeof(nodes));
    for (int rank = 0; rank < NODES && !result; rank++)
        result = open_node(rank);
    for (int rank = 0; rank < NODES && !result; rank++)
        result = start_node(rank);
    return result;
}

void node_close(int rank)
{
    if (nodes[rank].network)
        nodes[rank].network->ops->close(nodes[rank].network);
    nodes[rank].network = NULL;
}

void nodes_close(void)
{
    for (int rank = 0; rank < NODES; rank++)
        node_close(rank);
}

rondo_result nodes_progress(void)
{
    rondo_result first = RONDO_OK;
    bool moved = false;

    for (int rank = 0; rank < NODES; rank++) {
        rondo_result result = RONDO_OK;

        if (nodes[rank].network)
            result = nodes[rank].network->ops->progress(nodes[rank].network, &moved);
        if (result && !first)
            first = result;
    }
    return first;
}

rondo_result nodes_progress_for(double seconds)
{
    rondo_result result = nodes_progress();

    for (int round = 0; round < 1000 * seconds && !result; round++) {
        poll(NULL, 0, 1);
        result = nodes_progress();
    }
    return result;
}

bool nodes_await(int rank, int peer, enum tcp_peer_state state)
{
    double until = clock_seconds() + patience;

    while (node_tcp(rank)->peers[peer]->state != state && clock_seconds() < until) {
        nodes_progress();
        poll(NULL, 0, 1);
    }
    return node_tcp(rank)->peers[peer]->state == state;
}

/* ---- Messages -------------------------------------------------------------------------------- */

bool node_send(int from, int to, int channel)
{
    const struct traffic traffic = {from, to, channel};
    struct link_out *out = &nodes[from].out[channel * NODES + to];
    struct link_slot *slot = traffic_open(out);

    if (slot)
        traffic_push(traffic, out, slot, traffic_payload(slot, traffic_length(traffic, out->sent)));
    return slot;
}

int node_receive(int to, int from, int channel)
{
    return traffic_receive((struct traffic){from, to, channel},
                           &nodes[to].in[channel * NODES + from]);
}

bool node_pass(int from, int to)
{
    double until = clock_seconds() + 20;
    int taken = 0;

    if (!node_send(from, to, 0))
        return false;
    while (!(taken = node_receive(to, from, 0)) && clock_seconds() < until)
        if (nodes_progress())
            return false;
    return taken == 1;
}

/* ---- The rogue ------------------------------------------------------------------------------- */

/* Lines that have passed, by descriptor: for their keys. */
enum { ROGUES = 64 };
static struct tcp_line passed[ROGUES];

int rogue_dial_from(int rank, int host)
{
    const struct sockaddr_in from = {.sin_family = AF_INET,
                                     .sin_addr.s_addr =
                                         htonl((INADDR_LOOPBACK & ~255u) + (unsigned)host)};
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = htons(nodes[rank].part.port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (fd >= 0 && !bind(fd, (struct sockaddr *)&from, sizeof(from)) &&
        !connect(fd, (struct sockaddr *)&where, sizeof(where)))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

int rogue_dial(int rank)
{
    return rogue_dial_from(rank, 1);
}

int rogue_listen(uint16_t *ret_port, int backlog)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(where);
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    cr_assert(!bind(listener, (struct sockaddr *)&where, length) && !listen(listener, backlog) &&
              !getsockname(listener, (struct sockaddr *)&where, &length));
    *ret_port = ntohs(where.sin_port);
    return listener;
}

struct tcp_hello rogue_hello(int from, int to, unsigned line)
{
    struct tcp_hello hello = {
        .from = from, .to = to, .size = NODES, .line = line, .comm = NODE_COMM};

    memcpy(hello.magic, "RondoTC2", sizeof(hello.magic));
    proof_nonce(hello.nonce);
    return hello;
}

void rogue_say(int fd, const void *bytes, size_t count)
{
    const char *next = bytes;

    while (count > 0) {
        ssize_t done = send(fd, next, count, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (done < 0 && errno != EAGAIN)
            return;
        next += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
        nodes_progress();
    }
}

bool rogue_hear(int fd, void *bytes, size_t count)
{
    double until = clock_seconds() + patience;
    char *next = bytes;

    while (count > 0 && clock_seconds() < until) {
        ssize_t done = recv(fd, next, count, MSG_DONTWAIT);

        if (done == 0 || (done < 0 && errno != EAGAIN))
            return false;
        next += done > 0 ? done : 0;
        count -= done > 0 ? (size_t)done : 0;
        nodes_progress();
    }
    return count == 0;
}

uint32_t rogue_pass(int fd, const struct tcp_hello *hello)
{
    struct tcp_line *line = &passed[fd % ROGUES];
    struct proof_session session = {
        .key = key, .first_nonce = line->hello.nonce, .second_nonce = line->challenge.nonce};
    unsigned char proof[PROOF_BYTES];
    struct tcp_answer answer;

    tcp_seal_end(line);
    *line = (struct tcp_line){.hello = *hello, .dialed = true};
    rogue_say(fd, hello, sizeof(*hello));
    if (!rogue_hear(fd, &line->challenge, sizeof(line->challenge)))
        return 0;
    proof_make(&session, "rondo tcp dial", hello, sizeof(*hello), proof);
    rogue_say(fd, proof, sizeof(proof));
    if (!rogue_hear(fd, &answer, sizeof(answer)))
        return 0;
    line->network = node_tcp(hello->from);
    if (!tcp_seal_begin(line, line->network->peers[hello->to]) ||
        !seal_open(&line->in, &answer.verdict, sizeof(answer.verdict), answer.tag))
        return 0;
    return answer.verdict;
}

static size_t add_record(struct tcp_line *line, const void *bytes, size_t count, char *to)
{
    if (line->sealed && count)
        seal_close(&line->out, bytes, count, to, (unsigned char *)to + count);
    else if (count)
        memcpy(to, bytes, count);
    return count + (line->sealed && count ? SEAL_TAG : 0);
}

size_t rogue_seal(int fd, const struct tcp_frame *frame, const char *payload, char *ret_bytes)
{
    struct tcp_line *line = &passed[fd % ROGUES];
    size_t bytes = add_record(line, frame, sizeof(*frame), ret_bytes);

    if (payload)
        bytes += add_record(line, payload, frame->bytes, ret_bytes + bytes);
    return bytes;
}

void rogue_say_frame(int fd, struct tcp_frame frame, const char *payload)
{
    char bytes[2048];

    rogue_say(fd, bytes, rogue_seal(fd, &frame, payload, bytes));
}

bool rogue_hear_frame(int fd, struct tcp_frame *ret_frame)
{
    struct tcp_line *line = &passed[fd % ROGUES];
    unsigned char tag[SEAL_TAG];

    return rogue_hear(fd, ret_frame, sizeof(*ret_frame)) &&
           (!line->sealed || (rogue_hear(fd, tag, sizeof(tag)) &&
                              seal_open(&line->in, ret_frame, sizeof(*ret_frame), tag)));
}

bool rogue_is_dropped(int fd)
{
    double until = clock_seconds() + patience;
    char waste[256];

    while (clock_seconds() < until) {
        ssize_t done = recv(fd, waste, sizeof(waste), MSG_DONTWAIT);

        if (done == 0 || (done < 0 && errno != EAGAIN))
            return true;
        nodes_progress();
    }
    return false;
}
