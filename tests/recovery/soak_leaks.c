/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak_leaks.c - what a rank still has after it has closed all communicators, and which files
 * processes leave: descriptors, threads, mappings of memory that ranks share, records.
 *
 * What peers may touch stays until they have closed the communicator or ended, and is given back
 * when the next one is opened; so ranks open one alone before they count, and while they wait.
 */
#include "soak.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/rondo-soak-XXXXXX";

static int entries(const char *path)
{
    DIR *entries = opendir(path);
    int count = 0;

    while (entries && readdir(entries))
        count++;
    if (entries)
        closedir(entries);
    return count;
}

static int mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "re");
    char line[512];
    int count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, "rondo-shown") || strstr(line, "rondo-heap");
    if (file)
        fclose(file);
    return count;
}

struct holdings soak_holdings(void)
{
    rondo_unique_id id;
    rondo_comm *alone;

    if (!rondo_unique_id_create(&id) && !rondo_comm_open_id(&id, 1, 0, NULL, &alone))
        rondo_comm_close(alone);
    return (struct holdings){
        .fds = entries("/proc/self/fd"), .threads = entries("/proc/self/task"), .maps = mappings()};
}

bool soak_holds_more(const struct holdings *before, double seconds, char *text, size_t size)
{
    double until = soak_now() + seconds;
    struct holdings now;

    for (;;) {
        now = soak_holdings();
        if (now.fds <= before->fds && now.threads <= before->threads && now.maps <= before->maps)
            return false;
        if (soak_now() > until)
            break;
        usleep(10000);
    }
    snprintf(text, size,
             "leaks: descriptors %d, then %d; threads %d, then %d; mappings %d, then %d",
             before->fds, now.fds, before->threads, now.threads, before->maps, now.maps);
    return true;
}

/* ---- Files ----------------------------------------------------------------------------------- */

bool soak_files_begin(void)
{
    return mkdtemp(folder) && !setenv("RONDO_RECORDER_DIR", folder, 1);
}

void soak_files_end(void)
{
    rmdir(folder);
}

/* The rank whose process wrote the record, if it has closed all of its communicators; -1. */
static int owner_of(const struct run *run, const pid_t *pids, const char *name)
{
    long pid = strtol(name, NULL, 10);

    for (int rank = 0; rank < run->size; rank++)
        if (pids[rank] == pid && run->said[rank].done && !run->said[rank].result &&
            !run->fates[rank].closes_late)
            return rank;
    return -1;
}

/* Records of those that were killed stay, for `rondo ps`. */
bool soak_files_are_gone(const struct run *run, const pid_t *pids, uint64_t seed)
{
    DIR *entries = opendir(folder);
    struct dirent *entry;
    bool gone = true;

    while (entries && (entry = readdir(entries))) {
        int rank = owner_of(run, pids, entry->d_name);

        if (rank >= 0) {
            printf("# seed %llu: rank %d leaves the file %s\n", (unsigned long long)seed, rank,
                   entry->d_name);
            gone = false;
        }
        if (*entry->d_name != '.')
            unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries)
        closedir(entries);
    return gone;
}
