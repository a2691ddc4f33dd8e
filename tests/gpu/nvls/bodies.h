/* SPDX-License-Identifier: BSD-3-Clause */
/* bodies.h - what ranks do in the tests of multicast. */
#ifndef RONDO_TESTS_GPU_NVLS_BODIES_H
#define RONDO_TESTS_GPU_NVLS_BODIES_H

#include "../bodies.h"

/* Calls of all kinds that multicast is for, every element checked; scene->cases of 0: none of them
 * goes through it, 1: all that it can do, 2: none but long ones. */
rondo_result nvls_calls(rondo_comm *comm, void *scene, char *sentence);
/* One call in a graph, which is launched again and again on other numbers. */
rondo_result nvls_replays(rondo_comm *comm, void *scene, char *sentence);
/* The victim ends while the others wait for it in a kernel. */
rondo_result nvls_loses_a_rank(rondo_comm *comm, void *scene, char *sentence);
/* Ranks call something else than each other. */
rondo_result nvls_differs(rondo_comm *comm, void *scene, char *sentence);
/* The victim closes the communicator, and the others make one call more. */
rondo_result nvls_is_closed_by_one(rondo_comm *comm, void *scene, char *sentence);
/* Communicators are opened and closed, one after the other. */
rondo_result nvls_comes_and_goes(rondo_comm *comm, void *scene, char *sentence);

#endif
