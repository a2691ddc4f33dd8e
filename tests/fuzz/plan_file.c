/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan_file.c - a file of plans that anybody may have written (plan/file/), and its proof. What is
 * accepted is written and read once more, and stays the same.
 */
#include "tests/fuzz/fuzz.h"

#include "collectives/file/file.h"

#include <stdlib.h>
#include <string.h>

static char *write_text(const struct plan_file *file, size_t *ret_length)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, ret_length);

    fuzz_expect(to, "there is memory for a text");
    plan_file_write(file->plans, file->size, NULL, to);
    fuzz_expect(!fclose(to), "a text in memory is written");
    return text;
}

static void go_round(const struct plan_file *file)
{
    struct plan_file *again = NULL;
    size_t length, length_again;
    char *text = write_text(file, &length), *text_again;

    fuzz_expect(!plan_file_parse("text", text, length, &again), "what was written is read");
    text_again = write_text(again, &length_again);
    fuzz_expect(length == length_again && !memcmp(text, text_again, length),
                "a plan stays the same");
    plan_file_close(again);
    free(text);
    free(text_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct plan_file *file = NULL;
    struct verify_report report;
    unsigned promises;

    if (plan_file_parse("input", (const char *)bytes, count, &file))
        return 0;
    go_round(file);
    if (file->size <= 16) /* larger ones take long, and no other way */
        (void)!file_prove(file, "input", 0, &report, &promises);
    plan_file_close(file);
    return 0;
}
