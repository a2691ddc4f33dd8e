/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * quota.c - how many CPUs' worth of time the cgroup grants (docker --cpus, Kubernetes limits).
 *
 * A quota holds for a group and everything below it, so the smallest one on the way from this
 * process's group up to the root counts. Inside a container the path may not exist under the mount
 * point; then only the parents that do are read, of which the mount point itself is the container's
 * own group.
 */
#include "topology/inside.h"

#include "base/caller/descriptor.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool read_line(const char *folder, const char *name, char *line, int size)
{
    char path[PATH_MAX];
    FILE *file;
    bool good;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return false;
    file = descriptor_stream(path, "r");
    if (!file)
        return false;
    good = fgets(line, size, file);
    fclose(file);
    return good;
}

static int round_up(double quota, double period)
{
    double cpus = period > 0 ? quota / period : 0;

    if (cpus <= 0 || cpus > INT_MAX / 2)
        return 0;
    return (int)cpus + ((double)(int)cpus < cpus);
}

/*
 * Version 2: "QUOTA PERIOD" or "max PERIOD" in one file. Version 1: two files, quota -1 for none.
 */
static int quota_of_folder(const char *folder)
{
    char line[128];
    char period[128];
    double quota;
    double each;

    if (read_line(folder, "cpu.max", line, sizeof(line)))
        return sscanf(line, "%lf %lf", &quota, &each) == 2 ? round_up(quota, each) : 0;
    if (read_line(folder, "cpu.cfs_quota_us", line, sizeof(line)) &&
        read_line(folder, "cpu.cfs_period_us", period, sizeof(period)))
        return round_up(atof(line), atof(period));
    return 0;
}

/* The second one where they are the same: it is that of a group further up. */
static struct topology_quota smaller(struct topology_quota a, struct topology_quota b)
{
    return a.cpus && (!b.cpus || a.cpus < b.cpus) ? a : b;
}

static struct topology_quota look_at(const char *folder)
{
    struct topology_quota quota = {.cpus = quota_of_folder(folder)};
    struct stat status;

    if (quota.cpus && !stat(folder, &status))
        quota.group = status.st_ino;
    return quota;
}

static struct topology_quota quota_upwards(const char *mount, const char *controller,
                                           const char *group)
{
    char path[PATH_MAX];
    size_t root;
    struct topology_quota quota = {0};

    if (snprintf(path, sizeof(path), "%s%s%s", mount, controller, group) >= (int)sizeof(path))
        return quota;
    root = strlen(mount) + strlen(controller);
    for (;;) {
        char *slash;

        quota = smaller(quota, look_at(path));
        slash = strrchr(path, '/');
        if (strlen(path) <= root || !slash || (size_t)(slash - path) < root)
            return quota;
        *slash = 0;
    }
}

/* True if a version 1 line names the controller "cpu", alone or in a list like "cpu,cpuacct". */
static bool is_cpu_controller(const char *names)
{
    size_t length;

    for (; *names; names += length + (names[length] == ',')) {
        length = strcspn(names, ",");
        if (length == 3 && !strncmp(names, "cpu", 3))
            return true;
    }
    return false;
}

struct topology_quota topology_read_quota(const char *self, const char *mount)
{
    FILE *file = descriptor_stream(self, "r");
    char line[PATH_MAX];
    struct topology_quota quota = {0};

    if (!file)
        return quota;
    while (fgets(line, sizeof(line), file)) {
        char *names = strchr(line, ':'); /* "number:controllers:path" */
        char *group = names ? strchr(names + 1, ':') : NULL;
        char controller[128];

        if (!group)
            continue;
        *group++ = 0;
        names++;
        group[strcspn(group, "\n")] = 0;
        if (!*names) {
            quota = smaller(quota, quota_upwards(mount, "", group));
            quota = smaller(quota, quota_upwards(mount, "/unified", group));
        } else if (is_cpu_controller(names)) {
            snprintf(controller, sizeof(controller), "/%.100s", names);
            quota = smaller(quota, quota_upwards(mount, controller, group));
        }
    }
    fclose(file);
    return quota;
}

struct topology_quota topology_own_quota(void)
{
    return topology_read_quota("/proc/self/cgroup", "/sys/fs/cgroup");
}
