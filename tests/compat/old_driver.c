/* SPDX-License-Identifier: BSD-3-Clause */
/* old_driver.c - a CUDA driver on which a thread works on device 0, and which Rondo cannot use: it
 * has none of the other functions. */
int cuCtxGetDevice(int *device);

int cuCtxGetDevice(int *device)
{
    *device = 0;
    return 0;
}
