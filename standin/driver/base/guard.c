/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.c - device memory carries a protection key, and only threads that do the work of streams
 * hold it.
 *
 * A program that reads or writes device memory by its own hand then dies of SIGSEGV, as it would
 * with a real device without unified host access. Rights of a key belong to a thread; new threads
 * take over those of their creator. Without protection keys in the CPU or the kernel, and with
 * CUDA_STANDIN_GUARD=2, there is another kind of guard: device memory is mapped without access
 * while no stream has work that touches it (see memory.c). CUDA_STANDIN_GUARD=0 turns either off.
 */
#include "standin/driver/base/guard.h"

#include "standin/driver/base/call.h"

#include <sys/mman.h>

enum { OFF, KEYS, PAGES };

static int key = -1;
static bool by_pages;

void guard_init(void)
{
    uint64_t kind = call_setting("GUARD", KEYS);
    if (kind == KEYS)
        key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
    by_pages = kind == PAGES || (kind == KEYS && key < 0);
}

bool guard_by_pages(void)
{
    return by_pages;
}

int guard_protect(void *address, size_t size, int protection)
{
    return key >= 0 ? pkey_mprotect(address, size, protection, key)
                    : mprotect(address, size, protection);
}

void guard_allow(bool allowed)
{
    if (key >= 0)
        pkey_set(key, allowed ? 0 : PKEY_DISABLE_ACCESS);
}
