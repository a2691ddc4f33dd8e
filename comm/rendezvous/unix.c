/* SPDX-License-Identifier: BSD-3-Clause */
/* unix.c - the two places of a name (see rendezvous/unix.h). */
#include "comm/rendezvous/unix.h"

#include "comm/rendezvous/socket.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct place {
    struct sockaddr_un where;
    socklen_t length;
};

static void place_abstract(const char *address, struct place *ret_place)
{
    ret_place->length = socket_abstract(address + 5, &ret_place->where);
}

/* A folder that only this user enters. `make` it if need be. */
static bool is_private(const char *folder, bool make)
{
    struct stat status;

    if (make && mkdir(folder, 0700) && errno != EEXIST)
        return false;
    return !lstat(folder, &status) && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
           !(status.st_mode & 077);
}

/* Number 0 or 1; false: there is no such folder. */
static bool place_private(const char *address, int number, bool make, struct place *ret_place)
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char folder[sizeof(ret_place->where.sun_path)], name[33];
    unsigned char hash[16];
    int length;

    if (number == 0 && (!runtime || *runtime != '/'))
        return false;
    if (number == 0)
        length = snprintf(folder, sizeof(folder), "%s/rondo", runtime);
    else
        length = snprintf(folder, sizeof(folder), "/tmp/rondo-%u", (unsigned)geteuid());
    if (length + 34 > (int)sizeof(folder) || !is_private(folder, make))
        return false;
    crypto_generichash(hash, sizeof(hash), (const unsigned char *)address, strlen(address), NULL,
                       0);
    sodium_bin2hex(name, sizeof(name), hash, sizeof(hash));
    *ret_place = (struct place){.where.sun_family = AF_UNIX, .length = sizeof(ret_place->where)};
    memcpy(ret_place->where.sun_path, folder, (size_t)length);
    ret_place->where.sun_path[length] = '/';
    memcpy(ret_place->where.sun_path + length + 1, name, sizeof(name));
    return true;
}

static int connect_at(const struct place *place, double deadline)
{
    return socket_connect_at((const struct sockaddr *)&place->where, place->length, deadline);
}

static int listen_at(const struct place *place)
{
    return socket_listen_at((const struct sockaddr *)&place->where, place->length, SOCK_STREAM);
}

/* Listen where only our user can. A socket that a killed process left makes room; nobody else can
 * have put it there. */
static int listen_privately(const char *address)
{
    struct place place;
    int fd = -1, other;

    for (int number = 0; number < 2 && fd < 0; number++) {
        if (!place_private(address, number, true, &place))
            continue;
        fd = listen_at(&place);
        if (fd >= 0 || errno != EADDRINUSE)
            continue;
        other = connect_at(&place, clock_seconds() + PATIENCE_UNIX);
        if (other >= 0) {
            close(other);
            errno = EADDRINUSE;
            return -1;
        }
        unlink(place.where.sun_path);
        fd = listen_at(&place);
    }
    if (fd >= 0)
        log_warn("the name of the meeting point %s is held by somebody else: ranks meet at %s",
                 address, place.where.sun_path);
    return fd;
}

int unix_listen(const char *address, bool patient, uid_t *ret_uid)
{
    struct place place;
    bool foreign = false, ours = false;
    int fd, other, number;

    place_abstract(address, &place);
    fd = listen_at(&place);
    if (fd >= 0 || errno != EADDRINUSE)
        return fd;
    other = connect_at(&place, clock_seconds() + PATIENCE_UNIX);
    if (other >= 0) {
        ours = socket_same_user(other, ret_uid, NULL);
        foreign = !ours;
        close(other);
    }
    if (ours || (!foreign && !patient)) {
        errno = EADDRINUSE;
        return -1;
    }
    fd = listen_privately(address);
    number = errno == EADDRINUSE || !foreign ? EADDRINUSE : EACCES;
    errno = fd < 0 ? number : 0;
    return fd;
}

rondo_result unix_connect(const char *address, double deadline, int *ret_fd)
{
    struct place place;
    uid_t uid = geteuid(), foreign = uid;
    int fd, number;

    place_abstract(address, &place);
    fd = connect_at(&place, deadline);
    number = errno;
    for (int i = 0; i <= 2; i++) {
        if (fd >= 0 && socket_same_user(fd, &uid, NULL))
            break;
        if (fd >= 0) {
            foreign = uid;
            close(fd);
        }
        fd = i < 2 && place_private(address, i, false, &place) ? connect_at(&place, deadline) : -1;
    }
    *ret_fd = fd;
    if (fd < 0 && foreign != geteuid())
        return rondo_fail(RONDO_ERROR_AUTH,
                          "the meeting point %s belongs to user %u, not to us (user %u)", address,
                          (unsigned)foreign, (unsigned)geteuid());
    errno = number;
    return RONDO_OK;
}
