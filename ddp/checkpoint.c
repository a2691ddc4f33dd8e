/* SPDX-License-Identifier: BSD-3-Clause */
/* checkpoint.c - what writing and reading of checkpoints share: the list of arrays, the digest of
 * the table, and how rank 0's result becomes everybody's. */
#include "ddp/checkpoint.h"

#include "ddp/fail.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

rondo_result checkpoint_make(const char *path, rondo_comm *comm, const char *function,
                             rondo_checkpoint **ret_checkpoint)
{
    rondo_result result = comm ? ddp_check_call(comm, function) : RONDO_OK;
    rondo_checkpoint *checkpoint;

    if (result)
        return result;
    if (!path || !*path)
        return ddp_fail(RONDO_ERROR_INVALID, "%s: there is no path.", function);
    checkpoint = calloc(1, sizeof(*checkpoint));
    if (checkpoint)
        checkpoint->path = strdup(path);
    if (!checkpoint || !checkpoint->path) {
        free(checkpoint);
        return ddp_fail(RONDO_ERROR_MEMORY, "No memory for checkpoint %s.", path);
    }
    checkpoint->comm = comm;
    checkpoint->file = -1;
    *ret_checkpoint = checkpoint;
    return RONDO_OK;
}

int checkpoint_is_writer(const rondo_checkpoint *checkpoint)
{
    return !checkpoint->comm || rondo_comm_rank(checkpoint->comm) == 0;
}

rondo_result checkpoint_append(rondo_checkpoint *checkpoint, const char *name, size_t name_length,
                               const struct checkpoint_entry *entry)
{
    size_t room = checkpoint->room ? 2 * checkpoint->room : 64;
    struct checkpoint_array *arrays = checkpoint->arrays;
    char *copy = strndup(name, name_length);

    if (copy && checkpoint->count == checkpoint->room) {
        arrays = realloc(arrays, room * sizeof(*arrays));
        if (arrays) {
            checkpoint->arrays = arrays;
            checkpoint->room = room;
        }
    }
    if (!copy || !arrays) {
        free(copy);
        return ddp_fail(RONDO_ERROR_MEMORY, "No memory for the table of checkpoint %s.",
                        checkpoint->path);
    }
    arrays[checkpoint->count++] = (struct checkpoint_array){copy, *entry};
    return RONDO_OK;
}

const struct checkpoint_array *checkpoint_find(const rondo_checkpoint *checkpoint, const char *name)
{
    for (size_t i = 0; i < checkpoint->count; i++)
        if (strcmp(checkpoint->arrays[i].name, name) == 0)
            return &checkpoint->arrays[i];
    return NULL;
}

void checkpoint_digest_table(const rondo_checkpoint *checkpoint, const struct checkpoint_head *head,
                             const struct checkpoint_tail *tail, unsigned char *ret_digest)
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, NULL, 0, CHECKPOINT_DIGEST);
    crypto_generichash_update(&state, (const unsigned char *)head, sizeof(*head));
    for (size_t i = 0; i < checkpoint->count; i++) {
        const struct checkpoint_array *array = &checkpoint->arrays[i];

        crypto_generichash_update(&state, (const unsigned char *)&array->entry,
                                  sizeof(array->entry));
        crypto_generichash_update(&state, (const unsigned char *)array->name,
                                  array->entry.name_length);
    }
    crypto_generichash_update(&state, (const unsigned char *)&tail->table_offset,
                              sizeof(tail->table_offset));
    crypto_generichash_update(&state, (const unsigned char *)&tail->entries, sizeof(tail->entries));
    crypto_generichash_final(&state, ret_digest, CHECKPOINT_DIGEST);
}

rondo_result checkpoint_agree(rondo_checkpoint *checkpoint, rondo_result result)
{
    struct {
        int32_t result;
        char sentence[CHECKPOINT_SENTENCE];
    } news = {(int32_t)result, {0}};
    rondo_result told;

    if (!checkpoint->comm)
        return result;
    if (checkpoint_is_writer(checkpoint) && result)
        strncpy(news.sentence, rondo_ddp_last_error(), sizeof(news.sentence) - 1);
    told = rondo_broadcast(&news, &news, sizeof(news), RONDO_UINT8, 0, checkpoint->comm, NULL);
    if (told)
        return ddp_fail_call(told, checkpoint->comm, "A checkpoint could not be agreed on");
    if (news.result && !checkpoint_is_writer(checkpoint))
        ddp_fail((rondo_result)news.result, "Rank 0: %s", news.sentence);
    return (rondo_result)news.result;
}

size_t rondo_checkpoint_count(const rondo_checkpoint *checkpoint)
{
    return checkpoint ? checkpoint->count : 0;
}

rondo_result rondo_checkpoint_at(const rondo_checkpoint *checkpoint, size_t index,
                                 const char **ret_name, rondo_type *ret_type, size_t *ret_count)
{
    if (!checkpoint || !ret_name || !ret_type || !ret_count)
        return ddp_fail(RONDO_ERROR_INVALID, "rondo_checkpoint_at: there is no %s.",
                        checkpoint ? "place for name, type or count" : "checkpoint");
    if (index >= checkpoint->count)
        return ddp_fail(RONDO_ERROR_INVALID, "Checkpoint %s has %zu arrays, so none at %zu.",
                        checkpoint->path, checkpoint->count, index);
    *ret_name = checkpoint->arrays[index].name;
    *ret_type = (rondo_type)checkpoint->arrays[index].entry.type;
    *ret_count = (size_t)checkpoint->arrays[index].entry.count;
    return RONDO_OK;
}

void rondo_checkpoint_close(rondo_checkpoint *checkpoint)
{
    if (!checkpoint)
        return;
    if (checkpoint->part_path && checkpoint->file >= 0)
        unlink(checkpoint->part_path); /* not committed: given up */
    if (checkpoint->file >= 0)
        close(checkpoint->file);
    for (size_t i = 0; i < checkpoint->count; i++)
        free(checkpoint->arrays[i].name);
    free(checkpoint->arrays);
    free(checkpoint->part_path);
    free(checkpoint->path);
    free(checkpoint);
}
