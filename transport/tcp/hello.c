/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hello.c - the handshake of a line.
 *
 *     dialer                                        acceptor
 *     hello: who, to whom, which line, a nonce ->
 *                                                <- a nonce, proof of the key over the hello
 *     proof of the key over the hello          ->
 *                                                <- a record (seal.h): welcome, or busy
 *
 * Two ranks may dial each other at the same time. Then the lower rank's line counts: it answers
 * "busy", and the higher one waits for the other line, which is on its way. Only a line that the
 * system has connected counts: where a firewall lets one way pass alone, the other never is.
 * Strangers are dropped: whatever is wrong, without a word, and in 10 seconds at the latest.
 *
 * A crowd of strangers keeps nobody out: when all places are taken, connections wait in the
 * system's queue, and the oldest line that has had time to speak gives its place to the next one.
 */
#include "transport/tcp/engine.h"

#include "base/caller/descriptor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/net/socket.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

static const char magic[8] = {'R', 'o', 'n', 'd', 'o', 'T', 'C', '2'};
static const char *const by_acceptor = "rondo tcp accept", *const by_dialer = "rondo tcp dial";

static struct proof_session session_of(const struct tcp_line *line)
{
    return (struct proof_session){.key = line->network->key,
                                  .first_nonce = line->hello.nonce,
                                  .second_nonce = line->challenge.nonce};
}

void tcp_hello_drop(struct tcp_line *line)
{
    struct tcp_line **link = &line->network->strangers;

    while (*link != line)
        link = &(*link)->next;
    *link = line->next;
    line->network->stranger_count--;
    if (!line->peer)
        tcp_line_close(line);
}

/* ---- Dialer ---------------------------------------------------------------------------------- */

void tcp_hello_begin(struct tcp_line *line)
{
    const struct tcp_network *network = line->network;
    int number = socket_error(line->fd);

    /* Who resets a connection has accepted it first: a full port, say, which is not nobody. */
    if (number == ECONNRESET || number == EPIPE)
        line->state = TCP_CHALLENGED;
    /* Who comes late has not seen how earlier attempts went on: patience begins anew. */
    if (clock_seconds() > line->deadline)
        line->peer->troubled = 0;
    if (number) {
        tcp_note_refusal(line->peer, line->index, number);
        tcp_peer_refused(line, tcp_dial_error(number));
        return;
    }
    tcp_line_watch(line, false);
    line->state = TCP_CHALLENGED;
    memcpy(line->hello.magic, magic, sizeof(magic));
    line->hello.from = network->rank;
    line->hello.to = line->peer->rank;
    line->hello.size = network->size;
    line->hello.line = (uint32_t)line->index;
    line->hello.comm = network->comm;
    proof_nonce(line->hello.nonce);
    if (!socket_say(line->fd, &line->hello, sizeof(line->hello)))
        tcp_peer_refused(line, "it takes no bytes");
}

static void take_challenge(struct tcp_line *line)
{
    struct proof_session session;
    unsigned char proof[PROOF_BYTES];

    line->challenge = line->coming.challenge;
    session = session_of(line);
    if (!proof_check(&session, by_acceptor, &line->hello, sizeof(line->hello),
                     line->challenge.proof)) {
        tcp_peer_refused(line, "who answers there is no rank of this job");
        return;
    }
    proof_make(&session, by_dialer, &line->hello, sizeof(line->hello), proof);
    line->state = TCP_PROVED;
    if (!socket_say(line->fd, proof, sizeof(proof)))
        tcp_peer_refused(line, "it takes no bytes");
}

static void take_verdict(struct tcp_line *line)
{
    struct tcp_peer *peer = line->peer;
    struct tcp_answer *answer = &line->coming.answer;

    if (!tcp_seal_begin(line, peer) ||
        !seal_open(&line->in, &answer->verdict, sizeof(answer->verdict), answer->tag)) {
        tcp_peer_refused(line, "its answer was changed on the way");
    } else if (answer->verdict == TCP_WELCOME) {
        line->state = TCP_OPEN;
        tcp_peer_opened(peer, line);
    } else if (answer->verdict == TCP_BUSY && line->index == 0) {
        peer->lines[0] = NULL;
        tcp_line_close(line);
        peer->state = TCP_AWAITED;
        peer->since = clock_seconds() + PATIENCE_BUSY;
    } else {
        tcp_peer_refused(line, "it refuses the connection");
    }
}

/* ---- Acceptor -------------------------------------------------------------------------------- */

/* The line that has been here longest, and for `seconds` at least, of those that have
 * said nothing, or of all. */
static struct tcp_line *oldest(const struct tcp_network *network, bool silent, double seconds)
{
    double before = clock_seconds() + STRANGER_PROVES - seconds;
    struct tcp_line *found = NULL;

    for (struct tcp_line *line = network->strangers; line; line = line->next)
        if ((!silent || line->state == TCP_GREETED) && line->deadline <= before)
            found = line; /* new ones are first in the list */
    return found;
}

/* Free the place of one line; false: all of them still have time. */
static bool make_place(struct tcp_network *network)
{
    int count = network->stranger_count;

    for (;;) {
        struct tcp_line *line = oldest(network, true, STRANGER_SILENT);
        enum tcp_line_state state;

        if (!line)
            line = oldest(network, false, STRANGER_DOUBTED);
        if (!line)
            return false;
        state = line->state;
        tcp_hello_receive(line); /* it may have spoken while this rank was busy elsewhere */
        if (network->stranger_count == count && line->state == state)
            tcp_hello_drop(line);
        if (network->stranger_count < count)
            return true;
    }
}

/* Stop or resume accepting; ranks that dial meanwhile wait in the system's queue. */
static void shut_door(struct tcp_network *network, bool shut)
{
    struct epoll_event event = {.events = shut ? 0 : EPOLLIN};

    if (network->shut == shut)
        return;
    network->shut = shut;
    epoll_ctl(network->epoll, EPOLL_CTL_MOD, network->listener, &event);
}

static bool somebody_knocks(const struct tcp_network *network)
{
    struct pollfd door = {.fd = network->listener, .events = POLLIN};

    return poll(&door, 1, 0) > 0;
}

/* accept() failed. True: a stranger has left its descriptor for the next attempt. */
static bool can_go_on(struct tcp_network *network)
{
    int number = errno;

    if (number == ECONNABORTED || number == EINTR)
        return true;
    /* Linux wants a descriptor before it looks whether there is a connection to accept. */
    if (!tcp_is_shortage(number) || !somebody_knocks(network)) {
        network->accept_shortage.since = 0;
        return false;
    }
    if (make_place(network))
        return true;
    if (network->strangers) {
        shut_door(network, true);
        return false;
    }
    tcp_note_shortage(&network->accept_shortage, number);
    return false;
}

static void greet(struct tcp_network *network, int fd)
{
    struct tcp_line *line = tcp_line_new(network, fd, TCP_GREETED);

    if (!line)
        return;
    line->deadline = clock_seconds() + STRANGER_PROVES;
    line->next = network->strangers;
    network->strangers = line;
    network->stranger_count++;
}

void tcp_hello_accept(struct tcp_network *network)
{
    shut_door(network, false);
    /* Bounded, so that a flood at the door does not keep this rank from its peers. */
    for (int i = 0; i < TCP_STRANGERS; i++) {
        int fd;

        if (network->stranger_count >= TCP_STRANGERS) {
            if (!somebody_knocks(network))
                return;
            if (!make_place(network)) {
                shut_door(network, true);
                return;
            }
        }
        fd = descriptor_above(accept4(network->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (fd < 0 && !can_go_on(network))
            return;
        if (fd < 0)
            continue;
        network->accept_shortage.since = 0;
        greet(network, fd);
    }
}

static bool take_hello(struct tcp_line *line)
{
    const struct tcp_network *network = line->network;
    const struct tcp_hello *hello = &line->hello;
    struct proof_session session;

    line->hello = line->coming.hello;
    if (memcmp(hello->magic, magic, sizeof(magic)) != 0 || hello->comm != network->comm ||
        hello->to != network->rank || hello->size != network->size || hello->from < 0 ||
        hello->from >= network->size || !network->peers[hello->from] ||
        hello->line >= TCP_LINES) /* it may want more of them than we would */
        return false;
    proof_nonce(line->challenge.nonce);
    session = session_of(line);
    proof_make(&session, by_acceptor, hello, sizeof(*hello), line->challenge.proof);
    line->state = TCP_DOUBTED;
    return socket_say(line->fd, &line->challenge, sizeof(line->challenge));
}

static bool say_verdict(struct tcp_line *line, struct tcp_peer *peer, uint32_t verdict)
{
    struct tcp_answer answer;

    if (!tcp_seal_begin(line, peer))
        return false;
    seal_close(&line->out, &verdict, sizeof(verdict), &answer.verdict, answer.tag);
    return socket_say(line->fd, &answer, sizeof(answer));
}

/* The proof is right: does this line take its place? */
static bool admit(struct tcp_line *line)
{
    struct tcp_peer *peer = line->network->peers[line->hello.from];
    uint32_t index = line->hello.line;
    struct tcp_line *own = peer->lines[index];
    uint32_t verdict = TCP_WELCOME;

    if (peer->state == TCP_GONE || (own && own->state == TCP_OPEN) ||
        (index > 0 && (peer->state != TCP_UP || own)))
        return false;
    if (own && own->state != TCP_CONNECTING && line->network->rank < peer->rank)
        verdict = TCP_BUSY;
    if (!say_verdict(line, peer, verdict) || verdict != TCP_WELCOME)
        return false;
    if (own) {
        peer->lines[0] = NULL;
        tcp_line_close(own);
    }
    line->peer = peer;
    line->index = (int)index;
    tcp_tune(line->fd, index == 0, line->network);
    return true;
}

static bool take_proof(struct tcp_line *line)
{
    struct proof_session session = session_of(line);

    return proof_check(&session, by_dialer, &line->hello, sizeof(line->hello),
                       line->coming.proof) &&
           admit(line);
}

void tcp_hello_receive(struct tcp_line *line)
{
    const size_t wanted[] = {[TCP_CHALLENGED] = sizeof(line->coming.challenge),
                             [TCP_PROVED] = sizeof(line->coming.answer),
                             [TCP_GREETED] = sizeof(line->coming.hello),
                             [TCP_DOUBTED] = sizeof(line->coming.proof)};
    enum socket_outcome outcome =
        socket_fill(line->fd, &line->coming, wanted[line->state], &line->filled);
    bool fine = true;

    if (outcome == SOCKET_CLOSED && line->peer)
        tcp_peer_refused(line, "it hung up");
    else if (outcome == SOCKET_CLOSED)
        tcp_hello_drop(line);
    if (outcome != SOCKET_DONE)
        return;
    if (line->state == TCP_CHALLENGED)
        take_challenge(line);
    else if (line->state == TCP_PROVED)
        take_verdict(line);
    else if (line->state == TCP_GREETED)
        fine = take_hello(line);
    else
        fine = take_proof(line);
    if (!fine) {
        log_info("a TCP connection was dropped: it is from no rank that was expected");
        tcp_hello_drop(line);
    } else if (line->state == TCP_DOUBTED && line->peer) {
        tcp_hello_drop(line); /* off the list: it has a name now */
        line->state = TCP_OPEN;
        tcp_peer_opened(line->peer, line);
    }
}
