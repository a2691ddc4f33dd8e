/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma.c - RDMA: ports and their addresses, the library, device files, locked memory. */
#include "cli/doctor/report.h"

#include "base/fail.h"
#include "base/setting.h"
#include "plan/plan.h"
#include "topology/rdma.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void check_port(struct doctor_report *report, const struct rdma_port *port,
                       const struct rdma_range *range)
{
    static const char *const types[] = {"InfiniBand", "RoCE v1", "RoCE v2"};
    const struct rdma_gid *gid = rdma_choose_gid(port, range);
    char address[64] = "";

    if (gid)
        rdma_gid_text(gid, address, sizeof(address));
    if (!port->active)
        doctor_say(report, DOCTOR_NOTE, "RDMA port",
                   "connect it and bring its interface up, or do without it",
                   "%s port %d is not active", port->device, port->number);
    else if (!port->reliable)
        doctor_say(report, DOCTOR_OK, "RDMA port", NULL,
                   "%s port %d has no reliable connections of InfiniBand or RoCE: it is not used",
                   port->device, port->number);
    else if (!gid)
        doctor_say(report, DOCTOR_NOTE, "RDMA port",
                   port->gid_count ? "correct RONDO_VERBS_ADDRESSES"
                                   : "give its network interface an address",
                   "%s port %d has no address%s", port->device, port->number,
                   port->gid_count ? " in the range" : "");
    else if (gid->type == RDMA_GID_ROCE_V1)
        doctor_say(
            report, DOCTOR_NOTE, "RDMA port", "enable RoCE v2 on the adapter: no router passes v1",
            "%s port %d (%s%s%g Gb/s): only RoCE v1, %s, GID index %d", port->device, port->number,
            port->net, *port->net ? ", " : "", port->gbit, address, gid->index);
    else
        doctor_say(report, DOCTOR_OK, "RDMA port", NULL,
                   "%s port %d (%s%s%g Gb/s): %s, %s, GID index %d of %d", port->device,
                   port->number, port->net, *port->net ? ", " : "", port->gbit, types[gid->type],
                   address, gid->index, port->gid_count);
}

static void check_library(struct doctor_report *report)
{
    void *library = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library)
        doctor_say(report, DOCTOR_OK, "RDMA library", NULL, "libibverbs.so.1 can be loaded");
    else
        doctor_say(report, DOCTOR_NOTE, "RDMA library",
                   "install libibverbs1 and ibverbs-providers (rdma-core)", "%s", dlerror());
    if (library)
        dlclose(library);
}

/* A device can be there without the file by which programs use it, above all in containers. */
static void check_files(struct doctor_report *report)
{
    glob_t files = {0};
    size_t usable = 0;

    glob("/dev/infiniband/uverbs*", 0, NULL, &files);
    for (size_t i = 0; i < files.gl_pathc; i++)
        usable += access(files.gl_pathv[i], R_OK | W_OK) == 0;
    if (usable)
        doctor_say(report, DOCTOR_OK, "RDMA files", NULL, "%zu of %zu /dev/infiniband/uverbs*",
                   usable, files.gl_pathc);
    else
        doctor_say(report, DOCTOR_NOTE, "RDMA files",
                   files.gl_pathc ? "be in the group that may read and write them"
                                  : "load the kernel module ib_uverbs; in a container: pass "
                                    "/dev/infiniband (--device, or a device plug-in)",
                   "no /dev/infiniband/uverbs* that this user may use");
    globfree(&files);
}

/* Checks what is pinned per connected peer: slots in both directions. */
static void check_memory(struct doctor_report *report)
{
    struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};
    size_t slot_bytes = 0;
    long slots = 0;
    double need;

    if (setting_read_size(SETTING_SLOT_BYTES, &slot_bytes) ||
        setting_read_int(SETTING_SLOTS, &slots))
        return; /* settings.c says it */
    need = 2.0 * PLAN_CHANNELS * (double)slots * (double)slot_bytes / (1 << 20);
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur == RLIM_INFINITY)
        doctor_say(report, DOCTOR_OK, "RDMA memory", NULL,
                   "no limit on locked memory; a rank pins %.1f MiB for each peer of another node "
                   "that it talks to",
                   need);
    else
        doctor_say(
            report, DOCTOR_NOTE, "RDMA memory",
            "`ulimit -l unlimited` before the start (limits.conf, LimitMEMLOCK=infinity of "
            "the scheduler's service, --ulimit memlock=-1 of a container)",
            "locked memory is limited to %.1f MiB, and a rank pins %.1f MiB for each peer of "
            "another node that it talks to",
            (double)limit.rlim_cur / (1 << 20), need);
}

void doctor_check_rdma(struct doctor_report *report)
{
    struct rdma_range range = {.bits = 0};
    struct rdma_port *ports = NULL;
    int count = 0;

    if (rdma_range_read(setting_read_word(SETTING_VERBS_ADDRESSES), &range)) {
        doctor_say(report, DOCTOR_FAIL, "RDMA", "correct RONDO_VERBS_ADDRESSES", "%s",
                   fail_sentence());
        return;
    }
    if (rdma_list("/sys/class/infiniband", &ports, &count) || !count) {
        doctor_say(report, DOCTOR_OK, "RDMA", NULL,
                   "no device in /sys/class/infiniband: ranks of other nodes are reached over TCP");
        return;
    }
    for (int i = 0; i < count; i++)
        check_port(report, &ports[i], &range);
    check_library(report);
    check_files(report);
    check_memory(report);
    rdma_list_free(ports, count);
}
