/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mapped.c - see mapped.h.
 *
 * The stand-in's memory is files, which /proc/self/maps lists: each rank tells the others the
 * numbers of the files that its buffer lies in, and they see whether they have these mapped. On a
 * GPU there are no such files, and only the sums are checked.
 */
#include "mapped.h"

#include "device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 4096 };

/* ---- What is mapped here --------------------------------------------------------------------- */

struct files {
    int count;
    uint64_t begin[FILES], number[FILES];
};

static void list_files(struct files *files)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];

    files->count = 0;
    while (maps && fgets(line, sizeof(line), maps) && files->count < FILES) {
        if (strstr(line, "memfd:cuda_standin") &&
            sscanf(line, "%" SCNx64 "-%*x %*s %*x %*s %" SCNu64, &files->begin[files->count],
                   &files->number[files->count]) == 2)
            files->count++;
    }
    if (maps)
        fclose(maps);
}

static bool has_file(const struct files *files, uint64_t number)
{
    for (int i = 0; i < files->count; i++)
        if (files->number[i] == number)
            return true;
    return false;
}

int mapped_files(void)
{
    static struct files files;
    int count = 0;

    list_files(&files);
    for (int i = 0; i < files.count; i++) {
        bool again = false;

        for (int j = 0; j < i && !again; j++)
            again = files.number[j] == files.number[i];
        count += !again;
    }
    return count;
}

/* The file that begins at that address, 0: none. */
static uint64_t file_at(const void *memory)
{
    static struct files files;

    list_files(&files);
    for (int i = 0; i < files.count; i++)
        if (files.begin[i] == (uintptr_t)memory)
            return files.number[i];
    return 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

rondo_result mapped_fail(struct gpu_rank *rank, const char *what)
{
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s: %s", what,
                     rondo_last_error(rank->comm));
}

rondo_result mapped_sum(struct gpu_rank *rank, int32_t *memory, int value)
{
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    int32_t host[COUNT];

    for (int i = 0; i < COUNT; i++)
        host[i] = value + i + own;
    if (!device_copy(memory, host, sizeof(host)) ||
        rondo_all_reduce(memory, memory, COUNT, RONDO_INT32, RONDO_SUM, rank->comm, rank->stream) ||
        rondo_stream_synchronize(rank->stream) || !device_copy(host, memory, sizeof(host)))
        return mapped_fail(rank, "all_reduce");
    for (int i = 0; i < COUNT; i++)
        if (host[i] != size * (value + i) + size * (size - 1) / 2)
            return mapped_fail(rank, "a wrong sum");
    return RONDO_OK;
}

/* Counts the peers whose file at `memory` there is mapped here; -1: there are no files, on any
 * rank. */
static rondo_result count_mapped(struct gpu_rank *rank, const void *memory, int *ret_count)
{
    static struct files files;
    int size = rondo_comm_size(rank->comm), own = rondo_comm_rank(rank->comm);
    uint64_t number = file_at(memory), numbers[WORLD_RANKS];

    if (rondo_all_gather(&number, numbers, 1, RONDO_UINT64, rank->comm, NULL))
        return mapped_fail(rank, "all_gather");
    list_files(&files);
    *ret_count = device_standin_stop() ? 0 : -1;
    for (int peer = 0; *ret_count >= 0 && peer < size; peer++)
        *ret_count += peer != own && numbers[peer] && has_file(&files, numbers[peer]);
    /* Nobody goes on, and has something replaced, before all have looked. */
    return rondo_barrier(rank->comm, NULL) ? mapped_fail(rank, "barrier") : RONDO_OK;
}

rondo_result mapped_expect(struct gpu_rank *rank, const void *memory, int wanted, const char *what)
{
    int count;
    rondo_result result = count_mapped(rank, memory, &count);

    if (result || count < 0 || count == wanted)
        return result;
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL, "%s: mapped of %d peers, not of %d",
                     what, count, wanted);
}

rondo_result mapped_expect_all(struct gpu_rank *rank, int32_t *memory, const char *what)
{
    enum { MORE = 100 };
    int others = rondo_comm_size(rank->comm) - 1, own = 0, least = 0;
    rondo_result result = RONDO_OK;

    for (int more = 0; more < MORE && !result; more++) {
        result = count_mapped(rank, memory, &own);
        if (!result && rondo_all_reduce(&own, &least, 1, RONDO_INT32, RONDO_MIN, rank->comm, NULL))
            result = mapped_fail(rank, "all_reduce of counts");
        if (result || least < 0 || least == others)
            break;
        usleep(10000);
        result = mapped_sum(rank, memory, more);
    }
    if (result || least < 0 || least == others)
        return result;
    return world_say(rank->sentence, RONDO_ERROR_INTERNAL,
                     "%s: mapped of %d peers, on some rank of %d, not of %d", what, own, least,
                     others);
}
