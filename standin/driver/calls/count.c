/* SPDX-License-Identifier: BSD-3-Clause */
#include "standin/driver/calls/count.h"

#include "standin/driver/base/call.h"
#include "standin/driver/base/standin.h"

#include <stdio.h>
#include <string.h>

enum { NAMES = 128, LENGTH = 64 };

static struct {
    char name[LENGTH];
    unsigned long launches;
} kernels[NAMES];
static unsigned long all, copies;

void count_kernel(const char *name)
{
    int i = 0;
    all++;
    while (i < NAMES && *kernels[i].name && strncmp(kernels[i].name, name, LENGTH - 1) != 0)
        i++;
    if (i == NAMES)
        return;
    snprintf(kernels[i].name, LENGTH, "%s", name);
    kernels[i].launches++;
}

void count_copy(void)
{
    copies++;
}

unsigned long cuStandinKernels(const char *name)
{
    unsigned long launches = 0;
    call_lock();
    for (int i = 0; name && i < NAMES; i++)
        launches += strncmp(kernels[i].name, name, LENGTH - 1) == 0 ? kernels[i].launches : 0;
    if (!name)
        launches = all;
    call_unlock();
    return launches;
}

unsigned long cuStandinCopies(void)
{
    call_lock();
    unsigned long now = copies;
    call_unlock();
    return now;
}
