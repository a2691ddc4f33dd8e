/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_gid.c - ranges of addresses, and the choice among the GIDs of a port. */
#include "topology/rdma.h"

#include "base/fail.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const unsigned char mapped[12] = {[10] = 0xff, [11] = 0xff}; /* how an IPv4 address begins */

static bool is_ipv4(const unsigned char raw[16])
{
    return memcmp(raw, mapped, sizeof(mapped)) == 0;
}

rondo_result rdma_range_read(const char *text, struct rdma_range *ret_range)
{
    struct rdma_range range = {.bits = 128};
    char address[64], *end = NULL;
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);
    long bits = slash ? strtol(slash + 1, &end, 10) : -1;
    int before = 0;

    if (!*text) {
        *ret_range = (struct rdma_range){.bits = 0};
        return RONDO_OK;
    }
    snprintf(address, sizeof(address), "%.*s", (int)(length < 63 ? length : 63), text);
    if (inet_pton(AF_INET, address, range.raw + 12) == 1) {
        memcpy(range.raw, mapped, sizeof(mapped));
        before = 96;
    } else if (inet_pton(AF_INET6, address, range.raw) != 1) {
        goto refuse;
    }
    if (slash && (end == slash + 1 || *end || bits < 0 || bits > 128 - before))
        goto refuse;
    if (slash)
        range.bits = (int)bits + before;
    *ret_range = range;
    return RONDO_OK;
refuse:
    return rondo_fail(RONDO_ERROR_INVALID,
                      "'%s' is no range of addresses: accepted are 10.1.0.0/16, fd00::/8 and the "
                      "like",
                      text);
}

bool rdma_range_has(const struct rdma_range *range, const unsigned char raw[16])
{
    int whole = range->bits / 8;
    int rest = range->bits % 8;

    return memcmp(range->raw, raw, (size_t)whole) == 0 &&
           (!rest || (range->raw[whole] ^ raw[whole]) >> (8 - rest) == 0);
}

/* Larger is better. */
static int worth(const struct rdma_gid *gid)
{
    bool local = gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;

    return 4 * (gid->type == RDMA_GID_ROCE_V2) + 2 * is_ipv4(gid->raw) + !local;
}

const struct rdma_gid *rdma_choose_gid(const struct rdma_port *port, const struct rdma_range *range)
{
    const struct rdma_gid *best = NULL;

    if (!port->ethernet) /* InfiniBand routes by the subnet manager's numbers, not by addresses */
        return port->gid_count ? &port->gids[0] : NULL;
    for (int i = 0; i < port->gid_count; i++) {
        const struct rdma_gid *gid = &port->gids[i];

        if (rdma_range_has(range, gid->raw) && (!best || worth(gid) > worth(best)))
            best = gid;
    }
    return best;
}

void rdma_gid_text(const struct rdma_gid *gid, char *text, size_t room)
{
    if (is_ipv4(gid->raw))
        inet_ntop(AF_INET, gid->raw + 12, text, (socklen_t)room);
    else
        inet_ntop(AF_INET6, gid->raw, text, (socklen_t)room);
}
