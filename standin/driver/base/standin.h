/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin.h - what the stand-in has beside cuda.h: for other libraries that stand in for NVIDIA's.
 */
#pragma once

#include <cuda.h>
#include <stddef.h>

/* Puts work(copy) into the stream, as a kernel would be: it may touch device memory, and can be
 * captured. `copy` is a copy of the `size` bytes at `argument`. */
CUresult cuStandinRun(CUstream stream, void (*work)(const void *copy), const void *argument,
                      size_t size);
