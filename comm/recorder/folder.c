/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * folder.c - see folder.h.
 *
 * A file is named PID.TIME.NUMBER.rec by its writer, as processes of several namespaces, who may
 * have the same number, share the folder. Who finds that its process has ended appends .ended: from
 * then on it is kept for an hour, for somebody to read.
 */
#include "comm/recorder/folder.h"

#include "base/caller/descriptor.h"
#include "base/caller/times.h"
#include "base/fail.h"
#include "base/process.h"
#include "base/setting.h"
#include "comm/recorder/page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char suffix[] = ".rec", ended[] = ".rec.ended";

/* ---- Processes ------------------------------------------------------------------------------- */

uint64_t process_namespace(void)
{
    struct stat status;

    return stat("/proc/self/ns/pid", &status) ? 0 : status.st_ino;
}

/* True while a process has the file mapped for writing, whatever its namespace: the kernel grants
 * no lease for reading then. Where a file system has no leases, a writer is assumed. Whoever opens
 * the file for writing while this lease lasts would end us by SIGIO: SIGURG is ignored. */
static bool has_writer(int folder, const char *name)
{
    int file =
        descriptor_above(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    bool written = file < 0 ? errno != ENOENT
                            : fcntl(file, F_SETSIG, SIGURG) || fcntl(file, F_SETLEASE, F_RDLCK);

    if (file >= 0)
        close(file); /* with it the lease ends */
    return written;
}

bool folder_has_ended(int folder, const char *name, const struct recorder_identity *identity)
{
    if (identity->started && identity->namespace_id == process_namespace())
        return process_started(identity->pid, NULL) != identity->started;
    return !has_writer(folder, name);
}

/* ---- The folder ------------------------------------------------------------------------------ */

static int open_at(const char *path, bool make)
{
    struct stat status;
    int folder;

    if (make && mkdir(path, 0700) && errno != EEXIST) {
        rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot make the folder %s for records of calls",
                         path);
        return -1;
    }
    folder = descriptor_above(open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (folder < 0) {
        rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot open the folder %s of records of calls", path);
        return -1;
    }
    if (!fstat(folder, &status) && status.st_uid == geteuid() && !(status.st_mode & 022))
        return folder;
    close(folder);
    rondo_fail(RONDO_ERROR_SYSTEM,
               "The folder %s of records of calls belongs to somebody else, or others may write "
               "there; RONDO_RECORDER_DIR names another one.",
               path);
    return -1;
}

int folder_open(bool make)
{
    const char *session = getenv("XDG_RUNTIME_DIR");
    char path[PATH_MAX];
    int folder;

    if (setting_is_set(SETTING_RECORDER_DIR))
        return open_at(setting_read_word(SETTING_RECORDER_DIR), make);
    snprintf(path, sizeof(path), "/dev/shm/rondo-%u", (unsigned)geteuid());
    folder = open_at(path, make);
    if (folder >= 0 || !session || *session != '/' || strlen(session) > PATH_MAX - 16)
        return folder;
    snprintf(path, sizeof(path), "%s/rondo", session);
    return open_at(path, make);
}

static bool ends_in(const char *name, const char *end)
{
    size_t length = strlen(name), short_length = strlen(end);

    return length > short_length && strcmp(name + length - short_length, end) == 0;
}

void folder_each(int folder, bool (*see)(void *context, int folder, const char *name),
                 void *context)
{
    int own = descriptor_above(openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *names = own < 0 ? NULL : fdopendir(own);
    struct dirent *entry;
    bool go_on = true;

    if (!names && own >= 0)
        close(own);
    while (names && go_on && (entry = readdir(names)))
        if (ends_in(entry->d_name, suffix) || ends_in(entry->d_name, ended))
            go_on = see(context, folder, entry->d_name);
    if (names)
        closedir(names);
}

size_t folder_read(int folder, const char *name, void *bytes, size_t room)
{
    int file =
        descriptor_above(openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status;
    ssize_t length = 0;

    if (file < 0)
        return 0;
    if (!fstat(file, &status) && S_ISREG(status.st_mode) && status.st_uid == geteuid())
        length = read(file, bytes, room);
    close(file);
    return length < 0 ? 0 : (size_t)length;
}

/* ---- Sweeping -------------------------------------------------------------------------------- */

/* More records of ended processes are not kept, so that opening a communicator stays short. */
enum { ENDED_MAX = 128 };

struct sweep {
    bool all;
    int ended, removed;
};

static bool is_old(int folder, const char *name)
{
    struct stat status;

    return !fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) &&
           time(NULL) - status.st_ctime > RECORD_KEPT;
}

/* Marks a record of a process that has ended, or removes it if that was long ago. */
static bool sweep_one(void *context, int folder, const char *name)
{
    struct recorder_identity identity;
    struct sweep *sweep = context;
    char marked[NAME_MAX + 8];

    if (ends_in(name, ended)) { /* its process was looked for before */
        if (sweep->all || ++sweep->ended > ENDED_MAX || is_old(folder, name))
            sweep->removed += !unlinkat(folder, name, 0);
        return true;
    }
    if (folder_read(folder, name, &identity, sizeof(identity)) != sizeof(identity) ||
        identity.magic != RECORDER_MAGIC) {
        if (is_old(folder, name))
            unlinkat(folder, name, 0);
        return true;
    }
    if (!folder_has_ended(folder, name, &identity))
        return true;
    if (sweep->all) {
        sweep->removed += !unlinkat(folder, name, 0);
    } else {
        snprintf(marked, sizeof(marked), "%s.ended", name);
        renameat(folder, name, folder, marked);
    }
    return true;
}

int folder_sweep(int folder, bool all)
{
    struct sweep sweep = {.all = all};

    folder_each(folder, sweep_one, &sweep);
    return sweep.removed;
}
