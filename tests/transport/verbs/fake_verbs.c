/* SPDX-License-Identifier: BSD-3-Clause */
/* fake_verbs.c - the devices of the fake adapter; see fake_verbs.h. */
#include "tests/transport/verbs/fake_wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { DEVICES = 8 };

static char folder[64];
static int device_count;
static struct ibv_device devices[DEVICES];

static int fork_init(void)
{
    fake.prepared += fake.living == 0;
    return 0;
}

static struct ibv_device **list_devices(int *count)
{
    struct ibv_device **list = calloc(DEVICES + 1, sizeof(*list));

    for (int i = 0; i < device_count; i++)
        list[i] = &devices[i];
    *count = device_count;
    return list;
}

static void free_list(struct ibv_device **list)
{
    free(list);
}

static const char *device_name(struct ibv_device *device)
{
    return device->name;
}

static struct ibv_context *open_device(struct ibv_device *device)
{
    struct ibv_context *context;

    errno = EACCES;
    if (fake.closed >> (device - devices) & 1)
        return NULL;
    context = calloc(1, sizeof(*context));
    context->device = device;
    context->async_fd = -1;
    fake_wire_context(context);
    fake.living++;
    return context;
}

static int close_device(struct ibv_context *context)
{
    free(context);
    fake.living--;
    return 0;
}

static int query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
    (void)context;
    attributes->max_qp_wr = 4096;
    attributes->max_cqe = FAKE_COMPLETIONS;
    return 0;
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes)
{
    bool down = fake.down >> (context->device - devices) & 1;

    attributes->state = down ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
    attributes->active_mtu = IBV_MTU_4096;
    attributes->pkey_tbl_len = 3;
    attributes->flags = fake.routed ? IBV_QPF_GRH_REQUIRED : 0;
    return port == 1 ? 0 : EINVAL;
}

static int query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    unsigned number = (unsigned)(context->device - devices);
    bool moved = fake.moved >> number & 1;

    *gid = (union ibv_gid){.raw = {[10] = 0xff,
                                   [11] = 0xff,
                                   [12] = 10,
                                   [13] = 77,
                                   [14] = (uint8_t)number,
                                   [15] = moved ? 9 : 1}};
    return port == 1 && index == 0 ? 0 : EINVAL;
}

/* The first entry is that of a limited member, of the default partition. */
static int query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *key)
{
    static const uint16_t keys[] = {0x7fff, 0x8001, 0xffff};

    (void)context;
    *key = htons(keys[index]);
    return port == 1 ? 0 : EINVAL;
}

static struct ibv_pd *alloc_pd(struct ibv_context *context)
{
    struct ibv_pd *pd = calloc(1, sizeof(*pd));

    pd->context = context;
    fake.living++;
    return pd;
}

static int dealloc_pd(struct ibv_pd *pd)
{
    free(pd);
    fake.living--;
    return 0;
}

static int get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
    (void)context;
    if (!fake.events)
        return -1;
    fake.events--;
    *event = (struct ibv_async_event){.event_type = fake.event,
                                      .element.port_num = fake.event_port ? fake.event_port : 1};
    return 0;
}

static void ack_async_event(struct ibv_async_event *event)
{
    (void)event;
}

static const char *status_text(enum ibv_wc_status status)
{
    return status == IBV_WC_RETRY_EXC_ERR ? "transport retry counter exceeded" : "another error";
}

static const char *event_text(enum ibv_event_type type)
{
    return type == IBV_EVENT_PORT_ERR ? "port error" : "local catastrophic error";
}

static struct verbs_calls calls = {
    .folder = folder,
    .fork_init = fork_init,
    .list_devices = list_devices,
    .free_list = free_list,
    .device_name = device_name,
    .open_device = open_device,
    .close_device = close_device,
    .query_device = query_device,
    .query_port = query_port,
    .query_gid = query_gid,
    .query_pkey = query_pkey,
    .alloc_pd = alloc_pd,
    .dealloc_pd = dealloc_pd,
    .get_async_event = get_async_event,
    .ack_async_event = ack_async_event,
    .status_text = status_text,
    .event_text = event_text,
};

static void put(int device, const char *name, const char *text)
{
    char path[192];
    FILE *file;

    snprintf(path, sizeof(path), "%s/fake%d/%s", folder, device, name);
    for (char *slash = path + strlen(folder) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    if (!file)
        abort();
    fputs(text, file);
    fclose(file);
}

void fake_verbs_open(int count)
{
    fake = (struct fake_verbs){
        .fate = IBV_WC_SUCCESS, .dmabuf_room = (size_t)1 << 40, .inlined = 1024};
    strcpy(folder, "/tmp/rondo_fake_XXXXXX");
    if (!mkdtemp(folder))
        abort();
    device_count = count;
    for (int i = 0; i < count; i++) {
        char gid[64];

        snprintf(devices[i].name, sizeof(devices[i].name), "fake%d", i);
        snprintf(gid, sizeof(gid), "0000:0000:0000:0000:0000:ffff:0a4d:%02x01\n", i);
        put(i, "node_type", "1: CA\n");
        put(i, "ports/1/state", "4: ACTIVE\n");
        put(i, "ports/1/link_layer", "Ethernet\n");
        put(i, "ports/1/gids/0", gid);
        put(i, "ports/1/gid_attrs/types/0", "RoCE v2\n");
    }
    fake_wire_fill(&calls);
    verbs_load_instead(&calls);
}

void fake_verbs_open_hard(int count)
{
    fake_verbs_open(count);
    for (int i = 0; i < count; i++)
        put(i, "device/numa_node", "-1\n");
}

void fake_verbs_close(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    if (system(command))
        abort();
    verbs_load_instead(NULL);
}
