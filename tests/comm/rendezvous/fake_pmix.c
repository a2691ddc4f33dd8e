/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_pmix.c - libpmix.so.2 without a launcher: ranks tell each other things through a file.
 *
 *     PMIX_RANK                        who is who
 *     FAKE_SIZE, FAKE_LOCAL_SIZE, FAKE_LOCAL_RANK    what Get says; unset: not found
 *     FAKE_FILE                        what rank 0 put is kept there
 *     FAKE_BROKEN=NAME                 the function of that name (PMIx_Fence) fails
 */
#include <pmix.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static bool is_broken(const char *function)
{
    const char *broken = getenv("FAKE_BROKEN");

    return broken && strcmp(broken, function) == 0;
}

EXPORT pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t ninfo)
{
    if (is_broken(__func__))
        return PMIX_ERR_UNREACH;
    memset(proc, 0, sizeof(*proc));
    snprintf(proc->nspace, sizeof(proc->nspace), "%s", getenv("PMIX_NAMESPACE"));
    proc->rank = (pmix_rank_t)atoi(getenv("PMIX_RANK"));
    return PMIX_SUCCESS;
}

EXPORT pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t ninfo)
{
    return PMIX_SUCCESS;
}

EXPORT pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *val)
{
    FILE *file = is_broken(__func__) ? NULL : fopen(getenv("FAKE_FILE"), "wb");

    if (!file)
        return PMIX_ERR_UNREACH;
    fprintf(file, "%s\n", key);
    fwrite(val->data.bo.bytes, 1, val->data.bo.size, file);
    fclose(file);
    return PMIX_SUCCESS;
}

EXPORT pmix_status_t PMIx_Commit(void)
{
    char done[4096];

    snprintf(done, sizeof(done), "%s.done", getenv("FAKE_FILE"));
    return rename(getenv("FAKE_FILE"), done) ? PMIX_ERR_UNREACH : PMIX_SUCCESS;
}

/* Long enough for rank 0 to come. */
EXPORT pmix_status_t PMIx_Fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                                size_t ninfo)
{
    char done[4096];

    snprintf(done, sizeof(done), "%s.done", getenv("FAKE_FILE"));
    for (int i = 0; i < 300 && !is_broken(__func__); i++) {
        if (access(done, R_OK) == 0)
            return PMIX_SUCCESS;
        usleep(10000);
    }
    return PMIX_ERR_TIMEOUT;
}

static pmix_status_t get_shared(const char *wanted, pmix_value_t *value)
{
    char done[4096], key[PMIX_MAX_KEYLEN + 2];
    FILE *file;

    snprintf(done, sizeof(done), "%s.done", getenv("FAKE_FILE"));
    file = fopen(done, "rb");
    if (!file)
        return PMIX_ERR_NOT_FOUND;
    value->type = PMIX_BYTE_OBJECT;
    value->data.bo.bytes = malloc(4096);
    if (!fgets(key, sizeof(key), file))
        key[0] = '\0';
    value->data.bo.size = fread(value->data.bo.bytes, 1, 4096, file);
    fclose(file);
    return strncmp(key, wanted, strlen(wanted)) ? PMIX_ERR_NOT_FOUND : PMIX_SUCCESS;
}

EXPORT pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                              size_t ninfo, pmix_value_t **val)
{
    static const struct {
        const char *key, *variable;
    } known[] = {{PMIX_JOB_SIZE, "FAKE_SIZE"},
                 {PMIX_LOCAL_SIZE, "FAKE_LOCAL_SIZE"},
                 {PMIX_LOCAL_RANK, "FAKE_LOCAL_RANK"}};

    *val = calloc(1, sizeof(**val));
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const char *number = strcmp(key, known[i].key) ? NULL : getenv(known[i].variable);

        if (!number)
            continue;
        (*val)->type = i == 2 ? PMIX_UINT16 : PMIX_UINT32;
        if (i == 2)
            (*val)->data.uint16 = (uint16_t)atoi(number);
        else
            (*val)->data.uint32 = (uint32_t)atoi(number);
        return PMIX_SUCCESS;
    }
    return get_shared(key, *val);
}

EXPORT const char *PMIx_Error_string(pmix_status_t status)
{
    return status == PMIX_ERR_TIMEOUT   ? "TIMEOUT"
           : status == PMIX_ERR_UNREACH ? "UNREACHABLE"
                                        : "OTHER";
}
