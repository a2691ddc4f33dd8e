/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * level.c - which CPU level is used: the plain one, then whatever this machine has that is
 * stronger; RONDO_CPU forces one.
 */
#include "base/log.h"
#include "base/setting.h"
#include "kernels/table.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

enum { LEVELS_MAX = 3 };

static struct {
    const struct kernel_table *table[LEVELS_MAX]; /* weakest first */
    const char *name[LEVELS_MAX + 1];
    int count;
} levels;
static pthread_once_t levels_once = PTHREAD_ONCE_INIT;
static const struct kernel_table *_Atomic current;

static void add_level(const struct kernel_table *table)
{
    levels.table[levels.count] = table;
    levels.name[levels.count++] = table->name;
}

#ifdef KERNEL_X86
static bool has_half_floats(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static void find_levels(void)
{
    add_level(&kernel_plain);
#ifdef KERNEL_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && has_half_floats()) {
        add_level(&kernel_avx2);
#ifdef KERNEL_AVX512
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vbmi"))
            add_level(&kernel_avx512);
#endif
    }
#endif
#ifdef KERNEL_NEON
    add_level(&kernel_neon);
#endif
}

/* NULL if this machine or build lacks it. */
static const struct kernel_table *find_level(const char *name)
{
    pthread_once(&levels_once, find_levels);
    for (int i = 0; i < levels.count; i++) {
        if (strcmp(levels.name[i], name) == 0)
            return levels.table[i];
    }
    return NULL;
}

/* Threads that come here together choose the same. */
static const struct kernel_table *choose_level(void)
{
    const char *wish = setting_read_word(SETTING_CPU);
    const struct kernel_table *table = find_level(wish);

    if (table == NULL) {
        table = levels.table[levels.count - 1];
        if (strcmp(wish, "auto") != 0 && *wish != '\0')
            log_warn("%s=%s: this processor or build has no such level, using %s",
                     setting_at(SETTING_CPU)->name, wish, table->name);
    }
    log_debug("arithmetic uses the CPU level %s", table->name);
    atomic_store_explicit(&current, table, memory_order_release);
    return table;
}

const struct kernel_table *kernel_table(void)
{
    /*
     * Acquire, pairs with the release of whoever chose; tables are constant, so this orders nothing
     * but itself.
     */
    const struct kernel_table *table = atomic_load_explicit(&current, memory_order_acquire);

    return table != NULL ? table : choose_level();
}

const char *kernel_level(void)
{
    return kernel_table()->name;
}

bool kernel_use_level(const char *level)
{
    const struct kernel_table *table = find_level(level);

    if (table == NULL)
        return false;
    atomic_store_explicit(&current, table, memory_order_release);
    return true;
}

const char *const *kernel_levels(void)
{
    pthread_once(&levels_once, find_levels);
    return levels.name;
}
