/* SPDX-License-Identifier: BSD-3-Clause */
/* read.c - the files of a job. */
#include "cli/trace/trace.h"

#include "cli/common/json_file.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const char *traced_name(const struct traced *traced, const struct traced_call *call)
{
    return traced->files[call->file].page->name[call->name];
}

const struct trace_comm *traced_comm(const struct traced *traced, const struct traced_call *call)
{
    return &traced->files[call->file].page->comm[call->comm];
}

int traced_rank(const struct traced_file *file)
{
    return file->page->header.rank >= 0 ? file->page->header.rank : file->page->comm[0].rank;
}

bool step_moves(const struct traced_step *step)
{
    return step->verb == PLAN_COPY || step->verb == PLAN_REDUCE;
}

/* ---- Files ----------------------------------------------------------------------------------- */

uint32_t traced_comms(const struct trace_page *page)
{
    uint32_t count = atomic_load_explicit(&page->header.comms, memory_order_relaxed);

    return count < TRACE_COMMS ? count : TRACE_COMMS;
}

/* Names come from a file that anybody may have written: they end, they are UTF-8, and no sign of
 * theirs means something in JSON or to a terminal. */
static void clean(char *text, size_t size)
{
    text[size - 1] = 0;
    json_text_clean(text);
    for (; *text; text++)
        if (*text == '"' || *text == '\\')
            *text = '?';
}

/* Private, as clean() writes into it. NULL, or why the file is left out. */
static const char *map(const char *path, struct traced_file *ret_file)
{
    struct stat status = {0};
    struct trace_page *page = MAP_FAILED;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    const char *why = NULL;
    size_t bytes;

    if (file < 0)
        return strerror(errno);
    if (!fstat(file, &status) && S_ISREG(status.st_mode) &&
        (size_t)status.st_size >= sizeof(struct trace_page))
        page = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    close(file);
    if (page == MAP_FAILED)
        return "it is cut off, or no trace";
    bytes = (size_t)status.st_size;
    if (page->header.magic != TRACE_MAGIC)
        why = "it is no trace";
    else if (page->header.version != TRACE_VERSION)
        why = "another version of Rondo wrote it";
    else if (page->header.room > (bytes - sizeof(*page)) / sizeof(struct trace_event))
        why = "it is cut off";
    if (why) {
        munmap(page, bytes);
        return why;
    }
    clean(page->header.host, sizeof(page->header.host));
    clean(page->header.program, sizeof(page->header.program));
    for (int i = 0; i < TRACE_NAMES; i++) {
        clean(page->name[i], TRACE_NAME);
        clean(page->sum[i].algorithm, sizeof(page->sum[i].algorithm));
    }
    *ret_file = (struct traced_file){.page = page, .mapped = bytes};
    snprintf(ret_file->path, sizeof(ret_file->path), "%s", path);
    return NULL;
}

/* Finds all files whose names begin with FILE and a point. FILE is no pattern. */
static void find_files(const char *file, glob_t *ret_found)
{
    char *pattern = malloc(2 * strlen(file) + sizeof(".*")), *to = pattern;

    for (const char *from = file; to && *from; from++) {
        if (strchr("*?[\\", *from))
            *to++ = '\\';
        *to++ = *from;
    }
    if (to) {
        strcpy(to, ".*");
        glob(pattern, 0, NULL, ret_found);
    }
    free(pattern);
}

/* Outputs of this command may begin like the files of ranks; we name only the latter. */
static void tell_left_out(const char *path, const char *ending, const char *why)
{
    static const char process[] = "process-";

    if (!strncmp(ending, process, strlen(process)))
        ending += strlen(process);
    if (*ending && !ending[strspn(ending, "0123456789")])
        fprintf(stderr, "rondo trace: %s is left out: %s\n", path, why);
}

static bool share_a_communicator(const struct trace_page *a, const struct trace_page *b)
{
    for (uint32_t i = 0; i < traced_comms(a); i++)
        for (uint32_t j = 0; j < traced_comms(b); j++)
            if (a->comm[i].id == b->comm[j].id)
                return true;
    return false;
}

static void swap(struct traced_file *a, struct traced_file *b)
{
    struct traced_file kept = *a;

    *a = *b;
    *b = kept;
}

/* Keeps the job of the file that was made last: files which are connected by communicators. Files
 * of earlier jobs with more ranks lie beside it. */
static void keep_last_job(struct traced *traced)
{
    struct traced_file *files = traced->files;
    int kept = 1, newest = 0;

    for (int i = 1; i < traced->file_count; i++)
        if (files[i].page->header.opened > files[newest].page->header.opened)
            newest = i;
    swap(&files[0], &files[newest]);
    for (int from = 0; from < kept; from++)
        for (int i = kept; i < traced->file_count; i++)
            if (share_a_communicator(files[from].page, files[i].page))
                swap(&files[kept++], &files[i]);
    for (int i = kept; i < traced->file_count; i++)
        munmap(files[i].page, files[i].mapped);
    traced->left_out = traced->file_count - kept;
    traced->file_count = kept;
}

static int by_rank(const void *a, const void *b)
{
    const struct traced_file *one = a, *other = b;
    int a_rank = traced_rank(one), b_rank = traced_rank(other);
    int a_pid = one->page->header.pid, b_pid = other->page->header.pid;

    if (a_rank != b_rank)
        return a_rank < b_rank ? -1 : 1;
    return a_pid < b_pid ? -1 : a_pid > b_pid;
}

bool traced_read(const char *file, struct traced *ret_traced)
{
    glob_t found = {0};
    bool good = true;

    *ret_traced = (struct traced){0};
    find_files(file, &found);
    if (found.gl_pathc)
        ret_traced->files = calloc(found.gl_pathc, sizeof(*ret_traced->files));
    for (size_t i = 0; i < found.gl_pathc && ret_traced->files; i++) {
        const char *path = found.gl_pathv[i];
        const char *why = map(path, &ret_traced->files[ret_traced->file_count]);

        if (why)
            tell_left_out(path, path + strlen(file) + 1, why);
        ret_traced->file_count += !why;
    }
    globfree(&found);
    if (!ret_traced->file_count) {
        fprintf(stderr,
                "rondo trace: no file %s.RANK is a trace; run the job with RONDO_TRACE=%s or "
                "RONDO_PROFILE=%s\n",
                file, file, file);
        return false;
    }
    keep_last_job(ret_traced);
    qsort(ret_traced->files, (size_t)ret_traced->file_count, sizeof(*ret_traced->files), by_rank);
    for (int i = 0; i < ret_traced->file_count && good; i++)
        good = traced_take_events(ret_traced, i);
    if (!good)
        fprintf(stderr, "rondo trace: not enough memory for the trace\n");
    return good;
}

void traced_done(struct traced *traced)
{
    for (int i = 0; i < traced->file_count; i++)
        munmap(traced->files[i].page, traced->files[i].mapped);
    free(traced->files);
    free(traced->calls);
    free(traced->steps);
    free(traced->spans);
    free(traced->messages);
    free(traced->queued);
}
