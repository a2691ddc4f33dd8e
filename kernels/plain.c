/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain.c - the CPU level that every machine has, and the reference for the others: element by
 * element.
 */
#include "kernels/table.h"
#include "kernels/scalar.h"

#define LEVEL      kernel_plain
#define LEVEL_NAME "plain"
#define V(name)    JOIN(name, _1)
#define SINGLE_ELEMENTS
#define STREAM NULL
#include "kernels/templates/level.inc"
