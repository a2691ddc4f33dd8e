/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h - threads that do the device's work: one for each busy stream, block of a kernel, branch
 * of a graph.
 */
#pragma once

/* Runs job(argument) at once on a thread of its own, which may touch device memory; takes an
 * idle thread where there is one. Without a thread nothing goes on, so a failure to make one
 * ends the process. Call without the lock. */
void pool_run(void (*job)(void *argument), void *argument);
