/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.c - protection keys: device memory carries a key, and only threads that do the work of
 * streams hold it.
 *
 * A program that reads or writes device memory by its own hand then dies of SIGSEGV, as it would
 * with a real device without unified host access. Rights of a key belong to a thread; new threads
 * take over those of their creator. CUDA_STANDIN_GUARD=0 turns it off; without protection keys in
 * the CPU or the kernel there is no guard, unless CUDA_STANDIN_GUARD=2 asks for another kind:
 * device memory is mapped without access while no stream has work that touches it (see memory.c).
 */
#include "guard.h"

#include "call.h"

#include <sys/mman.h>

enum { OFF, KEYS, PAGES };

static int key = -1;
static bool by_pages;

void guard_init(void)
{
    uint64_t kind = call_setting("GUARD", KEYS);
    by_pages = kind == PAGES;
    if (kind == KEYS)
        key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
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
