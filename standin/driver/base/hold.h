/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.h - kernels that a test stops in the middle.
 *
 * With CUDA_STANDIN_HOLD=PATH a block that comes to its second barrier, or that which
 * CUDA_STANDIN_HOLD_AT says, while there is a file PATH makes a file PATH.held and stays until PATH
 * is gone. At the first one kernels of Rondo that add up are about to find their operands; at the
 * second they have, and touched none.
 */
#pragma once

/* A block begins on this thread. What it is to call at barriers, NULL: nothing. */
void (*hold_begin(void))(void);
