/* SPDX-License-Identifier: BSD-3-Clause */
/* test_quota.c - CPU quotas of both versions of cgroups, read from folders that look like them. */
#include "topology/inside.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static char root[64];

static void begin(void)
{
    strcpy(root, "/tmp/rondo_quota_XXXXXX");
    cr_assert_not_null(mkdtemp(root));
}

static void end(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", root);
    cr_expect_eq(system(command), 0);
}

/* A file below the root, with the folders on its way. */
static void put(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    cr_assert_not_null(file, "%s", path);
    fputs(text, file);
    fclose(file);
}

static struct topology_quota read_quota(void)
{
    char self[128], mount[128];

    snprintf(self, sizeof(self), "%s/self", root);
    snprintf(mount, sizeof(mount), "%s/mount", root);
    return topology_read_quota(self, mount);
}

static int quota(void)
{
    return read_quota().cpus;
}

static uint64_t number_of(const char *name)
{
    struct stat status;
    char path[256];

    snprintf(path, sizeof(path), "%s/%s", root, name);
    cr_assert_eq(stat(path, &status), 0);
    return status.st_ino;
}

TestSuite(quota, .init = begin, .fini = end);

Test(quota, none_means_no_limit)
{
    put("self", "0::/\n");
    put("mount/cpu.max", "max 100000\n");
    cr_expect_eq(quota(), 0);
}

Test(quota, is_rounded_up_to_whole_processors)
{
    put("self", "0::/\n");
    put("mount/cpu.max", "250000 100000\n");
    cr_expect_eq(quota(), 3);
    put("mount/cpu.max", "200000 100000\n");
    cr_expect_eq(quota(), 2);
    put("mount/cpu.max", "1000 100000\n");
    cr_expect_eq(quota(), 1);
}

Test(quota, the_smallest_on_the_way_up_counts)
{
    put("self", "0::/slice/job/step\n");
    put("mount/slice/job/step/cpu.max", "800000 100000\n");
    put("mount/slice/job/cpu.max", "max 100000\n");
    put("mount/slice/cpu.max", "400000 100000\n");
    put("mount/cpu.max", "600000 100000\n");
    cr_expect_eq(quota(), 4);
    cr_expect_eq(read_quota().group, number_of("mount/slice"));
    put("mount/cpu.max", "400000 100000\n");
    cr_expect_eq(read_quota().group, number_of("mount"), "more processes share this one");
}

Test(quota, of_a_container_that_does_not_see_its_own_path_is_found_at_the_mount_point)
{
    put("self", "0::/docker/0123456789abcdef\n");
    put("mount/cpu.max", "150000 100000\n");
    cr_expect_eq(quota(), 2);
}

Test(quota, of_version_one_is_read_from_the_cpu_controller)
{
    put("self", "4:cpuset:/\n3:cpu,cpuacct:/box\n0::/\n");
    put("mount/cpu,cpuacct/box/cpu.cfs_quota_us", "300000\n");
    put("mount/cpu,cpuacct/box/cpu.cfs_period_us", "100000\n");
    put("mount/cpuset/cpu.max", "100000 100000\n");
    cr_expect_eq(quota(), 3);
    put("mount/cpu,cpuacct/box/cpu.cfs_quota_us", "-1\n");
    cr_expect_eq(quota(), 0);
}

Test(quota, nonsense_and_missing_files_mean_no_limit)
{
    cr_expect_eq(quota(), 0);
    put("self", "nonsense\n0:\n0::/\n");
    put("mount/cpu.max", "much of it\n");
    cr_expect_eq(quota(), 0);
    put("mount/cpu.max", "100000 0\n");
    cr_expect_eq(quota(), 0);
}
