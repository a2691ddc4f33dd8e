/* SPDX-License-Identifier: BSD-3-Clause */
/* page.h - pages, as the kernel maps them. */
#ifndef RONDO_TRANSPORT_MEMORY_PAGE_H
#define RONDO_TRANSPORT_MEMORY_PAGE_H

#include <stddef.h>
#include <stdint.h>

enum { PAGE = 4096 };

/* Bytes of the page that lie before `at`. */
static inline size_t page_before(const void *at)
{
    return (uintptr_t)at % PAGE;
}

/* Bytes of it from `at` on; 0 if a page begins there. */
static inline size_t page_after(const void *at)
{
    return -(uintptr_t)at % PAGE;
}

#endif
