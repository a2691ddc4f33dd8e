/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hold.h - kernels that a test stops in the middle.
 *
 * With CUDA_STANDIN_HOLD=PATH a block that comes to its second barrier while there is a file PATH
 * makes a file PATH.held and stays until PATH is gone. Kernels of Rondo that add up have found
 * their operands by then, and touched none.
 */
#pragma once

/* Once, before there are kernels. */
void hold_init(void);
/* A block begins on this thread. What it is to call at barriers, NULL: nothing. */
void (*hold_begin(void))(void);
