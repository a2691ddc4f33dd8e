/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c - what the kernel says of the process of a record; it is asked in files of /proc, which
 * never block. */
#include "comm/recorder/folder.h"
#include "comm/recorder/read.h"

#include "base/caller/descriptor.h"
#include "base/process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Reads a file of a thread, to its first newline; false: it may not be read. */
static bool read_line(int pid, int tid, const char *name, char *text, size_t room)
{
    char path[96];
    ssize_t length;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
    file = descriptor_above(open(path, O_RDONLY | O_CLOEXEC));
    if (file < 0)
        return false;
    length = read(file, text, room - 1);
    close(file);
    text[length > 0 ? length : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return length > 0;
}

/* True if the first argument of the system call is a file. */
static bool has_file(long number)
{
    static const long calls[] = {
        SYS_read,    SYS_write,     SYS_pread64, SYS_pwrite64, SYS_readv,  SYS_writev,
        SYS_fsync,   SYS_fdatasync, SYS_flock,   SYS_recvfrom, SYS_sendto, SYS_recvmsg,
        SYS_sendmsg, SYS_accept,    SYS_accept4, SYS_connect,  SYS_ioctl,  SYS_fcntl};

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i] == number)
            return true;
    return false;
}

static void look_inside(int pid, int tid, struct sighting_process *process)
{
    char text[256], path[96];
    unsigned long argument;
    long number;

    if (read_line(pid, tid, "wchan", text, sizeof(text)) && strcmp(text, "0") != 0)
        snprintf(process->inside, sizeof(process->inside), "%.31s", text);
    if (!read_line(pid, tid, "syscall", text, sizeof(text)) ||
        sscanf(text, "%ld 0x%lx", &number, &argument) != 2 || number < 0)
        return;
    process->system_call = (int32_t)number;
    if (!has_file(number) || argument > INT_MAX)
        return;
    snprintf(path, sizeof(path), "/proc/%d/fd/%lu", pid, argument);
    if (readlink(path, process->file, sizeof(process->file) - 1) < 0)
        process->file[0] = '\0';
}

uint64_t sighting_ticks(int pid)
{
    unsigned long user = 0, system = 0;
    char text[512];
    const char *at;

    if (!read_line(pid, pid, "../../stat", text, sizeof(text)))
        return 0;
    at = strrchr(text, ')');
    if (!at ||
        sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return 0;
    return user + system;
}

void sighting_look(int folder, const char *name, const struct recorder_identity *identity,
                   struct sighting_process *ret_process)
{
    struct sighting_process *process = ret_process;
    char text[512];
    const char *at;
    int tid = identity->tid;

    *process = (struct sighting_process){.life = SIGHTING_ENDED, .state = '?', .system_call = -1};
    if (folder_has_ended(folder, name, identity))
        return;
    process->life = SIGHTING_HIDDEN;
    if (identity->namespace_id != process_namespace())
        return;
    process->life = SIGHTING_ALIVE;
    process_started(identity->pid, &process->state);
    /* The thread that opened the communicator may have ended. */
    if (!read_line(identity->pid, tid, "stat", text, sizeof(text))) {
        tid = identity->pid;
        if (!read_line(identity->pid, tid, "stat", text, sizeof(text)))
            return;
    }
    at = strrchr(text, ')');
    if (at && at[1] == ' ' && at[2] && process->state != 'T' && process->state != 't')
        process->state = at[2];
    look_inside(identity->pid, tid, process);
}
