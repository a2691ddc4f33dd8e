/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * float_mode.h - arithmetic of the library rounds to nearest, keeps denormal numbers and raises no
 * signal, whatever the calling thread has set.
 *
 * A thread of a program that was linked with -ffast-math flushes denormal numbers to zero: its rank
 * would have other bits than its peers, or choose another algorithm. Looking costs some 20 cycles;
 * only where the caller's mode is another one is it changed, and set again afterwards.
 */
#ifndef RONDO_BASE_CALLER_FLOAT_MODE_H
#define RONDO_BASE_CALLER_FLOAT_MODE_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__SSE2__)
#include <xmmintrin.h>

enum { FLOAT_MODE_OURS = 0x1f80, FLOAT_MODE_FLAGS = 0x3f }; /* all exceptions masked */

static inline uint64_t float_mode(void)
{
    return _mm_getcsr();
}

static inline void float_mode_set(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
#elif defined(__aarch64__)
enum { FLOAT_MODE_OURS = 0, FLOAT_MODE_FLAGS = 0 };

static inline uint64_t float_mode(void)
{
    uint64_t mode;

    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void float_mode_set(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
enum { FLOAT_MODE_OURS = 0, FLOAT_MODE_FLAGS = 0 };

static inline uint64_t float_mode(void)
{
    return FLOAT_MODE_OURS;
}

static inline void float_mode_set(uint64_t mode)
{
    (void)mode;
}
#endif

static inline bool float_mode_is_ours(uint64_t mode)
{
    return (mode & ~(uint64_t)FLOAT_MODE_FLAGS) == FLOAT_MODE_OURS;
}

/* Returns the caller's mode, for float_mode_set() after the arithmetic. */
static inline uint64_t float_mode_enter(void)
{
    uint64_t callers = float_mode();

    if (!float_mode_is_ours(callers))
        float_mode_set(FLOAT_MODE_OURS);
    return callers;
}

/* The other half of float_mode_enter(). */
static inline void float_mode_leave(uint64_t callers)
{
    if (!float_mode_is_ours(callers))
        float_mode_set(callers);
}

#endif
