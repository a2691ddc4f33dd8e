/* SPDX-License-Identifier: BSD-3-Clause */
/* behind.h - calls on CUDA streams that come to them late; each is a world_body (tests/world.h),
 * its argument a gpu_scene. */
#ifndef RONDO_TESTS_GPU_BEHIND_H
#define RONDO_TESTS_GPU_BEHIND_H

#include "../bodies.h"

/* Streams come to a call when it is older than the timeout, the last one later than the others. */
rondo_result gpu_calls_older_than_the_timeout(rondo_comm *comm, void *scene, char *sentence);
/* A communicator with a call in a graph is closed before its stream comes to another call. */
rondo_result gpu_closes_before_a_call(rondo_comm *comm, void *scene, char *sentence);

#endif
