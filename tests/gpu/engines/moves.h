/* SPDX-License-Identifier: BSD-3-Clause */
/* moves.h - what ranks do in the tests of copy engines. */
#ifndef RONDO_TESTS_GPU_ENGINES_MOVES_H
#define RONDO_TESTS_GPU_ENGINES_MOVES_H

#include "../bodies.h"

/* Calls of all collectives that only move data, every element checked: no kernel was launched in
 * them if scene->cases is 1, and some was if it is 0. */
rondo_result moves_run(rondo_comm *comm, void *scene, char *sentence);
/* The victim closes the communicator, and the others make a call more. */
rondo_result moves_miss_one(rondo_comm *comm, void *scene, char *sentence);

#endif
