/* SPDX-License-Identifier: BSD-3-Clause */
/* machine.c - cores, arithmetic kernels, what hwloc sees, launchers. */
#include "cli/doctor/report.h"

#include "base/fail.h"
#include "base/setting.h"
#include "kernels/kernels.h"
#include "topology/topology.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void check_kernels(struct doctor_report *report)
{
    const char *const *levels = kernel_levels();
    const char *level = kernel_level();
    const char *best = level;

    for (; *levels; levels++)
        best = *levels;
    if (!strcmp(level, best))
        doctor_say(report, DOCTOR_OK, "arithmetic", NULL,
                   "kernels for %s, the best that this machine has", level);
    else
        doctor_say(report, DOCTOR_NOTE, "arithmetic", "unset RONDO_CPU",
                   "kernels for %s, though this machine has %s", level, best);
}

static void check_cores(struct doctor_report *report, const struct topology *topology)
{
    int cores = topology_cores(topology);
    int machine = topology_machine_cores(topology);
    int limit = topology_cpu_limit(topology);
    int online = (int)sysconf(_SC_NPROCESSORS_ONLN);

    if (limit && limit == cores && limit < online)
        doctor_say(report, DOCTOR_NOTE, "cores",
                   "start at most that many ranks, or raise the container's CPU limit",
                   "%d: a CPU quota grants no more, of %d hardware threads", limit, online);
    else if (cores < machine)
        doctor_say(report, DOCTOR_NOTE, "cores",
                   "ranks started from here share them: see taskset and the launcher's binding",
                   "%d: this process is bound, the machine has %d", cores, machine);
    else
        doctor_say(report, DOCTOR_OK, "cores", NULL,
                   "%d, with %d hardware threads; no quota below that", cores,
                   topology_threads(topology));
}

void doctor_check_machine(struct doctor_report *report)
{
    struct topology *topology = NULL;
    const char *recorded = setting_read_word(SETTING_TOPOLOGY);

    check_kernels(report);
    if (topology_open(recorded, &topology)) {
        doctor_say(report, DOCTOR_FAIL, "topology",
                   *recorded ? "correct or unset RONDO_TOPOLOGY" : "`lstopo` must work first", "%s",
                   fail_sentence());
        return;
    }
    if (*recorded)
        doctor_say(report, DOCTOR_NOTE, "topology",
                   "unset RONDO_TOPOLOGY to have this machine looked at",
                   "a recorded machine stands in for this one");
    else
        check_cores(report, topology);
    doctor_say(report, DOCTOR_OK, "hwloc", NULL,
               "%d package%s, %d NUMA node%s, %d device%s (`rondo topo` shows them)",
               topology_packages(topology), topology_packages(topology) == 1 ? "" : "s",
               topology_numa_nodes(topology), topology_numa_nodes(topology) == 1 ? "" : "s",
               topology_devices(topology), topology_devices(topology) == 1 ? "" : "s");
    topology_close(topology);
}

void doctor_check_devices(struct doctor_report *report)
{
    doctor_check_rdma(report);
    doctor_check_cuda(report);
    doctor_check_gpudirect(report);
}

/* ---- Launchers ------------------------------------------------------------------------------- */

static bool in_path(const char *program)
{
    const char *path = getenv("PATH");
    char file[PATH_MAX];

    while (path && *path) {
        size_t length = strcspn(path, ":");

        if (snprintf(file, sizeof(file), "%.*s/%s", (int)length, path, program) <
                (int)sizeof(file) &&
            !access(file, X_OK))
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

void doctor_check_launchers(struct doctor_report *report)
{
    static const struct {
        const char *program, *meaning;
    } launchers[] = {{"mpirun.openmpi", "Open MPI"},
                     {"mpirun.mpich", "MPICH"},
                     {"torchrun", "PyTorch"},
                     {"srun", "Slurm"},
                     {"ssh", "rondo run --hosts"}};
    char found[128] = "`rondo run`", missing[128] = "";

    for (size_t i = 0; i < sizeof(launchers) / sizeof(launchers[0]); i++) {
        char *list = in_path(launchers[i].program) ? found : missing;
        size_t length = strlen(list);

        snprintf(list + length, sizeof(found) - length, "%s%s (%s)", length ? ", " : "",
                 launchers[i].program, launchers[i].meaning);
    }
    doctor_say(report, DOCTOR_OK, "launchers", NULL, "%s%s%s", found,
               missing[0] ? "; not found, and not needed: " : "", missing);
}
