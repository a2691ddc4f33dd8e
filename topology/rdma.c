/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rdma.c - the files of /sys/class/infiniband as a table.
 *
 * An entry that cannot be read is skipped: in containers the kernel refuses those of interfaces in
 * other network namespaces, and entries come and go with addresses while we read.
 */
#include "topology/rdma.h"

#include "base/caller/number.h"
#include "base/caller/descriptor.h"
#include "base/fail.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GIDS_MAX = 4096, PATH_MAX_HERE = 512 };

/* The first line of a file; false if there is none. */
static bool read_line(const char *folder, const char *name, char *line, size_t room)
{
    char path[PATH_MAX_HERE];
    FILE *file;
    bool got;

    if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return false;
    file = descriptor_stream(path, "r");
    if (!file)
        return false;
    got = fgets(line, (int)room, file) != NULL;
    fclose(file);
    if (got)
        line[strcspn(line, "\n")] = 0;
    return got;
}

static bool exists(const char *folder, const char *name)
{
    char path[PATH_MAX_HERE];

    return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
           access(path, F_OK) == 0;
}

/* ---- One port -------------------------------------------------------------------------------- */

static enum rdma_gid_type read_type(const char *folder, int index, bool ethernet)
{
    char name[64], type[32];

    if (!ethernet)
        return RDMA_GID_INFINIBAND;
    snprintf(name, sizeof(name), "gid_attrs/types/%d", index);
    if (read_line(folder, name, type, sizeof(type)) && strcmp(type, "RoCE v2") == 0)
        return RDMA_GID_ROCE_V2;
    return RDMA_GID_ROCE_V1;
}

static rondo_result add_gid(struct rdma_port *port, const struct rdma_gid *gid)
{
    struct rdma_gid *more =
        realloc(port->gids, (size_t)(port->gid_count + 1) * sizeof(*port->gids));

    if (!more)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the addresses of %s.",
                          port->device);
    port->gids = more;
    port->gids[port->gid_count++] = *gid;
    return RONDO_OK;
}

static rondo_result read_gids(const char *folder, struct rdma_port *port)
{
    static const unsigned char unset[16];
    rondo_result result = RONDO_OK;

    for (int index = 0; index < GIDS_MAX && !result; index++) {
        char name[64], text[64];
        struct rdma_gid gid = {.index = index};

        snprintf(name, sizeof(name), "gids/%d", index);
        if (!read_line(folder, name, text, sizeof(text))) {
            if (!exists(folder, name))
                break; /* the end of the table */
            continue;
        }
        if (inet_pton(AF_INET6, text, gid.raw) != 1 || !memcmp(gid.raw, unset, 16) ||
            (!memcmp(gid.raw + 8, unset, 8) && gid.raw[0] == 0xfe))
            continue;
        gid.type = read_type(folder, index, port->ethernet);
        result = add_gid(port, &gid);
    }
    return result;
}

/* Fills what the folder of the port says, which may find it not to be reliable. */
static rondo_result read_port(const char *folder, struct rdma_port *port)
{
    char line[64] = "";

    port->active = read_line(folder, "state", line, sizeof(line)) && strstr(line, "ACTIVE");
    port->ethernet =
        read_line(folder, "link_layer", line, sizeof(line)) && !strcmp(line, "Ethernet");
    port->reliable &= port->ethernet || !strcmp(line, "InfiniBand");
    if (read_line(folder, "rate", line, sizeof(line)))
        port->gbit = number_read(line, NULL);
    if (!read_line(folder, "gid_attrs/ndevs/0", port->net, sizeof(port->net)))
        port->net[0] = 0;
    return read_gids(folder, port);
}

/* ---- All ports ------------------------------------------------------------------------------- */

struct table {
    struct rdma_port *ports;
    int count;
};

static rondo_result add_port(struct table *table, const char *folder, const char *device,
                             int number)
{
    struct rdma_port *more =
        realloc(table->ports, (size_t)(table->count + 1) * sizeof(*table->ports));
    char ports[PATH_MAX_HERE], line[32];
    struct rdma_port *port;

    if (!more)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the RDMA ports.");
    table->ports = more;
    port = &table->ports[table->count++];
    *port = (struct rdma_port){.number = number, .numa = -1};
    snprintf(port->device, sizeof(port->device), "%s", device);
    snprintf(ports, sizeof(ports), "%.200s/%.60s", folder, device);
    port->soft = !exists(ports, "device");
    if (read_line(ports, "device/numa_node", line, sizeof(line)))
        port->numa = atoi(line);
    port->reliable = read_line(ports, "node_type", line, sizeof(line)) && strstr(line, ": CA");
    snprintf(ports, sizeof(ports), "%.200s/%.60s/ports/%d", folder, device, number);
    return read_port(ports, port);
}

static rondo_result add_device(struct table *table, const char *folder, const char *device)
{
    char path[PATH_MAX_HERE], line[64];
    rondo_result result = RONDO_OK;

    for (int number = 1; number < 256 && !result; number++) {
        snprintf(path, sizeof(path), "%.200s/%.60s/ports/%d", folder, device, number);
        if (!read_line(path, "state", line, sizeof(line)))
            break;
        result = add_port(table, folder, device, number);
    }
    return result;
}

rondo_result rdma_list(const char *folder, struct rdma_port **ret_ports, int *ret_count)
{
    rondo_result result = RONDO_OK;
    struct dirent **names = NULL;
    struct table table = {NULL, 0};
    int devices = scandir(folder, &names, NULL, versionsort);

    for (int i = 0; i < devices; i++) {
        if (names[i]->d_name[0] != '.' && !result)
            result = add_device(&table, folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
    if (result) {
        rdma_list_free(table.ports, table.count);
        return result;
    }
    *ret_ports = table.ports;
    *ret_count = table.count;
    return RONDO_OK;
}

void rdma_list_free(struct rdma_port *ports, int count)
{
    for (int i = 0; i < count; i++)
        free(ports[i].gids);
    free(ports);
}
