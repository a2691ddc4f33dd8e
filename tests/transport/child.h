/* SPDX-License-Identifier: BSD-3-Clause */
/* child.h - another process for tests: runs a body and
 * hands back a number; memory that both see. */
#ifndef RONDO_TESTS_TRANSPORT_CHILD_H
#define RONDO_TESTS_TRANSPORT_CHILD_H

#include <stddef.h>
#include <sys/types.h>

/* A child that runs the body and exits with what it returns
 * (0 .. 125: usually which check failed). */
pid_t child_start(int (*body)(void *), void *argument);
/* Returns the child's exit status, or 128 + the signal that ended it. */
int child_wait(pid_t child);
/* Both. */
int child_run(int (*body)(void *), void *argument);

/* Zeroed, shared with children that are started later. Never NULL. */
void *child_share(size_t bytes);
/* Open file descriptors of this process. */
int child_descriptors(void);

#endif
