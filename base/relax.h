/* SPDX-License-Identifier: BSD-3-Clause */
/* relax.h - a pause of some tens of cycles, for a thread that looks at memory of another core. */
#ifndef RONDO_BASE_RELAX_H
#define RONDO_BASE_RELAX_H

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

#endif
