/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h - what the stand-in has beside cuda.h: for other libraries that stand in for NVIDIA's,
 * and for tests.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>

/* Puts work(copy) into the stream, as a kernel would be: it may touch device memory, and can be
 * captured. `copy` is a copy of the `size` bytes at `argument`. */
CUresult cuStandinRun(CUstream stream, void (*work)(const void *copy), const void *argument,
                      size_t size);

/*
 * Stops this process as SIGSTOP does, when no operation of its streams is in the middle; those
 * behind begin after SIGCONT. A kernel that waits for another process is not waited for longer than
 * a second.
 */
void cuStandinStop(void);

/* Returns how many kernels with that name (NULL: any), or copies, this process has asked for.
 * What goes into a graph counts once, when it is captured. */
unsigned long cuStandinKernels(const char *name);
unsigned long cuStandinCopies(void);
