/* SPDX-License-Identifier: BSD-3-Clause */
/* stack.c - the stack of a process, by the tool that is there and within a time. */
#include "cli/ps/ps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINES = 24 };

static void write_lines(FILE *to, const char *text, size_t length)
{
    const char *end = text + length;

    for (int line = 0; line < LINES && text < end; line++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        size_t bytes = (size_t)((newline ? newline : end) - text);

        fprintf(to, "      ");
        for (size_t i = 0; i < bytes && i < 200; i++)
            fputc(text[i] < ' ' || text[i] > '~' ? '?' : text[i], to);
        fputc('\n', to);
        text += bytes + 1;
    }
}

/* The kernel's own stack of the thread; only root may see it. */
static void write_kernel_stack(FILE *to, const struct recorder_identity *identity)
{
    char path[64], text[4096];
    ssize_t length;
    int file;

    snprintf(path, sizeof(path), "/proc/%d/task/%d/stack", identity->pid, identity->tid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    length = read(file, text, sizeof(text));
    close(file);
    if (length > 0)
        write_lines(to, text, (size_t)length);
}

void ps_write_stack(FILE *to, const struct sighting *sighting)
{
    static char tool[] = "eu-stack", process[] = "-p";
    const struct recorder_identity *identity = &sighting->record.identity;
    char number[16];
    char *argv[] = {tool, process, number, NULL};
    struct ps_output output;

    if (sighting->process.life != SIGHTING_ALIVE)
        return;
    fprintf(to, "    stack of process %d, rank %d:\n", identity->pid, identity->rank);
    write_kernel_stack(to, identity);
    snprintf(number, sizeof(number), "%d", identity->pid);
    if (!ps_start(argv, &output)) {
        fprintf(to, "      (eu-stack cannot be run: %s)\n", strerror(errno));
        return;
    }
    ps_collect(&output, 1, PATIENCE_STACK);
    if (!output.length)
        fprintf(to,
                "      (eu-stack says nothing: the system does not let us look, or it took "
                "more than %g s)\n",
                PATIENCE_STACK);
    write_lines(to, output.text, output.length);
    free(output.text);
}
