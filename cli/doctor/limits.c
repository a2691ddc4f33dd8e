/* SPDX-License-Identifier: BSD-3-Clause */
/* limits.c - limits of this process and pages of this machine that Rondo's memory meets. */
#include "cli/common/lines.h"
#include "cli/doctor/report.h"

#include "base/setting.h"
#include "base/fail.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

static const double GIB = 1024.0 * 1024 * 1024;
static const double MIB = 1024.0 * 1024;

enum { HUGE_BYTES = 2 << 20 };

static void check_memlock(struct doctor_report *report)
{
    struct rlimit limit;

    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        doctor_say(report, DOCTOR_OK, "locked memory", NULL, "no limit");
    else
        doctor_say(report, DOCTOR_OK, "locked memory", NULL,
                   "at most %.0f MiB; only RDMA locks memory", (double)limit.rlim_cur / MIB);
}

static void check_files(struct doctor_report *report)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= 1024)
        doctor_say(report, DOCTOR_OK, "open files", NULL, "at most %llu",
                   (unsigned long long)limit.rlim_cur);
    else
        doctor_say(report, DOCTOR_NOTE, "open files",
                   "`ulimit -n 1024` or more: each rank of this machine costs a few",
                   "at most %llu", (unsigned long long)limit.rlim_cur);
}

/* Tries it: a heap is made for the first block. */
static void check_address_space(struct doctor_report *report)
{
    const char *remedy = "`ulimit -v unlimited`";
    struct rlimit limit;
    void *block = NULL;

    getrlimit(RLIMIT_AS, &limit);
    if (rondo_mem_alloc(1, &block))
        doctor_say(report, DOCTOR_FAIL, "address space",
                   "what it says; of address space: `ulimit -v unlimited`", "%s",
                   rondo_last_error(NULL));
    else if (limit.rlim_cur != RLIM_INFINITY)
        doctor_say(report, DOCTOR_NOTE, "address space", remedy,
                   "limited to %.1f GiB by `ulimit -v`: the shared heap of a rank takes a quarter "
                   "of it if RONDO_HEAP_BYTES is not set, and what peers use of theirs comes on "
                   "top",
                   (double)limit.rlim_cur / GIB);
    else
        doctor_say(report, DOCTOR_OK, "address space", NULL, "no limit");
    rondo_mem_free(block);
}

/* True if a block that asks for a huge page as rondo_mem_alloc() does gets one. */
static bool gets_huge_page(void)
{
    int fd = memfd_create("rondo-doctor", MFD_CLOEXEC);
    char *memory = MAP_FAILED;
    char *block, kib[64];
    bool huge = false;

    if (fd >= 0 && !ftruncate(fd, HUGE_BYTES))
        memory = mmap(NULL, 2 * HUGE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED) {
        block = memory + -(uintptr_t)memory % HUGE_BYTES;
        if (mmap(block, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) ==
            block) {
            madvise(block, HUGE_BYTES, MADV_HUGEPAGE);
            block[0] = 1;
            /* KiB of shared memory that this process has in huge pages */
            huge = line_after("/proc/self/smaps_rollup", "ShmemPmdMapped:", kib, sizeof(kib)) &&
                   atol(kib) > 0;
        }
        munmap(memory, 2 * HUGE_BYTES);
    }
    if (fd >= 0)
        close(fd);
    return huge;
}

static void check_huge_pages(struct doctor_report *report)
{
    char line[128], *policy;

    line_after("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "", line, sizeof(line));
    policy = strchr(line, '['); /* the one that holds is in brackets */
    if (!policy) {
        doctor_say(report, DOCTOR_NOTE, "huge pages", "nothing to do: this kernel has none",
                   "not available for shared memory");
        return;
    }
    policy++;
    policy[strcspn(policy, "]")] = 0;
    if (!strcmp(policy, "never") || !strcmp(policy, "deny"))
        doctor_say(report, DOCTOR_NOTE, "huge pages",
                   "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled",
                   "shared memory comes in small pages only (%s)", policy);
    else if (gets_huge_page())
        doctor_say(report, DOCTOR_OK, "huge pages", NULL,
                   "in use for blocks of 2 MiB and more from rondo_mem_alloc() (%s)", policy);
    else
        doctor_say(report, DOCTOR_NOTE, "huge pages",
                   "free memory may be in pieces: as root, echo 1 > /proc/sys/vm/compact_memory",
                   "shared memory may have them (%s), but none was to be had", policy);
}

static void check_dev_shm(struct doctor_report *report)
{
    struct statvfs stat;

    if (statvfs("/dev/shm", &stat))
        doctor_say(report, DOCTOR_OK, "/dev/shm", NULL,
                   "not there; only the records of rondo ps would be in it");
    else
        doctor_say(report, DOCTOR_OK, "/dev/shm", NULL,
                   "%.0f MiB; only the records of rondo ps are in it",
                   (double)stat.f_blocks * (double)stat.f_frsize / MIB);
}

void doctor_check_limits(struct doctor_report *report)
{
    check_address_space(report);
    check_files(report);
    check_memlock(report);
    check_huge_pages(report);
    check_dev_shm(report);
}
