/* SPDX-License-Identifier: BSD-3-Clause */
/* members.c - multicast instructions of kernels: where the members of an object have a byte. */
#include "standin/driver/base/call.h"
#include "standin/driver/base/guard.h"
#include "standin/driver/calls/multicast.h"
#include "standin/driver/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The descriptor of a binding's file; -1: its process has gone. */
static int open_bound(const struct binding *binding)
{
    char path[64], name[BINDING_NAME];
    snprintf(path, sizeof path, "/proc/%d/fd/%d", binding->process, binding->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && multicast_read_name(fd, name) && strcmp(name, binding->name) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The memory of a process that has gone is read as zeros. As long as the object, so that nobody
 * has to keep its length. */
static char *map_bound(const struct multicast_shared *shared, const struct binding *binding)
{
    int fd = open_bound(binding);
    char *base = mmap(NULL, shared->size, PROT_READ | PROT_WRITE,
                      fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd,
                      fd < 0 ? 0 : (off_t)binding->from);
    if (fd >= 0)
        close(fd);
    if (base == MAP_FAILED || guard_protect(base, shared->size, PROT_READ | PROT_WRITE))
        return NULL;
    return base;
}

/* The binding of that device that holds the byte, -1: none. */
static int find_binding(const struct multicast_shared *shared, int device, size_t at)
{
    for (int i = 0; i < BINDINGS; i++)
        if (binding_overlaps(&shared->bindings[i], device, at, 1))
            return i;
    return -1;
}

static char *alias_of(struct multicast *multicast, int i)
{
    const struct binding *binding = &multicast->shared->bindings[i];
    if (multicast->aliases[i].number != binding_number(binding)) {
        if (multicast->aliases[i].base)
            munmap(multicast->aliases[i].base, multicast->shared->size);
        multicast->aliases[i].base = map_bound(multicast->shared, binding);
        multicast->aliases[i].number = binding_number(binding);
    }
    return multicast->aliases[i].base;
}

static void die(const void *address, const char *why)
{
    fprintf(stderr, "CUDA stand-in: a multicast instruction at %p: %s\n", address, why);
    abort();
}

/* Finds the byte in the memory of that member; NULL: there is none such. */
static char *find_byte(const struct memory *memory, const char *address, unsigned member)
{
    const struct physical *physical = memory && memory->kind == MEMORY_MAPPED
                                          ? (struct physical *)(uintptr_t)memory->object
                                          : NULL;
    if (!physical || !physical->multicast)
        die(address, "there is no multicast memory");
    struct multicast *multicast = physical->multicast;
    uint32_t devices = multicast_devices(multicast->shared);
    if (!memory->readable)
        die(address, "no device may access it");
    if (member >= multicast->shared->devices)
        return NULL;
    while (member--)
        devices &= devices - 1;
    size_t at = (size_t)(address - memory->base);
    int i = devices ? find_binding(multicast->shared, __builtin_ctz(devices), at) : -1;
    char *base = i < 0 ? NULL : alias_of(multicast, i);
    if (!base)
        die(address, "a device has bound no memory there");
    return base + (at - multicast->shared->bindings[i].at);
}

void *multicast_member(const void *address, unsigned member)
{
    call_lock();
    char *byte = find_byte(memory_find(address), address, member);
    call_unlock();
    return byte;
}
