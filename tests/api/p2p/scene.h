/* SPDX-License-Identifier: BSD-3-Clause */
/* scene.h - what the bodies of the tests of messages with tags share. */
#ifndef RONDO_TESTS_API_P2P_SCENE_H
#define RONDO_TESTS_API_P2P_SCENE_H

#include "tests/api/p2p/p2p.h"

/* Bytes: none, inline, in slots, and with an offer. */
enum { LENGTHS = 6, LONG = 65537, LONGEST = 1000003 };
extern const size_t scene_lengths[LENGTHS];

/* A scene is what a rank has open: its end and transfers. */
struct scene {
    rondo_comm *comm;
    rondo_p2p *p2p;
    int rank, size;
    char *sentence;
    rondo_transfer *transfers[4 * WORLD_RANKS];
    char *memory[4 * WORLD_RANKS];
    int count;
};

rondo_result scene_open(struct scene *scene, rondo_comm *comm, char *sentence);
rondo_result scene_close(struct scene *scene, rondo_result result);
/* Begin a transfer: what is sent follows from rank and tag. */
rondo_result scene_send(struct scene *scene, int peer, int tag, size_t bytes);
rondo_result scene_receive(struct scene *scene, int source, int tag, size_t bytes);
/* Compare what a receive has got with what that rank has sent with that tag. */
rondo_result scene_check(const struct scene *scene, int transfer, const rondo_envelope *envelope);
/* Wait for a receive, and compare; -1: from any, with any. */
rondo_result scene_finish(const struct scene *scene, int transfer, int source, int tag);
rondo_result scene_finish_all(const struct scene *scene);

#endif
