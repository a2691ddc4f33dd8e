/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/transport/verbs/fake_device.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIECES = 16, PAGE = 4096 };

struct piece {
    char *address, *bytes; /* where it is, and where it can be touched */
    size_t length;
};

struct fake_device fake_device;
static struct piece pieces[PIECES];

static rondo_result take(void *context, size_t bytes, bool file, struct device_memory *ret_memory)
{
    struct piece *piece = pieces;
    int fd = memfd_create("device", MFD_CLOEXEC);

    (void)context;
    while (piece < pieces + PIECES && piece->address)
        piece++;
    if (fake_device.full || piece == pieces + PIECES) {
        close(fd);
        return rondo_fail(RONDO_ERROR_MEMORY, "the device is full");
    }
    piece->length = (bytes + PAGE - 1) / PAGE * PAGE;
    if (ftruncate(fd, (off_t)piece->length))
        abort();
    piece->bytes = mmap(NULL, piece->length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    piece->address = mmap(NULL, piece->length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (piece->bytes == MAP_FAILED || piece->address == MAP_FAILED)
        abort();
    *ret_memory = (struct device_memory){
        .address = (uintptr_t)piece->address, .bytes = bytes, .file = file ? fd : -1};
    if (!file)
        close(fd);
    fake_device.living++;
    return RONDO_OK;
}

static void give(void *context, struct device_memory *memory)
{
    (void)context;
    for (int i = 0; i < PIECES && memory->address; i++) {
        if ((uintptr_t)pieces[i].address != memory->address)
            continue;
        munmap(pieces[i].address, pieces[i].length);
        munmap(pieces[i].bytes, pieces[i].length);
        pieces[i] = (struct piece){NULL, NULL, 0};
        if (memory->file >= 0)
            close(memory->file);
        fake_device.living--;
    }
}

static char *find(uint64_t at, size_t bytes)
{
    for (int i = 0; i < PIECES; i++) {
        uint64_t begin = (uintptr_t)pieces[i].address;

        if (begin && at >= begin && at + bytes <= begin + pieces[i].length)
            return pieces[i].bytes + (at - begin);
    }
    abort();
}

static rondo_result read_it(void *context, void *to, uint64_t from, size_t bytes)
{
    (void)context;
    memcpy(to, find(from, bytes), bytes);
    return RONDO_OK;
}

static rondo_result write_it(void *context, uint64_t to, const void *from, size_t bytes)
{
    (void)context;
    memcpy(find(to, bytes), from, bytes);
    return RONDO_OK;
}

const struct device_source fake_device_source = {
    .name = "a made-up device", .take = take, .give = give, .read = read_it, .write = write_it};
