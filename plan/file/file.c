/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - a file of plans in memory: from a path, and back to nothing. */
#include "plan/file/file.h"

#include "base/caller/descriptor.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void plan_file_close(struct plan_file *file)
{
    if (!file)
        return;
    for (int rank = 0; file->plans && rank < file->size; rank++)
        plan_close(file->plans[rank]);
    free(file->plans);
    free(file);
}

uint64_t plan_file_hash(const char *text, size_t length)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
    return hash;
}

/* The whole of an open file, to free(); NULL: errno says why not. */
static char *read_all(FILE *from, size_t *ret_length)
{
    size_t length = 0, room = 65536, got;
    char *text = malloc(room);

    while (text && (got = fread(text + length, 1, room - length, from)) > 0) {
        char *moved;

        length += got;
        if (length < room)
            continue;
        moved = length < PLAN_FILE_BYTES ? realloc(text, room *= 2) : NULL;
        if (!moved) {
            free(text);
            errno = length < PLAN_FILE_BYTES ? ENOMEM : EFBIG;
            return NULL;
        }
        text = moved;
    }
    if (text && ferror(from)) {
        free(text);
        return NULL;
    }
    *ret_length = length;
    return text;
}

rondo_result plan_file_load(const char *path, char **ret_text, size_t *ret_length)
{
    FILE *from = descriptor_stream(path, "r");
    char *text = from ? read_all(from, ret_length) : NULL;
    rondo_result result = RONDO_OK;

    if (!text)
        result = rondo_fail(RONDO_ERROR_INVALID, "The plan in %s can't be read: %s.", path,
                            strerror(errno));
    if (from)
        fclose(from);
    *ret_text = text;
    return result;
}
