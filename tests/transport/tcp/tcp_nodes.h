/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tcp_nodes.h - some ranks in one thread, each with a TCP network of its own over loopback, and a
 * rogue: a socket that can say anything to them, with the job's key or without.
 */
#ifndef RONDO_TESTS_TCP_NODES_H
#define RONDO_TESTS_TCP_NODES_H

#include "tests/transport/traffic.h"
#include "transport/tcp/engine.h"

enum { NODE_COMM = 4711 };

struct node {
    int rank;
    struct endpoint endpoint;
    struct tcp_endpoint part;
    struct network *network;
    struct link_out out[NODE_CHANNELS * NODES];
    struct link_in in[NODE_CHANNELS * NODES];
    struct network_wait wait, waited; /* what it shows, and what came last */
    int failed_from;                  /* the last peer that has failed, and how */
    struct network_failure failure;
    char sentence[FAIL_SENTENCE_MAX];
    int left; /* the last peer that is gone, from 1; 0: none is */
    bool parted;
    void (*on_note)(void);
    int notes;
    char note[NETWORK_NOTE];
    size_t note_bytes;
};

extern struct node nodes[NODES];
/* Tells how nodes send data: what NODES_SECURITY names, as RONDO_SECURITY would, or none. */
enum seal_mode nodes_security(void);

/* Networks and links of all; an error is returned as it came. */
rondo_result nodes_open(void);
void nodes_close(void);
void node_close(int rank);
static inline struct tcp_network *node_tcp(int rank)
{
    return (struct tcp_network *)nodes[rank].network;
}
/* progress() of all that are open; the first error. */
rondo_result nodes_progress(void);
/* These go on for so long, and a round for each millisecond of it on a slow machine as well, or
 * until `peer` of `rank` is in that state. */
rondo_result nodes_progress_for(double seconds);
bool nodes_await(int rank, int peer, enum tcp_peer_state state);

/* Push the next message; false: there is no slot. */
bool node_send(int from, int to, int channel);
/* Take the next message; 1: it was right, 0: it is not there, -1: it was wrong. */
int node_receive(int to, int from, int channel);
/* One message on channel 0 is sent, and comes right. */
bool node_pass(int from, int to);

/* ---- The rogue ------------------------------------------------------------------------------- */

/* A connection to the port of a node, from that address 127.0.0.`host`; -1: none. It does not
 * block. */
int rogue_dial_from(int rank, int host);
int rogue_dial(int rank);
/* A port of somebody else on the loopback address, where so many may wait to be accepted. */
int rogue_listen(uint16_t *ret_port, int backlog);
/* Returns what a rank of this job would say first. */
struct tcp_hello rogue_hello(int from, int to, unsigned line);
/* Say `hello`, and prove it with the job's key: 0 if that is not answered, or the verdict. */
uint32_t rogue_pass(int fd, const struct tcp_hello *hello);
void rogue_say(int fd, const void *bytes, size_t count);
/* A frame and its payload (or NULL) as they travel on a line that has passed: how many bytes. */
size_t rogue_seal(int fd, const struct tcp_frame *frame, const char *payload, char *ret_bytes);
void rogue_say_frame(int fd, struct tcp_frame frame, const char *payload);
/* A frame comes, unchanged. */
bool rogue_hear_frame(int fd, struct tcp_frame *ret_frame);
/* Read, while the nodes make progress, until `count` bytes are there: false if it hangs up. */
bool rogue_hear(int fd, void *bytes, size_t count);
/* The nodes hang up within a moment. */
bool rogue_is_dropped(int fd);

#endif
