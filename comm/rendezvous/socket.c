/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * socket.c - listening and connecting by address.
 *
 * Where does a server bind for "HOST:PORT"? To exactly that address if HOST is numeric or
 * localhost; to all addresses if it is a name, because /etc/hosts of many machines maps their own
 * name to a loopback address, or if the numeric address is not ours (it is translated on the way
 * here), or if the caller knows that other hosts have another name for it. Every connection must
 * prove the secret anyway.
 */
#include "comm/rendezvous/socket.h"

#include "base/caller/descriptor.h"
#include "comm/rendezvous/unix.h"

#include "base/clock.h"
#include "base/fail.h"
#include "base/log.h"

#include <errno.h>
#include <math.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct host_port {
    char host[BOOTSTRAP_ADDRESS_MAX];
    char port[8];
};

bool socket_address_is_unix(const char *address)
{
    return !strncmp(address, "unix:", 5);
}

/* "HOST:PORT" or "[V6]:PORT"; false if it is neither. */
static bool split(const char *address, struct host_port *ret_parts)
{
    const char *colon = strrchr(address, ':');
    const char *host = address;
    size_t length;
    char *end;
    long port;

    if (!colon || colon == address || strlen(colon + 1) > 5 ||
        strlen(address) >= BOOTSTRAP_ADDRESS_MAX)
        return false;
    length = (size_t)(colon - host);
    if (*host == '[') {
        if (colon[-1] != ']' || length < 3)
            return false;
        host++;
        length -= 2;
    } else if (memchr(host, ':', length)) {
        return false; /* V6 without brackets: where does the port begin? */
    }
    port = strtol(colon + 1, &end, 10);
    if (*end || end == colon + 1 || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        port > 65535)
        return false;
    memcpy(ret_parts->host, host, length);
    ret_parts->host[length] = '\0';
    memcpy(ret_parts->port, colon + 1, strlen(colon + 1) + 1);
    return true;
}

rondo_result socket_address_check(const char *address)
{
    struct host_port parts;

    int room =
        socket_address_is_unix(address) ? BOOTSTRAP_SHORT_ADDRESS_MAX : BOOTSTRAP_ADDRESS_MAX;

    if (strlen(address) >= (size_t)room)
        return rondo_fail(RONDO_ERROR_INVALID, "the address '%.40s...' has more than %d characters",
                          address, room - 1);
    if (socket_address_is_unix(address) ? address[5] != '\0' : split(address, &parts))
        return RONDO_OK;
    return rondo_fail(RONDO_ERROR_INVALID,
                      "'%s' is no address of a meeting point: accepted are HOST:PORT, [IPV6]:PORT "
                      "and, on one host, unix:NAME",
                      address);
}

/* ---- Listening ------------------------------------------------------------------------------ */

void socket_fresh_name(const char *what, char ret_address[BOOTSTRAP_ADDRESS_MAX])
{
    unsigned char noise[16];
    char name[2 * sizeof(noise) + 1];

    randombytes_buf(noise, sizeof(noise));
    sodium_bin2hex(name, sizeof(name), noise, sizeof(noise));
    snprintf(ret_address, BOOTSTRAP_ADDRESS_MAX, "unix:rondo-%s-%s", what, name);
}

/* ---- TCP ------------------------------------------------------------------------------------ */

static int listen_tcp(const char *address, bool everywhere)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    struct host_port parts;
    int fd;

    if (!split(address, &parts)) {
        errno = EINVAL;
        return -1;
    }
    if (!strcmp(parts.host, "localhost"))
        snprintf(parts.host, sizeof(parts.host), "127.0.0.1");
    if (everywhere || getaddrinfo(parts.host, parts.port, &hints, &found))
        return socket_listen_everywhere((unsigned)atoi(parts.port));
    fd = socket_listen_at(found->ai_addr, found->ai_addrlen, SOCK_STREAM);
    freeaddrinfo(found);
    if (fd < 0 && errno == EADDRNOTAVAIL) {
        log_info("%s is no address of this host: listening on all of them", parts.host);
        fd = socket_listen_everywhere((unsigned)atoi(parts.port));
    }
    return fd;
}

rondo_result socket_listen(const char *address, bool everywhere, int *ret_fd, int *ret_port)
{
    double until = clock_seconds() + PATIENCE_IN_USE;
    bool patient = false;
    uid_t uid = 0;
    int fd;

    for (;;) {
        fd = socket_address_is_unix(address) ? unix_listen(address, patient, &uid)
                                             : listen_tcp(address, everywhere);
        if (fd >= 0 || errno != EADDRINUSE || patient)
            break;
        patient = clock_seconds() > until;
        doze_for(DOZE_NAME);
    }
    if (fd < 0 && errno == EACCES && uid)
        return rondo_fail(RONDO_ERROR_SYSTEM,
                          "rank 0 cannot open the meeting point %s: user %u holds the name, and "
                          "there is no folder of our own to meet in, neither in XDG_RUNTIME_DIR "
                          "nor /tmp/rondo-%u; choose another address (RONDO_ADDRESS)",
                          address, (unsigned)uid, (unsigned)geteuid());
    if (fd < 0 && errno == EADDRINUSE)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM,
                                "rank 0 cannot open the meeting point %s, another program or job "
                                "has it, choose another address",
                                address);
    if (fd < 0)
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot open the meeting point %s", address);
    if (ret_port)
        *ret_port = socket_port(fd);
    *ret_fd = fd;
    return RONDO_OK;
}

void socket_unlisten(int fd)
{
    struct sockaddr_un where = {.sun_family = AF_UNSPEC};
    socklen_t length = sizeof(where);

    if (!getsockname(fd, (struct sockaddr *)&where, &length) && where.sun_family == AF_UNIX &&
        length > offsetof(struct sockaddr_un, sun_path) && where.sun_path[0])
        unlink(where.sun_path);
    close(fd);
}

int socket_accept(int listener)
{
    struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof(from);
    int fd = descriptor_above(
        accept4(listener, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC));
    uid_t uid = 0;

    if (fd < 0)
        return -1;
    if (from.ss_family == AF_UNIX && !socket_same_user(fd, &uid, NULL)) {
        log_info("user %u knocked at the meeting point and was sent away", (unsigned)uid);
        close(fd);
        errno = EACCES;
        return -1;
    }
    socket_keep(fd);
    return fd;
}

/* ---- Connecting ----------------------------------------------------------------------------- */

/* Try all addresses, from number `first` on and round; -1 and errno. */
static int connect_any(const struct addrinfo *found, unsigned first, double deadline)
{
    unsigned count = 0;
    int fd = -1;

    for (const struct addrinfo *a = found; a; a = a->ai_next)
        count++;
    for (unsigned i = 0; i < count && fd < 0; i++) {
        const struct addrinfo *a = found;
        double now = clock_seconds();
        double until = now + fmin(PATIENCE_ADDRESS, (deadline - now) / (count - i));

        for (unsigned left = (first + i) % count; left > 0; left--)
            a = a->ai_next;
        fd = socket_connect_at(a->ai_addr, a->ai_addrlen, count > 1 ? until : deadline);
    }
    return fd;
}

static rondo_result connect_tcp(const char *address, unsigned attempt, double deadline, int *ret_fd,
                                const char **ret_unknown)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    struct host_port parts;
    int fd, error;

    if (!split(address, &parts))
        return socket_address_check(address);
    error = getaddrinfo(parts.host, parts.port, &hints, &found);
    if (error) {
        errno = error == EAI_SYSTEM ? errno : 0;
        if (ret_unknown && !errno)
            *ret_unknown = gai_strerror(error);
        return RONDO_OK; /* ret_fd stays -1 */
    }
    fd = connect_any(found, attempt, deadline);
    error = errno;
    freeaddrinfo(found);
    if (fd >= 0)
        socket_keep(fd);
    errno = error;
    *ret_fd = fd;
    return RONDO_OK;
}

rondo_result socket_connect(const char *address, unsigned attempt, double deadline, int *ret_fd,
                            const char **ret_unknown)
{
    *ret_fd = -1;
    if (ret_unknown)
        *ret_unknown = NULL;
    if (socket_address_is_unix(address))
        return unix_connect(address, deadline, ret_fd);
    return connect_tcp(address, attempt, deadline, ret_fd, ret_unknown);
}

/* ---- Where a connection ends ---------------------------------------------------------------- */

bool socket_own_place(int fd, char ret_address[BOOTSTRAP_ADDRESS_MAX])
{
    struct sockaddr_storage where;
    socklen_t length = sizeof(where);
    char host[BOOTSTRAP_SHORT_ADDRESS_MAX - 8];

    if (getsockname(fd, (struct sockaddr *)&where, &length))
        return false;
    if (where.ss_family == AF_UNIX) {
        socket_fresh_name("relay", ret_address);
        return true;
    }
    if (getnameinfo((struct sockaddr *)&where, length, host, sizeof(host), NULL, 0, NI_NUMERICHOST))
        return false;
    snprintf(ret_address, BOOTSTRAP_ADDRESS_MAX, where.ss_family == AF_INET6 ? "[%s]:0" : "%s:0",
             host);
    return true;
}

void socket_drop_scope(char *address)
{
    char *scope = strchr(address, '%'), *end = scope ? strchr(scope, ']') : NULL;

    if (*address == '[' && end)
        memmove(scope, end, strlen(end) + 1);
}

void socket_add_scope(int fd, char address[BOOTSTRAP_ADDRESS_MAX])
{
    struct sockaddr_in6 own = {.sin6_family = AF_UNSPEC};
    char interface[IF_NAMESIZE], port[16], *end = strchr(address, ']');
    socklen_t length = sizeof(own);

    if (strncmp(address, "[fe80:", 6) != 0 || !end || strlen(end) >= sizeof(port) ||
        strchr(address, '%') || getsockname(fd, (struct sockaddr *)&own, &length) ||
        own.sin6_family != AF_INET6 || !if_indextoname(own.sin6_scope_id, interface))
        return;
    strcpy(port, end);
    snprintf(end, BOOTSTRAP_ADDRESS_MAX - (size_t)(end - address), "%%%s%s", interface, port);
}
