/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint_read.c - rank 0 reads a checkpoint and broadcasts what it finds.
 *
 * Nothing that the file says is believed before it was compared with the length of the file or with
 * a digest: first the tail, then the table, then the bytes of every array. Only then the file
 * counts as open. It stays open, so that a new checkpoint of the same name does not disturb. As the
 * file may be written to meanwhile, the digest is compared once more with what is handed out.
 */
#include "ddp/checkpoint.h"

#include "base/caller/descriptor.h"
#include "ddp/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

static rondo_result damaged(const rondo_checkpoint *checkpoint, const char *what)
{
    return ddp_fail(RONDO_ERROR_INVALID, "Checkpoint %s is damaged: %s. Use an older one.",
                    checkpoint->path, what);
}

static rondo_result get(const rondo_checkpoint *checkpoint, void *to, size_t bytes, uint64_t offset)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t some =
            pread(checkpoint->file, (char *)to + done, bytes - done, (off_t)(offset + done));

        if (some == 0)
            return damaged(checkpoint, "it became shorter while it was read");
        if (some < 0 && errno != EINTR) {
            char reason[128];

            return ddp_fail(RONDO_ERROR_SYSTEM, "Checkpoint %s could not be read: %s.",
                            checkpoint->path, strerror_r(errno, reason, sizeof(reason)));
        }
        if (some > 0)
            done += (size_t)some;
    }
    return RONDO_OK;
}

/* ---- Rank 0: tail, table, arrays ------------------------------------------------------------- */

static rondo_result open_file(rondo_checkpoint *checkpoint, uint64_t *ret_bytes)
{
    struct stat status;
    char reason[128];

    if (sodium_init() < 0)
        return ddp_fail(RONDO_ERROR_SYSTEM,
                        "libsodium does not start, so checkpoint %s cannot be "
                        "read.",
                        checkpoint->path);
    checkpoint->file = descriptor_above(open(checkpoint->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (checkpoint->file < 0 || fstat(checkpoint->file, &status))
        return ddp_fail(RONDO_ERROR_SYSTEM, "Checkpoint %s could not be opened: %s.",
                        checkpoint->path, strerror_r(errno, reason, sizeof(reason)));
    if (!S_ISREG(status.st_mode))
        return ddp_fail(RONDO_ERROR_INVALID, "%s is no file, so it is no checkpoint.",
                        checkpoint->path);
    *ret_bytes = (uint64_t)status.st_size;
    return RONDO_OK;
}

static rondo_result read_ends(rondo_checkpoint *checkpoint, uint64_t bytes,
                              struct checkpoint_head *ret_head, struct checkpoint_tail *ret_tail)
{
    uint64_t least = sizeof(*ret_head) + sizeof(*ret_tail), table;
    rondo_result result;

    memset(ret_head, 0, sizeof(*ret_head));
    result = get(checkpoint, ret_head, bytes < sizeof(*ret_head) ? bytes : sizeof(*ret_head), 0);
    if (result)
        return result;
    if (memcmp(ret_head->magic, CHECKPOINT_MAGIC, sizeof(ret_head->magic)) != 0)
        return ddp_fail(RONDO_ERROR_INVALID, "%s is not a checkpoint of Rondo.", checkpoint->path);
    if (ret_head->version != CHECKPOINT_VERSION)
        return ddp_fail(RONDO_ERROR_UNSUPPORTED,
                        "Checkpoint %s has version %u of the format, this library reads %d.",
                        checkpoint->path, ret_head->version, CHECKPOINT_VERSION);
    if (bytes < least)
        return damaged(checkpoint, "its end is missing");
    result = get(checkpoint, ret_tail, sizeof(*ret_tail), bytes - sizeof(*ret_tail));
    if (result)
        return result;
    if (memcmp(ret_tail->magic, CHECKPOINT_END, sizeof(ret_tail->magic)) != 0)
        return damaged(checkpoint, "its end is missing");
    table = bytes - sizeof(*ret_tail) - ret_tail->table_offset;
    if (ret_tail->table_offset < sizeof(*ret_head) ||
        ret_tail->table_offset > bytes - sizeof(*ret_tail) ||
        ret_tail->entries > table / sizeof(struct checkpoint_entry))
        return damaged(checkpoint, "its table is not where it should be");
    return RONDO_OK;
}

/* Entries out of `bytes` of table; the offsets must be without gaps from the head to the table. */
static rondo_result parse_table(rondo_checkpoint *checkpoint, const char *table, uint64_t bytes,
                                const struct checkpoint_tail *tail)
{
    uint64_t at = 0, end = sizeof(struct checkpoint_head);

    for (uint64_t i = 0; i < tail->entries; i++) {
        struct checkpoint_entry entry;
        rondo_result result;
        size_t size;

        if (bytes - at < sizeof(entry))
            return damaged(checkpoint, "its table is too short");
        memcpy(&entry, table + at, sizeof(entry));
        at += sizeof(entry);
        size = rondo_type_size((rondo_type)entry.type);
        if (entry.name_length == 0 || entry.name_length > CHECKPOINT_NAME ||
            entry.name_length > bytes - at || size == 0 || entry.offset != end ||
            entry.count > (tail->table_offset - end) / size ||
            memchr(table + at, '\0', entry.name_length))
            return damaged(checkpoint, "an entry of its table makes no sense");
        result = checkpoint_append(checkpoint, table + at, entry.name_length, &entry);
        if (result)
            return result;
        at += entry.name_length;
        end += entry.count * size;
    }
    checkpoint->end = end;
    if (at != bytes || end != tail->table_offset)
        return damaged(checkpoint, "its table does not describe all of it");
    return RONDO_OK;
}

static rondo_result read_table(rondo_checkpoint *checkpoint, uint64_t bytes)
{
    struct checkpoint_head head;
    struct checkpoint_tail tail;
    unsigned char digest[CHECKPOINT_DIGEST];
    rondo_result result = read_ends(checkpoint, bytes, &head, &tail);
    uint64_t table_bytes;
    char *table;

    if (result)
        return result;
    table_bytes = bytes - sizeof(tail) - tail.table_offset;
    table = malloc(table_bytes + 1);
    if (!table)
        return ddp_fail(RONDO_ERROR_MEMORY, "No memory for the table of checkpoint %s.",
                        checkpoint->path);
    result = get(checkpoint, table, table_bytes, tail.table_offset);
    if (!result)
        result = parse_table(checkpoint, table, table_bytes, &tail);
    free(table);
    if (result)
        return result;
    checkpoint_digest_table(checkpoint, &head, &tail, digest);
    if (memcmp(digest, tail.digest, sizeof(digest)) != 0)
        return damaged(checkpoint, "the digest of its table is wrong");
    return RONDO_OK;
}

/* Read an array and compare its digest, with that of the very bytes that lie in `room` then: all of
 * them (`whole`), or a piece after the other. */
static rondo_result read_array(const rondo_checkpoint *checkpoint,
                               const struct checkpoint_array *array, char *room, bool whole)
{
    uint64_t bytes = array->entry.count * rondo_type_size((rondo_type)array->entry.type);
    unsigned char digest[CHECKPOINT_DIGEST];
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, CHECKPOINT_DIGEST);
    for (uint64_t done = 0, some; done < bytes; done += some) {
        char *piece = whole ? room + done : room;
        rondo_result result;

        some = bytes - done < PIECE ? bytes - done : PIECE;
        result = get(checkpoint, piece, some, array->entry.offset + done);
        if (result)
            return result;
        crypto_generichash_update(&state, (const unsigned char *)piece, some);
    }
    crypto_generichash_final(&state, digest, CHECKPOINT_DIGEST);
    if (memcmp(digest, array->entry.digest, sizeof(digest)) == 0)
        return RONDO_OK;
    if (whole)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "Checkpoint %s was changed while it was open: the digest of array \"%s\" "
                        "is not right any more. Do not write to checkpoints, use an older one.",
                        checkpoint->path, array->name);
    return ddp_fail(RONDO_ERROR_INVALID,
                    "Checkpoint %s is damaged: the digest of array \"%s\" is wrong. "
                    "Use an older one.",
                    checkpoint->path, array->name);
}

static rondo_result check_file(rondo_checkpoint *checkpoint)
{
    uint64_t bytes;
    char *piece;
    rondo_result result = open_file(checkpoint, &bytes);

    if (!result)
        result = read_table(checkpoint, bytes);
    if (result)
        return result;
    piece = malloc(PIECE);
    if (!piece)
        return ddp_fail(RONDO_ERROR_MEMORY, "No memory to read checkpoint %s.", checkpoint->path);
    for (size_t i = 0; i < checkpoint->count && !result; i++)
        result = read_array(checkpoint, &checkpoint->arrays[i], piece, false);
    free(piece);
    return result;
}

/* ---- All ranks ------------------------------------------------------------------------------- */

/* One string after another: the entry, then the name. */
static char *pack_table(const rondo_checkpoint *checkpoint, uint64_t *ret_bytes)
{
    size_t bytes = 0, at = 0;
    char *table;

    for (size_t i = 0; i < checkpoint->count; i++)
        bytes += sizeof(struct checkpoint_entry) + checkpoint->arrays[i].entry.name_length;
    table = malloc(bytes + 1);
    for (size_t i = 0; i < checkpoint->count && table; i++) {
        const struct checkpoint_array *array = &checkpoint->arrays[i];

        memcpy(table + at, &array->entry, sizeof(array->entry));
        memcpy(table + at + sizeof(array->entry), array->name, array->entry.name_length);
        at += sizeof(array->entry) + array->entry.name_length;
    }
    *ret_bytes = bytes;
    return table;
}

/* A rank that has no memory takes part all the same: all hear of it, and all give up. */
static rondo_result agree_on_memory(rondo_checkpoint *checkpoint, const void *memory)
{
    int32_t missing = memory == NULL;
    rondo_result result = RONDO_OK;

    if (checkpoint->comm)
        result =
            rondo_all_reduce(&missing, &missing, 1, RONDO_INT32, RONDO_SUM, checkpoint->comm, NULL);
    if (result)
        return ddp_fail_call(result, checkpoint->comm, "Opening a checkpoint");
    if (missing)
        return ddp_fail(RONDO_ERROR_MEMORY, "%d ranks have no memory for the table of %s.", missing,
                        checkpoint->path);
    return RONDO_OK;
}

/* Rank 0's table, packed, becomes everybody's. */
static rondo_result share_table(rondo_checkpoint *checkpoint)
{
    struct checkpoint_tail tail = {0}; /* entries, and where the data ends */
    int writer = checkpoint_is_writer(checkpoint);
    uint64_t numbers[3] = {0};
    char *table = NULL;
    rondo_result result;

    if (writer) {
        table = pack_table(checkpoint, &numbers[0]);
        numbers[1] = checkpoint->count;
        numbers[2] = checkpoint->end;
    }
    result = rondo_broadcast(numbers, numbers, 3, RONDO_UINT64, 0, checkpoint->comm, NULL);
    if (result)
        return ddp_fail_call(result, checkpoint->comm, "Opening a checkpoint");
    if (!writer)
        table = malloc(numbers[0] + 1);
    result = agree_on_memory(checkpoint, table);
    if (!result) {
        result = rondo_broadcast(table, table, numbers[0], RONDO_UINT8, 0, checkpoint->comm, NULL);
        if (result)
            ddp_fail_call(result, checkpoint->comm, "Opening a checkpoint");
    }
    tail.entries = numbers[1];
    tail.table_offset = numbers[2];
    if (!result && !writer)
        result = parse_table(checkpoint, table, numbers[0], &tail);
    free(table);
    return result;
}

rondo_result rondo_checkpoint_open(const char *path, rondo_comm *comm,
                                   rondo_checkpoint **ret_checkpoint)
{
    rondo_checkpoint *checkpoint = NULL;
    rondo_result result;

    if (!ret_checkpoint)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_checkpoint_open: no place for the checkpoint.");
    result = checkpoint_make(path, comm, "rondo_checkpoint_open", &checkpoint);
    if (result)
        return result;
    if (checkpoint_is_writer(checkpoint))
        result = check_file(checkpoint);
    result = checkpoint_agree(checkpoint, result);
    if (!result && comm)
        result = share_table(checkpoint);
    if (result) {
        rondo_checkpoint_close(checkpoint);
        return result;
    }
    *ret_checkpoint = checkpoint;
    return RONDO_OK;
}

rondo_result rondo_checkpoint_read(rondo_checkpoint *checkpoint, const char *name, rondo_type type,
                                   size_t count, void *ret_data)
{
    rondo_result result = ddp_check_call(checkpoint, "rondo_checkpoint_read");
    const struct checkpoint_array *array;

    if (result)
        return result;
    if (!name || (count && !ret_data))
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_checkpoint_read: there is no %s.",
                        name ? "place for the array" : "name");
    array = checkpoint_find(checkpoint, name);
    if (!array)
        return ddp_fail(RONDO_ERROR_INVALID, "Checkpoint %s has no array \"%s\".", checkpoint->path,
                        name);
    if (array->entry.type != (uint32_t)type || array->entry.count != count)
        return ddp_fail(
            RONDO_ERROR_INVALID,
            "Array \"%s\" of checkpoint %s is %llu of %s, but %zu of %s were asked for; "
            "is it from another model?",
            name, checkpoint->path, (unsigned long long)array->entry.count,
            rondo_type_name((rondo_type)array->entry.type), count, rondo_type_name(type));
    if (checkpoint_is_writer(checkpoint))
        result = read_array(checkpoint, array, ret_data, true);
    result = checkpoint_agree(checkpoint, result);
    if (result || !checkpoint->comm)
        return result;
    result = rondo_broadcast(ret_data, ret_data, count, type, 0, checkpoint->comm, NULL);
    return result ? ddp_fail_call(result, checkpoint->comm, "Reading a checkpoint") : RONDO_OK;
}
