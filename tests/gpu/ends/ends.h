/* SPDX-License-Identifier: BSD-3-Clause */
/* ends.h - communicators that are closed before CUDA streams have come to their calls; each is a
 * world_body (tests/world.h), its argument a gpu_scene. */
#ifndef RONDO_TESTS_GPU_ENDS_H
#define RONDO_TESTS_GPU_ENDS_H

#include "../bodies.h"

/* A graph was launched, and a call made, on a stream that goes on when the aborted communicator is
 * closed; then the graph is launched again. */
rondo_result gpu_closes_aborted_before_graphs(rondo_comm *comm, void *scene, char *sentence);
/* The same, but the communicator is broken as a peer has ended. */
rondo_result gpu_closes_before_graphs_without_a_peer(rondo_comm *comm, void *scene, char *sentence);
/* A call outside of graphs is queued on a stream that goes on when the aborted communicator is
 * closed. */
rondo_result gpu_closes_aborted_before_calls(rondo_comm *comm, void *scene, char *sentence);
/* The driver refuses `failing`, a part of a call. */
rondo_result gpu_closes_after_a_refusal(rondo_comm *comm, void *scene, char *sentence);
/* The victim's does, and a stream comes to the other part when its communicator is closed. */
rondo_result gpu_closes_before_a_part(rondo_comm *comm, void *scene, char *sentence);
/* A stream comes to a call when a peer has used again what memory it had for that communicator. */
rondo_result gpu_uses_memory_of_an_aborted_one_again(rondo_comm *comm, void *scene, char *sentence);
/* A graph was launched on a stream that goes on when closing the sound communicator waits for it.
 */
rondo_result gpu_closes_before_a_launch(rondo_comm *comm, void *scene, char *sentence);

#endif
