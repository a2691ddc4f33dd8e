/* SPDX-License-Identifier: BSD-3-Clause */
/* mixed.h - calls of one group on several CUDA streams, and streams that await each other's events;
 * each is a world_body (tests/world.h), its argument a gpu_scene. */
#ifndef RONDO_TESTS_GPU_MIXED_H
#define RONDO_TESTS_GPU_MIXED_H

#include "../bodies.h"

/* Messages go out by one stream and come in by the other, after what each has got. */
rondo_result gpu_mixes_streams(rondo_comm *comm, void *scene, char *sentence);
/* So messages do in a graph of both streams, which is launched several times. */
rondo_result gpu_mixes_streams_in_graphs(rondo_comm *comm, void *scene, char *sentence);
/* A rank's two communicators have a group each, on streams of their own. */
rondo_result gpu_keeps_homes_apart(rondo_comm *comm, void *scene, char *sentence);
/* A stream awaits an event that another one has yet to reach. */
rondo_result gpu_awaits_events(rondo_comm *comm, void *scene, char *sentence);

#endif
