/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.c - files of a traced job that anybody may have written, and all that is made of them
 * (cli/trace/). A file is some 200 kB, most of it empty: the input says what is where.
 */
#include "tests/fuzz/fuzz.h"

#include "cli/trace/trace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES = 3, ROOM = 2 * TRACE_PIECE, LONGEST_PATH = 64 };

/* Says what the next bytes of an input are. */
enum what { EVENT, NAME, COMM, SUM, PROCESS, COUNTS, NEXT_FILE, WHATS };

static char folder[] = "/tmp/rondo-fuzz-XXXXXX";

static void path_of(int rank, char path[LONGEST_PATH])
{
    snprintf(path, LONGEST_PATH, "%s/trace.%d", folder, rank);
}

static void remove_files(int from)
{
    char path[LONGEST_PATH];

    for (int rank = from; rank < FILES; rank++) {
        path_of(rank, path);
        unlink(path);
    }
}

static void remove_folder(void)
{
    remove_files(0);
    rmdir(folder);
}

static void make_folder(void)
{
    static bool made;

    if (made)
        return;
    fuzz_expect(mkdtemp(folder), "there can be a folder");
    atexit(remove_folder);
    made = true;
}

static size_t page_bytes(void)
{
    return sizeof(struct trace_page) + ROOM * sizeof(struct trace_event);
}

/* A good file without events. */
static void begin_file(struct trace_page *page, int rank)
{
    memset(page, 0, page_bytes());
    page->header.magic = TRACE_MAGIC;
    page->header.version = TRACE_VERSION;
    page->header.room = ROOM;
    page->header.rank = page->comm[0].rank = rank;
    page->comm[0].size = FILES;
    atomic_init(&page->header.comms, 1);
}

static void take_counts(struct fuzz_input *input, struct trace_page *page)
{
    atomic_init(&page->header.comms, (uint32_t)fuzz_number(input, 4));
    atomic_init(&page->header.taken, fuzz_number(input, 8));
    page->header.room = (uint32_t)fuzz_number(input, 4);
}

static void take_event(struct fuzz_input *input, struct trace_page *page)
{
    uint64_t taken = atomic_load_explicit(&page->header.taken, memory_order_relaxed);

    fuzz_bytes(input, &page->events[taken % ROOM], sizeof(struct trace_event));
    atomic_init(&page->header.taken, taken + 1);
}

static void take_name(struct fuzz_input *input, struct trace_page *page)
{
    char *to = page->name[fuzz_byte(input)], *name = fuzz_text(input, '\0');

    strncpy(to, name, TRACE_NAME);
    free(name);
}

static void take(struct fuzz_input *input, enum what what, struct trace_page *page)
{
    struct trace_header *header = &page->header;

    switch (what) {
    case EVENT:
        take_event(input, page);
        return;
    case NAME:
        take_name(input, page);
        return;
    case COMM:
        fuzz_bytes(input, &page->comm[fuzz_byte(input)], sizeof(struct trace_comm));
        return;
    case SUM:
        fuzz_bytes(input, &page->sum[fuzz_byte(input)], sizeof(struct trace_sum));
        return;
    case PROCESS:
        fuzz_bytes(input, &header->pid,
                   offsetof(struct trace_header, host) - offsetof(struct trace_header, pid));
        fuzz_bytes(input, header->host, 8);
        return;
    default:
        take_counts(input, page);
    }
}

static void write_file(const struct trace_page *page, int rank)
{
    char path[LONGEST_PATH];
    FILE *file;

    path_of(rank, path);
    file = fopen(path, "we");
    fuzz_expect(file && fwrite(page, page_bytes(), 1, file) == 1 && !fclose(file),
                "a file can be written");
}

static void write_files(struct fuzz_input *input)
{
    struct trace_page *page = aligned_alloc(TRACE_LINE, page_bytes());
    int rank = 0;

    fuzz_expect(page, "there is memory for a file");
    for (; rank < FILES && (!rank || fuzz_has_more(input)); rank++) {
        enum what what;

        begin_file(page, rank);
        while (fuzz_has_more(input) && (what = fuzz_byte(input) % WHATS) != NEXT_FILE)
            take(input, what, page);
        write_file(page, rank);
    }
    free(page);
    remove_files(rank);
}

static void expect_json(bool (*write)(const struct traced *, const char *),
                        const struct traced *traced)
{
    size_t length;
    bool written;
    char *text;

    fuzz_listen();
    written = write(traced, "-");
    text = fuzz_heard(&length);
    fuzz_expect(written, "a text in memory is written");
    fuzz_expect_json(text, length);
    free(text);
}

static void tell(const struct traced *traced)
{
    size_t length;

    fuzz_listen();
    traced_report(traced);
    (void)!traced_svg(traced, "-");
    (void)!traced_prometheus(traced, "-");
    free(fuzz_heard(&length));
    expect_json(traced_json, traced);
    expect_json(traced_chrome, traced);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct fuzz_input input = {bytes, bytes + count};
    char path[LONGEST_PATH];
    struct traced traced;

    make_folder();
    write_files(&input);
    snprintf(path, sizeof(path), "%s/trace", folder);
    if (traced_read(path, &traced) && traced_align(&traced))
        tell(&traced);
    traced_done(&traced);
    return 0;
}
