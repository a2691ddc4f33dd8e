/* SPDX-License-Identifier: BSD-3-Clause */
/* registration.h - what closing a communicator does with registered memory. */
#ifndef RONDO_COMM_REGISTRATION_H
#define RONDO_COMM_REGISTRATION_H

#include "rondo/rondo.h"

#include <stdbool.h>

/* True if a call of the thread's open group uses memory that the communicator registered. */
bool registration_is_needed(rondo_comm *comm);
/* True if such a call keeps the communicator from being closed: the group is spoilt then, as by
 * group_holds(). */
bool registration_in_group(rondo_comm *comm);
/* Drop what is still registered when a communicator closes; the memory becomes private again, where
 * that works; else its pages stay shared, and no peer is told of it any more. */
void registration_drop_all(rondo_comm *comm);

#endif
