/* SPDX-License-Identifier: BSD-3-Clause */
/* move.h - what a copy or reduce step does to memory, on the host. */
#ifndef RONDO_PLAN_MOVE_H
#define RONDO_PLAN_MOVE_H

#include "plan/exec.h"

/* Does one copy or reduce step in the program's segment. Returns EXEC_MOVED, or EXEC_FAILED with a
 * sentence. */
enum exec_state move_step(struct execution *x, struct exec_program *program,
                          const struct plan_step *step);

#endif
