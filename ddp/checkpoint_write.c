/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * checkpoint_write.c - rank 0 writes a checkpoint, so that it is there at once or not at all.
 *
 *     PATH.part   data, table and tail are written here, then forced to the disk
 *     PATH        gets the complete file by rename(), which replaces the old one atomically
 *
 * Then the folder is forced to the disk, too. A job that is killed leaves PATH as it was and maybe
 * a PATH.part, which the next one overwrites. The part is locked while it is written: two jobs
 * with one path do not mix, the second one is refused.
 */
#include "ddp/checkpoint.h"

#include "base/caller/descriptor.h"
#include "ddp/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

/* ---- The part file --------------------------------------------------------------------------- */

static rondo_result fail_errno(const rondo_checkpoint *checkpoint, const char *what)
{
    char reason[128];

    return ddp_fail(RONDO_ERROR_SYSTEM, "Checkpoint %s could not be written: %s: %s.",
                    checkpoint->path, what, strerror_r(errno, reason, sizeof(reason)));
}

/* Checks that the file that was opened is still the one of that name. */
static int is_current(int file, const char *path)
{
    struct stat opened, named;

    return !fstat(file, &opened) && !stat(path, &named) && opened.st_dev == named.st_dev &&
           opened.st_ino == named.st_ino;
}

/* Some network file systems have no locks: jobs on them are trusted to have paths of their own. */
static bool lacks_locks(int error)
{
    return error == ENOSYS || error == EOPNOTSUPP || error == ENOLCK;
}

static rondo_result fail_kind(const rondo_checkpoint *checkpoint, const char *path)
{
    return ddp_fail(RONDO_ERROR_INVALID,
                    "Checkpoint %s could not be written: what has the name %s is no file.",
                    checkpoint->path, path);
}

/*
 * The lock is taken before anything is cut off: until then it may be another job's work, which may
 * even have become its checkpoint between open() and flock(). To open a pipe must not wait for its
 * reader.
 */
static rondo_result open_part(rondo_checkpoint *checkpoint)
{
    int file = descriptor_above(open(
        checkpoint->part_path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
    struct stat status;
    bool locked;

    if (file < 0)
        return fail_errno(checkpoint, checkpoint->part_path);
    if (fstat(file, &status) || !S_ISREG(status.st_mode)) {
        close(file);
        return fail_kind(checkpoint, checkpoint->part_path);
    }
    locked = !flock(file, LOCK_EX | LOCK_NB);
    if (!locked && errno != EWOULDBLOCK && !lacks_locks(errno)) {
        rondo_result result = fail_errno(checkpoint, "flock");

        close(file);
        return result;
    }
    if ((!locked && errno == EWOULDBLOCK) || !is_current(file, checkpoint->part_path)) {
        close(file);
        return ddp_fail(RONDO_ERROR_SYSTEM,
                        "Checkpoint %s is just being written by another process: "
                        "give each job a path of its own.",
                        checkpoint->path);
    }
    if (ftruncate(file, 0)) {
        rondo_result result = fail_errno(checkpoint, "ftruncate");

        close(file);
        return result;
    }
    checkpoint->file = file;
    return RONDO_OK;
}

/* A checkpoint takes the place of the file of that name, or of the one that a link leads to, with
 * its mode; not that of a device or a pipe. */
static rondo_result look_at_old(rondo_checkpoint *checkpoint)
{
    struct stat status;
    char *target;

    if (lstat(checkpoint->path, &status))
        return RONDO_OK; /* there is none, or open() will say why */
    if (S_ISLNK(status.st_mode)) {
        target = realpath(checkpoint->path, NULL);
        if (!target || lstat(target, &status)) {
            free(target);
            return fail_errno(checkpoint, "the link leads nowhere");
        }
        free(checkpoint->path);
        checkpoint->path = target;
    }
    if (!S_ISREG(status.st_mode))
        return fail_kind(checkpoint, checkpoint->path);
    checkpoint->mode = status.st_mode & 07777;
    return RONDO_OK;
}

/* The old file's mode, and more: if the part is left behind, the next job of the same user has to
 * open it again. */
static rondo_result give_mode(const rondo_checkpoint *checkpoint, mode_t more)
{
    if (checkpoint->mode && fchmod(checkpoint->file, checkpoint->mode | more))
        return fail_errno(checkpoint, "fchmod");
    return RONDO_OK;
}

static rondo_result create_part(rondo_checkpoint *checkpoint)
{
    rondo_result result;
    size_t room;

    if (sodium_init() < 0)
        return ddp_fail(RONDO_ERROR_SYSTEM,
                        "libsodium does not start, so checkpoint %s cannot be "
                        "written.",
                        checkpoint->path);
    result = look_at_old(checkpoint);
    if (result)
        return result;
    room = strlen(checkpoint->path) + sizeof(".part");
    checkpoint->part_path = malloc(room);
    if (!checkpoint->part_path)
        return ddp_fail(RONDO_ERROR_MEMORY, "No memory for checkpoint %s.", checkpoint->path);
    strcpy(checkpoint->part_path, checkpoint->path);
    strcat(checkpoint->part_path, ".part");
    result = open_part(checkpoint);
    return result ? result : give_mode(checkpoint, S_IWUSR);
}

static rondo_result put(rondo_checkpoint *checkpoint, const void *data, size_t bytes)
{
    for (size_t done = 0; done < bytes;) {
        ssize_t some = write(checkpoint->file, (const char *)data + done, bytes - done);

        if (some < 0 && errno != EINTR)
            return fail_errno(checkpoint, checkpoint->part_path);
        if (some > 0)
            done += (size_t)some;
    }
    checkpoint->end += bytes;
    return RONDO_OK;
}

/* ---- Arrays ---------------------------------------------------------------------------------- */

/* Digest and write piece by piece, while it is in the cache. */
static rondo_result put_array(rondo_checkpoint *checkpoint, const void *data, size_t bytes,
                              unsigned char *ret_digest)
{
    crypto_generichash_state state;
    rondo_result result = RONDO_OK;

    crypto_generichash_init(&state, NULL, 0, CHECKPOINT_DIGEST);
    for (size_t done = 0, some; done < bytes && !result; done += some) {
        some = bytes - done < PIECE ? bytes - done : PIECE;
        crypto_generichash_update(&state, (const unsigned char *)data + done, some);
        result = put(checkpoint, (const char *)data + done, some);
    }
    crypto_generichash_final(&state, ret_digest, CHECKPOINT_DIGEST);
    return result;
}

static rondo_result check_array(const rondo_checkpoint *checkpoint, const char *name,
                                rondo_type type, size_t count, const void *data)
{
    if (!name || !*name || strlen(name) > CHECKPOINT_NAME)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "An array of checkpoint %s needs a name of 1 to %d bytes.",
                        checkpoint->path, CHECKPOINT_NAME);
    if (!rondo_type_size(type))
        return ddp_fail(RONDO_ERROR_INVALID, "Array \"%s\" of checkpoint %s: there is no type %d.",
                        name, checkpoint->path, (int)type);
    if (count > SIZE_MAX / rondo_type_size(type))
        return ddp_fail(RONDO_ERROR_INVALID, "Array \"%s\" of checkpoint %s: %zu are too many.",
                        name, checkpoint->path, count);
    if (!data && count > 0)
        return ddp_fail(RONDO_ERROR_INVALID, "Array \"%s\" of checkpoint %s: rank 0 gave NULL.",
                        name, checkpoint->path);
    if (checkpoint_find(checkpoint, name))
        return ddp_fail(RONDO_ERROR_INVALID, "Checkpoint %s has two arrays \"%s\".",
                        checkpoint->path, name);
    return RONDO_OK;
}

static rondo_result write_array(rondo_checkpoint *checkpoint, const char *name, rondo_type type,
                                size_t count, const void *data)
{
    struct checkpoint_entry entry = {.offset = checkpoint->end, .count = count};
    rondo_result result = check_array(checkpoint, name, type, count, data);

    if (result)
        return result;
    entry.type = (uint32_t)type;
    entry.name_length = (uint32_t)strlen(name);
    result = put_array(checkpoint, data, count * rondo_type_size(type), entry.digest);
    return result ? result : checkpoint_append(checkpoint, name, entry.name_length, &entry);
}

/* Keep the first error for commit. */
static rondo_result note(rondo_checkpoint *checkpoint, rondo_result result)
{
    if (result && !checkpoint->result) {
        checkpoint->result = result;
        strncpy(checkpoint->sentence, rondo_ddp_last_error(), CHECKPOINT_SENTENCE - 1);
    }
    return result;
}

/* ---- Public ---------------------------------------------------------------------------------- */

rondo_result rondo_checkpoint_create(const char *path, rondo_comm *comm,
                                     rondo_checkpoint **ret_checkpoint)
{
    static const struct checkpoint_head head = {CHECKPOINT_MAGIC, CHECKPOINT_VERSION, 0};
    rondo_checkpoint *checkpoint = NULL;
    rondo_result result;

    if (!ret_checkpoint)
        return ddp_fail(RONDO_ERROR_INVALID,
                        "rondo_checkpoint_create: no place for the checkpoint.");
    result = checkpoint_make(path, comm, "rondo_checkpoint_create", &checkpoint);
    if (result)
        return result;
    if (checkpoint_is_writer(checkpoint)) {
        result = create_part(checkpoint);
        if (!result)
            result = put(checkpoint, &head, sizeof(head));
    }
    result = checkpoint_agree(checkpoint, result);
    if (result) {
        rondo_checkpoint_close(checkpoint);
        return result;
    }
    *ret_checkpoint = checkpoint;
    return RONDO_OK;
}

rondo_result rondo_checkpoint_write(rondo_checkpoint *checkpoint, const char *name, rondo_type type,
                                    size_t count, const void *data)
{
    if (!checkpoint)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_checkpoint_write: there is no checkpoint.");
    if (!checkpoint_is_writer(checkpoint))
        return RONDO_OK;
    if (checkpoint->result)
        return ddp_fail(checkpoint->result, "%s", checkpoint->sentence);
    if (checkpoint->file < 0)
        return ddp_fail(RONDO_ERROR_INVALID, "Checkpoint %s is not being written.",
                        checkpoint->path);
    return note(checkpoint, write_array(checkpoint, name, type, count, data));
}

static rondo_result put_table(rondo_checkpoint *checkpoint)
{
    struct checkpoint_head head = {CHECKPOINT_MAGIC, CHECKPOINT_VERSION, 0};
    struct checkpoint_tail tail = {checkpoint->end, checkpoint->count, {0}, CHECKPOINT_END};
    rondo_result result = RONDO_OK;

    checkpoint_digest_table(checkpoint, &head, &tail, tail.digest);
    for (size_t i = 0; i < checkpoint->count && !result; i++) {
        const struct checkpoint_array *array = &checkpoint->arrays[i];

        result = put(checkpoint, &array->entry, sizeof(array->entry));
        if (!result)
            result = put(checkpoint, array->name, array->entry.name_length);
    }
    return result ? result : put(checkpoint, &tail, sizeof(tail));
}

/* The rename itself must survive a loss of power, too. */
static rondo_result sync_folder(const rondo_checkpoint *checkpoint)
{
    char reason[128];
    const char *slash = strrchr(checkpoint->path, '/');
    char *name =
        slash ? strndup(checkpoint->path, (size_t)(slash - checkpoint->path) + 1) : strdup(".");
    int folder = name ? descriptor_above(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) : -1;
    rondo_result result = RONDO_OK;

    /* EINVAL: a file system whose folders cannot be synchronised */
    if (folder < 0 || (fsync(folder) && errno != EINVAL))
        result = ddp_fail(RONDO_ERROR_SYSTEM,
                          "Checkpoint %s is written, but may be the old one again after a loss of "
                          "power, as its folder could not be forced to the disk: %s.",
                          checkpoint->path, strerror_r(errno, reason, sizeof(reason)));
    if (folder >= 0)
        close(folder);
    free(name);
    return result;
}

static rondo_result commit(rondo_checkpoint *checkpoint)
{
    rondo_result result;

    if (checkpoint->result)
        return ddp_fail(checkpoint->result, "%s", checkpoint->sentence);
    if (checkpoint->file < 0)
        return ddp_fail(RONDO_ERROR_INVALID, "Checkpoint %s is not being written.",
                        checkpoint->path);
    result = put_table(checkpoint);
    if (!result)
        result = give_mode(checkpoint, 0);
    if (result)
        return result;
    if (fsync(checkpoint->file))
        return fail_errno(checkpoint, "fsync");
    if (rename(checkpoint->part_path, checkpoint->path))
        return fail_errno(checkpoint, "rename");
    close(checkpoint->file);
    checkpoint->file = -1;
    return sync_folder(checkpoint);
}

rondo_result rondo_checkpoint_commit(rondo_checkpoint *checkpoint)
{
    rondo_result result = ddp_check_call(checkpoint, "rondo_checkpoint_commit");

    if (result)
        return result;
    if (checkpoint_is_writer(checkpoint))
        result = note(checkpoint, commit(checkpoint));
    return checkpoint_agree(checkpoint, result);
}
