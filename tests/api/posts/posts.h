/* SPDX-License-Identifier: BSD-3-Clause */
/* posts.h - what ranks do in the tests of posted calls. */
#ifndef RONDO_TESTS_API_POSTS_H
#define RONDO_TESTS_API_POSTS_H

#include "tests/world.h"

rondo_result posts_give_what_calls_give(rondo_comm *comm, void *argument, char *sentence);
rondo_result posts_are_waited_for_by_several_threads(rondo_comm *comm, void *argument,
                                                     char *sentence);
/* The last rank kills itself while the others wait. */
rondo_result posts_lose_a_rank(rondo_comm *comm, void *argument, char *sentence);

#endif
