/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_device.h - a GPU that is only memory, which the processor cannot touch where it is: its
 * addresses are reserved and no more. Its bytes are in a file, which adapters map, and read() and
 * write().
 */
#ifndef RONDO_TESTS_FAKE_DEVICE_H
#define RONDO_TESTS_FAKE_DEVICE_H

#include "transport/link/device_memory.h"

struct fake_device {
    int living; /* pieces that were taken and not given back */
    bool full;  /* none is to be had */
};
extern struct fake_device fake_device;
extern const struct device_source fake_device_source;

#endif
