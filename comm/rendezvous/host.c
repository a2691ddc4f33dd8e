/* SPDX-License-Identifier: BSD-3-Clause */
/* host.c - boot id, namespaces of process numbers and users, and user make a node; affinity makes
 * its cores. */
#include "comm/rendezvous/host.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/setting.h"

#include <linux/capability.h>
#include <sched.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool read_boot(char ret_boot[40])
{
    FILE *file = descriptor_stream("/proc/sys/kernel/random/boot_id", "r");
    bool read;

    memset(ret_boot, 0, 40);
    if (!file)
        return false;
    read = fgets(ret_boot, 40, file) != NULL;
    fclose(file);
    return read;
}

uint64_t host_machine(void)
{
    char boot[40];
    uint64_t hash[2] = {0}; /* libsodium makes no shorter ones */

    if (read_boot(boot))
        crypto_generichash((unsigned char *)hash, sizeof(hash), (unsigned char *)boot, sizeof(boot),
                           NULL, 0);
    return hash[0];
}

/* The kernel protects programs that their user cannot read or that have capabilities, and whoever
 * asks for it by prctl(), from all but those with the right to trace everybody. */
static bool is_hidden(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct rights[2] = {{0}};

    return prctl(PR_GET_DUMPABLE) != 1 && !syscall(SYS_capget, &header, rights) &&
           !(rights[0].effective & CAP_TO_MASK(CAP_SYS_PTRACE));
}

/* 0: the first one, or there are none. */
static uint64_t user_namespace(void)
{
    const uint64_t first = 0xEFFFFFFDu; /* PROC_USER_INIT_INO of the kernel */
    struct stat status;

    if (stat("/proc/self/ns/user", &status))
        return 0;
    return status.st_ino == first ? 0 : status.st_ino;
}

bool host_may_be_hidden(void)
{
    return is_hidden() || user_namespace();
}

rondo_result host_identity(int apart, unsigned char ret_identity[16])
{
    struct {
        char boot[40];
        uint64_t namespace_device, namespace_inode;
        uint64_t user, user_namespace;
        int64_t apart, hidden;
        char text[64];
    } facts;
    struct stat status;

    memset(&facts, 0, sizeof(facts));
    if (!read_boot(facts.boot) || stat("/proc/self/ns/pid", &status))
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot tell which host this is (/proc)");
    facts.namespace_device = status.st_dev;
    facts.namespace_inode = status.st_ino;
    facts.user = geteuid();
    facts.user_namespace = user_namespace();
    facts.apart = apart;
    facts.hidden = is_hidden() ? getpid() : 0;
    snprintf(facts.text, sizeof(facts.text), "%s", setting_read_word(SETTING_HOST_ID));
    crypto_generichash(ret_identity, 16, (const unsigned char *)&facts, sizeof(facts), NULL, 0);
    return RONDO_OK;
}

void host_cpus(uint64_t ret_cpus[16])
{
    cpu_set_t sets[8]; /* of 8192 CPUs, the most for which Linux is built */

    memset(ret_cpus, 0, 16 * sizeof(*ret_cpus));
    if (sched_getaffinity(0, sizeof(sets), sets))
        return;
    for (int cpu = 0; cpu < 16 * 64 && cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, sets))
            ret_cpus[cpu / 64] |= (uint64_t)1 << cpu % 64;
}
