/* SPDX-License-Identifier: BSD-3-Clause */
/* messages.h - what ranks do in the tests of long sends and receives. */
#ifndef RONDO_TESTS_API_MESSAGES_H
#define RONDO_TESTS_API_MESSAGES_H

#include "tests/world.h"

/* To the right and from the left, in memory of every kind and of lengths around that from which on
 * the receiver reads the sender's memory, over and over. */
rondo_result messages_go_round(rondo_comm *comm, void *argument, char *sentence);
/* Several in a group with one peer, and a collective that reads peers' memory as well. */
rondo_result messages_beside_a_collective(rondo_comm *comm, void *argument, char *sentence);
/* The receiver closes the communicator as soon as it has the message. */
rondo_result messages_before_closing(rondo_comm *comm, void *argument, char *sentence);
rondo_result messages_to_oneself(rondo_comm *comm, void *argument, char *sentence);
rondo_result messages_in_pieces(rondo_comm *comm, void *argument, char *sentence);
/* The sender gives up while its receiver has not come: which then gets the error, not the data. */
rondo_result messages_given_up(rondo_comm *comm, void *argument, char *sentence);

#endif
