/* SPDX-License-Identifier: BSD-3-Clause */
/* place.c - where workers are, and on which processors they run. */
#include "cli/bench/workers.h"

#include "base/setting.h"
#include "cli/program.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

bool bench_processors(int ranks, char *list, size_t room)
{
    cpu_set_t allowed;
    size_t used = 0;
    int found = 0;

    list[0] = 0;
    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return false;
    for (int cpu = 0; cpu < CPU_SETSIZE && found < ranks; cpu++) {
        char path[96];
        int first = cpu;
        FILE *file;

        if (!CPU_ISSET(cpu, &allowed))
            continue;
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list",
                 cpu);
        file = fopen(path, "re");
        if (file && fscanf(file, "%d", &first) != 1)
            first = cpu;
        if (file)
            fclose(file);
        if (first != cpu && CPU_ISSET(first, &allowed))
            continue; /* the core has a rank already */
        used += (size_t)snprintf(list + used, room - used, "%s%d", found ? "," : "", cpu);
        if (used >= room)
            return false;
        found++;
    }
    return found == ranks;
}

/* Workers that need nothing but Rondo's own sources. */
static bool is_own(const char *library)
{
    return !strcmp(library, "rondo") || !strcmp(library, "limit") || !strcmp(library, "nccl");
}

static bool seek_worker(const char *library, char *path, size_t room)
{
    char name[64];

    snprintf(name, sizeof(name), "rondo-bench-%s", library);
    return program_find(name, "bench", setting_read_word(SETTING_BENCH_DIR), path, room);
}

bool bench_worker_is_there(const char *library)
{
    char path[512];

    return seek_worker(library, path, sizeof(path));
}

int bench_find_worker(const char *library, enum bench_memory memory, char *path, size_t room)
{
    const char *worker = library;

    if (!strcmp(library, "limit") && memory == BENCH_MEMORY_CUDA)
        worker = "limit-cuda";
    if (seek_worker(worker, path, room))
        return 0;
    fprintf(stderr, "rondo bench: the worker for %s (rondo-bench-%s) is not installed. %s\n",
            library, worker,
            is_own(library) ? "Build and install Rondo again."
                            : "Install the library's development files and build Rondo "
                              "again, or leave it out of --vs.");
    return -1;
}
