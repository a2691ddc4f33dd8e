/* SPDX-License-Identifier: BSD-3-Clause */
/* registration.h - what closing a communicator does with registered memory. */
#ifndef RONDO_COMM_REGISTRATION_H
#define RONDO_COMM_REGISTRATION_H

#include "rondo/rondo.h"

/* Drop what is still registered when a communicator closes; the memory becomes private again, where
 * that works. */
void registration_drop_all(rondo_comm *comm);

#endif
