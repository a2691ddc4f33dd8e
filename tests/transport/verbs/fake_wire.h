/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_wire.h - the two halves of the fake adapter meet here: fake_verbs.c has the devices. */
#ifndef RONDO_TESTS_FAKE_WIRE_H
#define RONDO_TESTS_FAKE_WIRE_H

#include "tests/transport/verbs/fake_verbs.h"

enum { FAKE_COMPLETIONS = 4096 };

/* Sets the calls about memory and queues; and how a context posts and polls. */
void fake_wire_fill(struct verbs_calls *calls);
void fake_wire_context(struct ibv_context *context);

#endif
