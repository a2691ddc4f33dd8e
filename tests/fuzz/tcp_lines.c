/* SPDX-License-Identifier: BSD-3-Clause */
/* tcp_lines.c - see tcp_lines.h. */
#include "tests/fuzz/tcp_lines.h"

#include "base/clock.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct lines_rank lines_ranks[LINES_RANKS];
static const unsigned char key[NETWORK_KEY] = "nobody else knows that";

/* ---- Their owner, which looks at all that it is told ----------------------------------------- */

static void waits(void *context, struct network_wait *ret_wait)
{
    (void)context;
    *ret_wait = (struct network_wait){0};
}

static void waited(void *context, int peer, const struct network_wait *wait)
{
    (void)context;
    (void)wait;
    fuzz_expect(peer >= 0 && peer < LINES_RANKS, "who answers is a rank");
}

static void failed(void *context, int peer, const struct network_failure *failure)
{
    (void)context;
    fuzz_expect(peer >= 0 && peer < LINES_RANKS, "who fails is a rank");
    fuzz_expect((unsigned)failure->result < RONDO_RESULTS, "a failure has a result");
    fuzz_expect(strlen(failure->sentence) < FAIL_SENTENCE_MAX, "its sentence has an end");
}

static void note(void *context, int peer, const void *bytes, size_t count)
{
    char copy[FAIL_SENTENCE_MAX];

    (void)context;
    fuzz_expect(peer >= 0 && peer < LINES_RANKS, "a note comes from a rank");
    fuzz_expect(count <= sizeof(copy), "a note is short");
    memcpy(copy, bytes, count);
}

/* ---- Opening --------------------------------------------------------------------------------- */

static rondo_result start_rank(int rank, enum seal_mode security)
{
    struct lines_rank *self = &lines_ranks[rank], *other = &lines_ranks[!rank];
    const struct network_job job = {.owner = {.page = &self->page,
                                              .context = self,
                                              .waits = waits,
                                              .waited = waited,
                                              .failed = failed,
                                              .note = note},
                                    .key = key,
                                    .comm = 4711,
                                    .security = security,
                                    .rank = rank,
                                    .size = LINES_RANKS,
                                    .channels = LINES_CHANNELS,
                                    .slots = LINES_SLOTS,
                                    .slot_bytes = LINES_SLOT_BYTES};
    const struct transport_pair pair = {.own = &self->endpoint,
                                        .peer = &other->endpoint,
                                        .own_part = &self->part,
                                        .peer_part = &other->part,
                                        .page = &self->pages[!rank],
                                        .network = self->network,
                                        .channels = LINES_CHANNELS};
    rondo_result result = tcp_transport.start(self->network, &job);

    return result ? result : tcp_transport.connect(&pair, self->out, self->in);
}

void lines_open(enum seal_mode security)
{
    rondo_result result = RONDO_OK;

    memset(lines_ranks, 0, sizeof(lines_ranks));
    for (int rank = 0; rank < LINES_RANKS && !result; rank++) {
        struct lines_rank *self = &lines_ranks[rank];

        self->endpoint.rank = rank;
        result =
            tcp_transport.open(&(struct network_wish){.rank = rank}, &self->part, &self->network);
    }
    for (int rank = 0; rank < LINES_RANKS && !result; rank++)
        result = start_rank(rank, security);
    fuzz_expect(!result, "networks open");
    /* Lines are made by lines_accept() and lines_dial() alone. */
    for (int rank = 0; rank < LINES_RANKS; rank++) {
        lines_peer(rank)->endpoint.port = 1; /* where nobody listens */
        lines_peer(rank)->endpoint.addresses =
            (struct net_addresses){.at = {{4, 8, 0, {127, 0, 0, 1}}}, .count = 1};
    }
}

void lines_close(void)
{
    for (int rank = 0; rank < LINES_RANKS; rank++) {
        lines_network(rank)->broken = true; /* nobody says good-bye */
        tcp_network_ops.close(lines_ranks[rank].network);
    }
}

struct tcp_network *lines_network(int rank)
{
    return (struct tcp_network *)lines_ranks[rank].network;
}

struct tcp_peer *lines_peer(int rank)
{
    return lines_network(rank)->peers[!rank];
}

/* ---- Lines ----------------------------------------------------------------------------------- */

static struct tcp_line *line_of(int rank, int end, enum tcp_line_state state)
{
    struct tcp_line *line = tcp_line_new(lines_network(rank), end, state);

    fuzz_expect(line, "a line can be made");
    return line;
}

static struct tcp_line *dialed(int rank, int end, unsigned index, enum tcp_line_state state)
{
    struct tcp_line *line = line_of(rank, end, state);
    struct tcp_peer *peer = lines_peer(rank);

    if (peer->lines[index]) /* it has begun to dial one by itself */
        tcp_line_close(peer->lines[index]);
    line->peer = peer;
    line->index = (int)index;
    line->dialed = true;
    line->deadline = clock_seconds() + 10;
    peer->lines[index] = line;
    peer->dials = true;
    if (!index)
        peer->state = TCP_DIALING;
    return line;
}

struct tcp_line *lines_accept(int *ret_end, unsigned index, bool dials)
{
    struct tcp_network *network = lines_network(0);
    struct tcp_line *line;
    int both[2];

    fuzz_sockets(both);
    line = line_of(0, both[0], TCP_GREETED);
    line->deadline = clock_seconds() + 10;
    line->next = network->strangers;
    network->strangers = line;
    network->stranger_count++;
    *ret_end = both[1];
    if (dials)
        tcp_hello_begin(dialed(1, both[1], index, TCP_CONNECTING));
    return line;
}

struct tcp_line *lines_dial(int *ret_end)
{
    struct tcp_line *line;
    int both[2];

    fuzz_sockets(both);
    *ret_end = both[1];
    line = dialed(0, both[0], 0, TCP_CONNECTING);
    tcp_hello_begin(line);
    return line;
}

static void hear(struct tcp_line *line)
{
    if (line && line->state > TCP_CONNECTING && line->state < TCP_OPEN)
        tcp_hello_receive(line);
}

void lines_shake(struct tcp_line *line)
{
    struct tcp_line *const *theirs = lines_peer(1)->lines;

    for (int turn = 0; turn < 3; turn++) {
        hear(line);
        for (int i = 0; i < TCP_LINES; i++)
            hear(theirs[i]);
    }
}
