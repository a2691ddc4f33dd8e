/* SPDX-License-Identifier: BSD-3-Clause */
/* door.c - see door.h. */
#include "ddp/elastic/door.h"

#include "base/caller/descriptor.h"
#include "base/caller/times.h"
#include "ddp/fail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH = 512 };

static const char knock_prefix[] = "knock.", invitation_prefix[] = "invitation.";

struct door {
    char path[PATH];
    int members;                          /* the file, with our lock; -1 */
    pid_t owner;                          /* locks are not inherited */
    int knocks;                           /* of this newcomer */
    char guest[DOOR_NAME];                /* who it is; its names are "guest.number" */
    char invited[DOOR_GUESTS][DOOR_NAME]; /* names of the last ones */
    unsigned invitations;
};

static void place(const struct door *door, const char *prefix, const char *name,
                  char ret_path[2 * PATH])
{
    snprintf(ret_path, 2 * PATH, "%s/%s%s", door->path, prefix, name);
}

static rondo_result cannot(const struct door *door, const char *what)
{
    return ddp_fail(RONDO_ERROR_SYSTEM, "The door of the job, %s: cannot %s: %s.", door->path, what,
                    strerror(errno));
}

static bool lock(int file, short type)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};

    return fcntl(file, F_SETLK, &all) == 0;
}

/* Says whether another process holds a lock that is in the way of one of this type. */
static bool is_locked(int file, short type)
{
    struct flock all = {.l_type = type, .l_whence = SEEK_SET};

    return fcntl(file, F_GETLK, &all) == 0 && all.l_type != F_UNLCK;
}

rondo_result door_open(const char *path, struct door **ret_door)
{
    struct door *door;

    *ret_door = NULL;
    if (!path || !*path)
        return RONDO_OK;
    door = calloc(1, sizeof(*door));
    if (!door)
        return ddp_fail(RONDO_ERROR_MEMORY, "Out of memory for the door of the job.");
    door->members = -1;
    door->owner = getpid();
    if (strlen(path) >= sizeof(door->path)) {
        free(door);
        return ddp_fail(RONDO_ERROR_INVALID,
                        "The door of the job has a path of more than %d bytes.", PATH - 1);
    }
    memcpy(door->path, path, strlen(path) + 1);
    *ret_door = door;
    return RONDO_OK;
}

void door_close(struct door *door)
{
    if (!door)
        return;
    if (door->members >= 0)
        close(door->members);
    free(door);
}

static bool is_said(const struct door *door, const char *name)
{
    char path[2 * PATH];

    place(door, name, "", path);
    return access(path, F_OK) == 0;
}

rondo_result door_enter(struct door *door)
{
    char path[2 * PATH];

    if (!door || door->members >= 0)
        return RONDO_OK;
    place(door, "members", "", path);
    door->members = descriptor_above(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (door->members < 0 || !lock(door->members, F_RDLCK))
        return cannot(door, "be a member, as which this rank locks the file 'members'");
    return RONDO_OK;
}

static void unsay(const struct door *door, const char *name)
{
    char path[2 * PATH];

    place(door, name, "", path);
    unlink(path);
}

/* `rondo run` says that a founder is lost, and then looks for members; here it is the other way
 * round, so one of both sees the other. */
rondo_result door_begin(struct door *door)
{
    rondo_result result;

    if (!door)
        return RONDO_OK;
    unsay(door, "over");
    unsay(door, "begun");
    result = door_enter(door);
    if (!result && is_said(door, "lost"))
        return ddp_fail(RONDO_ERROR_PEER,
                        "rondo_elastic_open: a rank has ended before the job began, which takes "
                        "all of them: look at what that one said, and start the job again.");
    return result;
}

/* ---- The members' side ----------------------------------------------------------------------- */

/* A newcomer that has ended is forgotten. */
static bool lives(const struct door *door, const char *name)
{
    char path[2 * PATH];
    int file;
    bool waits;

    place(door, knock_prefix, name, path);
    file = descriptor_above(open(path, O_RDWR | O_CLOEXEC));
    if (file < 0)
        return false;
    waits = is_locked(file, F_WRLCK);
    close(file);
    if (!waits)
        unlink(path);
    return waits;
}

/* Say no to somebody who could not follow an invitation of ours, as all would stand still for it
 * once more. */
static bool refuse(struct door *door, const char *name)
{
    static const struct door_invitation none;
    size_t guest = strcspn(name, ".");

    for (int i = 0; i < DOOR_GUESTS; i++)
        if (strncmp(door->invited[i], name, guest + 1) == 0)
            return door_invite(door, name, &none) == RONDO_OK;
    return false;
}

int door_look(struct door *door, char (*ret_names)[DOOR_NAME], int most)
{
    DIR *folder = door ? descriptor_folder(door->path) : NULL;
    const struct dirent *entry;
    const size_t length = sizeof(knock_prefix) - 1;
    int count = 0;

    if (!folder)
        return 0;
    while (count < most && (entry = readdir(folder))) {
        const char *name = entry->d_name + length;

        if (strncmp(entry->d_name, knock_prefix, length) != 0 || strlen(name) >= DOOR_NAME ||
            !lives(door, name) || refuse(door, name))
            continue;
        memcpy(ret_names[count++], name, strlen(name) + 1);
    }
    closedir(folder);
    return count;
}

/* The invitation gets its name when it is whole, so that nobody reads half of it; and the knock
 * goes away after that, so that a newcomer without an invitation still knocks. */
rondo_result door_invite(struct door *door, const char *name, const struct door_invitation *what)
{
    char path[2 * PATH], unfinished[2 * PATH], knock[2 * PATH];
    rondo_result result = RONDO_OK;
    bool written;
    int file;

    place(door, invitation_prefix, name, path);
    place(door, "unfinished.", name, unfinished);
    place(door, knock_prefix, name, knock);
    file = descriptor_above(open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (file < 0)
        return cannot(door, "write an invitation");
    written = write(file, what, sizeof(*what)) == sizeof(*what);
    if (close(file) || !written)
        result = cannot(door, "write an invitation");
    else if (rename(unfinished, path))
        result = cannot(door, "hand out an invitation");
    unlink(result ? unfinished : knock);
    if (!result)
        memcpy(door->invited[door->invitations++ % DOOR_GUESTS], name, strlen(name) + 1);
    return result;
}

static void say(struct door *door, const char *name)
{
    char path[2 * PATH];
    int file;

    if (!door || door->owner != getpid()) /* a child of fork() is no member */
        return;
    place(door, name, "", path);
    file = descriptor_above(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (file >= 0)
        close(file);
}

void door_say_begun(struct door *door)
{
    say(door, "begun");
}

void door_say_over(struct door *door)
{
    say(door, "over");
}

/* ---- The newcomer's side --------------------------------------------------------------------- */

static bool has_members(const struct door *door)
{
    char path[2 * PATH];
    int file;
    bool has;

    place(door, "members", "", path);
    file = descriptor_above(open(path, O_RDWR | O_CLOEXEC));
    has = file >= 0 && is_locked(file, F_WRLCK);
    if (file >= 0)
        close(file);
    return has;
}

static bool take_invitation(const struct door *door, const char *name,
                            struct door_invitation *ret_invitation)
{
    char path[2 * PATH];
    int file;
    bool taken;

    place(door, invitation_prefix, name, path);
    file = descriptor_above(open(path, O_RDONLY | O_CLOEXEC));
    if (file < 0)
        return false;
    taken = read(file, ret_invitation, sizeof(*ret_invitation)) == sizeof(*ret_invitation);
    close(file);
    unlink(path);
    return taken;
}

static rondo_result wait_at(const struct door *door, const char *name,
                            struct door_invitation *ret_invitation)
{
    int looks = 0; /* since a member was seen */

    while (!take_invitation(door, name, ret_invitation)) {
        bool alone = !has_members(door);

        /* A member says so as it leaves; the others, if there are any, may go on. */
        if (alone && is_said(door, "over"))
            return ddp_fail(RONDO_ERROR_ABORTED, "The job of this newcomer is over: it ended while "
                                                 "the newcomer waited to be let in.");
        looks = alone ? looks + 1 : 0;
        if (looks * DOZE_NAME > PATIENCE_ALONE)
            return ddp_fail(RONDO_ERROR_PEER,
                            "No rank of the job is left which could let this newcomer in: nobody "
                            "holds the lock on %s/members.",
                            door->path);
        doze_for(DOZE_NAME);
    }
    return RONDO_OK;
}

rondo_result door_knock(struct door *door, bool again, struct door_invitation *ret_invitation)
{
    char path[2 * PATH], unlocked[2 * PATH], name[DOOR_NAME];
    struct timespec now;
    rondo_result result;
    int file;

    clock_gettime(CLOCK_REALTIME, &now);
    if (!again)
        snprintf(door->guest, sizeof(door->guest), "%d-%lx", (int)getpid(),
                 (unsigned long)now.tv_nsec);
    snprintf(name, sizeof(name), "%.20s.%d", door->guest, door->knocks++ % 1000);
    place(door, knock_prefix, name, path);
    place(door, "unlocked.", name, unlocked);
    file = descriptor_above(open(unlocked, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    /* A file of this name without a lock would be that of a newcomer which has died. */
    if (file < 0 || !lock(file, F_WRLCK) || rename(unlocked, path))
        result = cannot(door, "knock");
    else
        result = wait_at(door, name, ret_invitation);
    if (file >= 0)
        close(file);
    unlink(unlocked);
    unlink(path);
    return result;
}
