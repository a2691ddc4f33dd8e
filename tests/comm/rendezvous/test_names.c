/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_names.c - names with several addresses, and addresses that mean something on one link only.
 *
 * This program answers for the name "two.test" itself: 127.0.0.1, then 127.0.0.2; and for
 * "late.test", which has no address at first, in each of the ways in which a resolver says so.
 */
#include "tests/comm/rendezvous/party.h"
#include "tests/patience.h"

#include "comm/rendezvous/socket.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef int resolve(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static int looked_up; /* times that "late.test" was not known */

/* Looks up in place of the C library's own. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    resolve *real;
    int error;

    *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
    if (name && !strcmp(name, "late.test")) {
        static const int unknown[] = {EAI_NONAME, -5 /* EAI_NODATA */, EAI_AGAIN, EAI_FAIL};

        if (looked_up < (int)(sizeof(unknown) / sizeof(unknown[0])))
            return unknown[looked_up++];
        return real("127.0.0.1", service, hints, found);
    }
    if (!name || strcmp(name, "two.test") != 0)
        return real(name, service, hints, found);
    if (hints->ai_flags & AI_NUMERICHOST)
        return EAI_NONAME;
    error = real("127.0.0.1", service, hints, found);
    return error ? error : real("127.0.0.2", service, hints, &(*found)->ai_next);
}

/* Two listeners at a port that was free, at both addresses of the name; `address` is the name with
 * the port. */
static void listen_twice(char address[BOOTSTRAP_ADDRESS_MAX], int ret_listeners[2])
{
    char own[BOOTSTRAP_ADDRESS_MAX];
    int port;

    cr_assert_eq(socket_listen("127.0.0.1:0", false, &ret_listeners[0], &port), RONDO_OK);
    snprintf(own, sizeof(own), "127.0.0.2:%d", port);
    cr_assert_eq(socket_listen(own, false, &ret_listeners[1], NULL), RONDO_OK);
    snprintf(address, BOOTSTRAP_ADDRESS_MAX, "two.test:%d", port);
}

/* Make a listener one that answers nothing: its queue is full. */
static void fill_queue(int listener)
{
    struct sockaddr_storage where;
    socklen_t length = sizeof(where);

    cr_assert_eq(listen(listener, 0), 0);
    cr_assert_eq(getsockname(listener, (struct sockaddr *)&where, &length), 0);
    while (socket_connect_at((struct sockaddr *)&where, length,
                             clock_seconds() + world_patience(0.2)) >= 0)
        ;
}

/* Waiting for the first address for as long as there is time would take the whole minute. */
Test(names, an_address_that_does_not_answer_takes_a_moment_of_the_time)
{
    char address[BOOTSTRAP_ADDRESS_MAX];
    double began;
    int listeners[2], fd;

    listen_twice(address, listeners);
    fill_queue(listeners[0]);
    began = clock_seconds();
    cr_assert_eq(socket_connect(address, 0, began + 60, &fd, NULL), RONDO_OK);
    cr_expect_geq(fd, 0);
    cr_expect_lt(clock_seconds() - began, 30);
    fd = socket_accept(listeners[1]);
    cr_expect_geq(fd, 0);
}

/* The first address belongs to somebody else, who listens there and hangs up. */
Test(names, ranks_go_on_to_the_address_at_which_their_meeting_point_is)
{
    char address[BOOTSTRAP_ADDRESS_MAX];
    struct party_rank *ranks = party_at(true, 2, 60);
    int listeners[2], fd = -1;

    listen_twice(address, listeners);
    close(listeners[1]);
    snprintf(ranks[0].place.address, sizeof(ranks[0].place.address), "127.0.0.2%s",
             strrchr(address, ':'));
    strcpy(ranks[1].place.address, address);
    party_start(ranks, 2);
    poll(&(struct pollfd){.fd = listeners[0], .events = POLLIN}, 1, 60000);
    fd = socket_accept(listeners[0]);
    cr_expect_geq(fd, 0);
    close(fd);
    party_join(ranks, 2);
    cr_expect(ranks[0].right && ranks[1].right, "'%s' and '%s'", ranks[0].sentence,
              ranks[1].sentence);
    party_free(ranks);
}

/* The name of a container is known when it runs, and ranks elsewhere may be earlier. */
Test(names, ranks_meet_at_a_host_that_is_not_known_yet)
{
    struct party_rank *ranks = party_at(true, 2, 60);

    snprintf(ranks[1].place.address, sizeof(ranks[1].place.address), "late.test%s",
             strrchr(ranks[0].place.address, ':'));
    cr_expect_eq(party_run(ranks, 2), 2, "'%s' and '%s'", ranks[0].sentence, ranks[1].sentence);
    cr_expect_eq(looked_up, 4);
    party_free(ranks);
}

/* An address of this host on one of its links, with brackets; false: there is none. */
static bool find_link_local(char ret_address[BOOTSTRAP_ADDRESS_MAX])
{
    char host[80];
    struct ifaddrs *list = NULL;
    bool found = false;

    if (getifaddrs(&list))
        return false;
    for (struct ifaddrs *at = list; at && !found; at = at->ifa_next) {
        const struct sockaddr_in6 *six = (const void *)at->ifa_addr;

        found =
            six && six->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&six->sin6_addr) &&
            !getnameinfo(at->ifa_addr, sizeof(*six), host, sizeof(host), NULL, 0, NI_NUMERICHOST);
    }
    freeifaddrs(list);
    if (found)
        snprintf(ret_address, BOOTSTRAP_ADDRESS_MAX, "[%s]", host);
    return found;
}

Test(names, ranks_meet_at_an_address_on_a_link)
{
    enum { SIZE = 40 }; /* so many that some wait at others */
    char address[BOOTSTRAP_ADDRESS_MAX], place[BOOTSTRAP_ADDRESS_MAX + 8];
    struct party_rank *ranks;
    int listener, port;

    if (!find_link_local(address))
        cr_skip_test("this machine has no link-local address");
    snprintf(place, sizeof(place), "%s:0", address);
    cr_assert_eq(socket_listen(place, false, &listener, &port), RONDO_OK, "%s", fail_sentence());
    close(listener);
    ranks = party_at(true, SIZE, 60);
    for (int i = 0; i < SIZE; i++)
        snprintf(ranks[i].place.address, sizeof(ranks[i].place.address), "%.200s:%d", address,
                 port);
    cr_expect_eq(party_run(ranks, SIZE), SIZE, "'%s'", ranks[1].sentence);
    party_free(ranks);
}

/* Others have their own name for the interface. */
Test(names, an_address_on_a_link_is_told_without_its_interface_and_gets_that_of_the_listener)
{
    char own[BOOTSTRAP_ADDRESS_MAX], told[BOOTSTRAP_ADDRESS_MAX], place[BOOTSTRAP_ADDRESS_MAX + 8];
    int listener, port, fd;

    if (!find_link_local(own))
        cr_skip_test("this machine has no link-local address");
    snprintf(place, sizeof(place), "%s:0", own);
    cr_assert_eq(socket_listen(place, false, &listener, &port), RONDO_OK, "%s", fail_sentence());
    snprintf(place, sizeof(place), "%s:%d", own, port);
    cr_assert_eq(socket_connect(place, 0, clock_seconds() + 20, &fd, NULL), RONDO_OK);
    cr_assert_geq(fd, 0);
    strcpy(told, own);
    socket_drop_scope(told);
    cr_expect_null(strchr(told, '%'));
    cr_expect_eq(told[strlen(told) - 1], ']');
    socket_add_scope(fd, told);
    cr_expect_str_eq(told, own);
    strcpy(told, "[fd00::1]:17");
    socket_drop_scope(told);
    socket_add_scope(fd, told);
    cr_expect_str_eq(told, "[fd00::1]:17");
}
