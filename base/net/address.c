/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * address.c - a word of RONDO_INTERFACE is the beginning of an interface's name or a range of
 * addresses, and excludes what it matches if it begins with ^. Chosen is what no word excludes and,
 * if there are words that choose, at least one does.
 */
#include "base/net/address.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"
#include "base/setting.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Bridges of containers and virtual machines have the same address on many hosts. */
static const char *const unwanted = "^docker,^virbr,^lxc";

bool net_address_read(const struct sockaddr *from, struct net_address *ret_address)
{
    *ret_address = (struct net_address){0};
    if (!from)
        return false;
    if (from->sa_family == AF_INET) {
        ret_address->family = 4;
        memcpy(ret_address->bytes, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        return true;
    }
    if (from->sa_family == AF_INET6) {
        const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr;

        if (IN6_IS_ADDR_V4MAPPED(six)) {
            ret_address->family = 4;
            memcpy(ret_address->bytes, &six->s6_addr[12], 4);
            return true;
        }
        ret_address->family = 6;
        memcpy(ret_address->bytes, six, 16);
        return !IN6_IS_ADDR_LINKLOCAL(six); /* means nothing without an interface of the peer's */
    }
    return false;
}

static uint8_t prefix_of(const struct sockaddr *mask)
{
    struct net_address bits;
    int prefix = 0;

    if (!mask || (!net_address_read(mask, &bits) && bits.family != 6))
        return 0;
    for (int i = 0; i < 16; i++)
        prefix += __builtin_popcount(bits.bytes[i]);
    return (uint8_t)prefix;
}

static bool same_network(const struct net_address *a, const struct net_address *b, int prefix)
{
    int whole = prefix / 8;
    int rest = prefix % 8;

    if (a->family != b->family || prefix < 0 || prefix > (a->family == 4 ? 32 : 128))
        return false;
    if (memcmp(a->bytes, b->bytes, (size_t)whole) != 0)
        return false;
    return !rest || !((a->bytes[whole] ^ b->bytes[whole]) >> (8 - rest));
}

bool net_address_is_loopback(const struct net_address *address)
{
    static const unsigned char six[16] = {[15] = 1};

    return address->family == 4 ? address->bytes[0] == 127
                                : memcmp(address->bytes, six, sizeof(six)) == 0;
}

/* "10.1.0.0/16", "fd00::1"; without a length it is the one address. */
static bool in_range(const char *word, const struct net_address *address)
{
    struct net_address range = {0};
    char text[INET6_ADDRSTRLEN];
    const char *slash = strchr(word, '/');
    size_t length = slash ? (size_t)(slash - word) : strlen(word);
    int prefix;

    if (length >= sizeof(text))
        return false;
    memcpy(text, word, length);
    text[length] = '\0';
    if (inet_pton(AF_INET, text, range.bytes) == 1)
        range.family = 4;
    else if (inet_pton(AF_INET6, text, range.bytes) == 1)
        range.family = 6;
    else
        return false;
    prefix = slash ? atoi(slash + 1) : (range.family == 4 ? 32 : 128);
    return same_network(&range, address, prefix);
}

/* True if one of the comma-separated words of RONDO_INTERFACE chooses this interface or address. */
static bool is_chosen(const char *words, const char *name, const struct net_address *address)
{
    bool chosen = false, any = false;

    while (*words) {
        char word[64];
        size_t length = strcspn(words, ",");
        bool excludes = *words == '^';
        bool matches;

        snprintf(word, sizeof(word), "%.*s", (int)length - excludes, words + excludes);
        words += length + (words[length] == ',');
        if (!word[0])
            continue;
        matches = strncmp(name, word, strlen(word)) == 0 || in_range(word, address);
        if (matches && excludes)
            return false;
        any |= !excludes;
        chosen |= matches;
    }
    return chosen || !any;
}

/* Add all addresses of one family that are chosen. */
static void collect(const struct ifaddrs *list, const char *words, int family,
                    struct net_addresses *found)
{
    bool named = *words != '\0';

    for (const struct ifaddrs *at = list; at; at = at->ifa_next) {
        struct net_address address;

        if (!(at->ifa_flags & IFF_UP) || !net_address_read(at->ifa_addr, &address) ||
            address.family != family)
            continue;
        if (!named && (at->ifa_flags & IFF_LOOPBACK))
            continue;
        if (!is_chosen(named ? words : unwanted, at->ifa_name, &address))
            continue;
        address.prefix = prefix_of(at->ifa_netmask);
        if (found->count < NET_ADDRESSES)
            found->at[found->count++] = address;
    }
}

static rondo_result nothing_chosen(const struct ifaddrs *list, const char *words)
{
    char names[512] = "";
    size_t used = 0;

    for (const struct ifaddrs *at = list; at && used < sizeof(names); at = at->ifa_next) {
        struct net_address address;
        char text[64];

        if (!(at->ifa_flags & IFF_UP) || !net_address_read(at->ifa_addr, &address))
            continue;
        net_address_text(&address, 0, text, sizeof(text));
        *strrchr(text, ':') = '\0';
        used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s %s", used ? ", " : "",
                                 at->ifa_name, text);
    }
    return rondo_fail(RONDO_ERROR_INVALID,
                      "RONDO_INTERFACE is \"%s\" and chooses none of the interfaces that are up: "
                      "%s.",
                      words, names);
}

uint64_t net_space(void)
{
    struct stat status;
    FILE *file = descriptor_stream("/proc/sys/kernel/random/boot_id", "r");
    uint64_t hash = 14695981039346656037u;
    char boot[40] = "";

    if (file) {
        if (!fgets(boot, sizeof(boot), file))
            boot[0] = '\0';
        fclose(file);
    }
    for (const char *at = boot; *at; at++)
        hash = (hash ^ (unsigned char)*at) * 1099511628211u;
    if (!stat("/proc/self/ns/net", &status))
        hash = (hash ^ status.st_ino) * 1099511628211u;
    return hash;
}

rondo_result net_addresses_find(struct net_addresses *ret_addresses)
{
    const char *words = setting_read_word(SETTING_INTERFACE);
    struct net_addresses found = {0};
    rondo_result result = RONDO_OK;
    struct ifaddrs *list;

    if (getifaddrs(&list))
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "Cannot list the network interfaces");
    collect(list, words, 4, &found);
    collect(list, words, 6, &found);
    if (!found.count && !*words) {
        collect(list, "lo", 4, &found);
        collect(list, "lo", 6, &found);
    }
    if (!found.count && *words)
        result = nothing_chosen(list, words);
    freeifaddrs(list);
    if (!result)
        *ret_addresses = found;
    return result;
}

void net_addresses_order(const struct net_addresses *own, const struct net_addresses *peer,
                         int ret_order[NET_ADDRESSES])
{
    int count = 0;
    bool near[NET_ADDRESSES] = {false};

    for (unsigned i = 0; i < NET_ADDRESSES && i < peer->count; i++)
        for (unsigned k = 0; k < NET_ADDRESSES && k < own->count; k++)
            near[i] |=
                own->at[k].prefix && same_network(&own->at[k], &peer->at[i], own->at[k].prefix);
    for (int pass = 1; pass >= 0; pass--)
        for (int i = 0; i < NET_ADDRESSES; i++)
            if (near[i] == (pass == 1))
                ret_order[count++] = i;
}

socklen_t net_address_socket(const struct net_address *address, unsigned port,
                             struct sockaddr_storage *ret_where)
{
    memset(ret_where, 0, sizeof(*ret_where));
    if (address->family == 4) {
        struct sockaddr_in *four = (struct sockaddr_in *)ret_where;

        four->sin_family = AF_INET;
        four->sin_port = htons((uint16_t)port);
        memcpy(&four->sin_addr, address->bytes, 4);
        return sizeof(*four);
    } else {
        struct sockaddr_in6 *six = (struct sockaddr_in6 *)ret_where;

        six->sin6_family = AF_INET6;
        six->sin6_port = htons((uint16_t)port);
        memcpy(&six->sin6_addr, address->bytes, 16);
        return sizeof(*six);
    }
}

void net_address_text(const struct net_address *address, unsigned port, char *text, size_t size)
{
    char number[INET6_ADDRSTRLEN] = "?";

    inet_ntop(address->family == 4 ? AF_INET : AF_INET6, address->bytes, number, sizeof(number));
    snprintf(text, size, address->family == 4 ? "%s:%u" : "[%s]:%u", number, port);
}
