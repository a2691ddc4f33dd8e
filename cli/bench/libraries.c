/* SPDX-License-Identifier: BSD-3-Clause */
/* libraries.c - the libraries, where their workers are, and on which processors they run. */
#include "cli/bench/workers.h"

#include "base/setting.h"
#include "cli/common/lines.h"
#include "cli/program.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Gloo's ranks are not bound: each has an I/O thread that needs a processor of its own. Nor is
 * anybody who works on a device, where drivers have threads.
 */
const struct bench_kind bench_kinds[BENCH_LIBRARIES] = {
    [BENCH_RONDO] = {"rondo", .rondo = true, .own = true, .bound = true, .on_devices = true,
                     .threads = BENCH_THREADS_ASKED},
    [BENCH_OPENMPI] = {"openmpi", .mpi = true, .bound = true, .folder = true},
    [BENCH_MPICH] = {"mpich", .mpi = true, .bound = true},
    [BENCH_GLOO] = {"gloo", .folder = true},
    [BENCH_NCCL] = {"nccl", .own = true, .folder = true, .on_devices = true,
                    .threads = BENCH_THREADS_ASKED},
    [BENCH_BASE] = {"base", .rondo = true, .own = true, .bound = true, .on_devices = true,
                    .threads = BENCH_THREADS_ASKED},
    [BENCH_LIMIT] = {"limit", .own = true, .bound = true, .on_devices = true,
                     .threads = BENCH_THREADS_ALWAYS},
};

bool bench_processors(int ranks, char *list, size_t room)
{
    cpu_set_t allowed;
    size_t used = 0;
    int found = 0;

    list[0] = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < ranks; cpu++) {
        char path[96], siblings[64];
        int first;

        if (!CPU_ISSET(cpu, &allowed))
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        first = line_after(path, "", siblings, sizeof(siblings)) ? atoi(siblings) : cpu;
        if (first != cpu && CPU_ISSET(first, &allowed))
            continue; /* the core has a rank already */
        used += (size_t)snprintf(list + used, room - used, "%s%d", found ? "," : "", cpu);
        if (used >= room)
            return false;
        found++;
    }
    return found == ranks;
}

static bool seek_worker(const struct bench_kind *kind, char *path, size_t room)
{
    char name[64];

    /* Another build is another library for the same worker. */
    snprintf(name, sizeof(name), "rondo-bench-%s", kind->rondo ? "rondo" : kind->name);
    return program_find(name, "bench", setting_read_word(SETTING_BENCH_DIR), path, room);
}

bool bench_worker_is_there(enum bench_library_id library)
{
    char path[512];

    return seek_worker(&bench_kinds[library], path, sizeof(path));
}

int bench_find_worker(const struct bench_kind *kind, char *path, size_t room)
{
    if (seek_worker(kind, path, room))
        return 0;
    fprintf(stderr, "rondo bench: the worker for %s (rondo-bench-%s) is not installed. %s\n",
            kind->name, kind->name,
            kind->own ? "Build and install Rondo again."
                      : "Install the library's development files and build Rondo again, or leave "
                        "it out of --vs.");
    return -1;
}
