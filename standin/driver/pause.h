/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pause.h - a process that is stopped between operations of its streams.
 *
 * A real device goes on when its process is stopped: what had begun comes to its end. The stand-in
 * works in the process, where SIGSTOP would cut a copy in two. See cuStandinStop() in standin.h.
 */
#pragma once

#include "standin/driver/op.h"

/* An operation begins, as soon as it may, and has ended. The lock is held. */
void pause_begin(const struct op *op);
void pause_end(const struct op *op);
