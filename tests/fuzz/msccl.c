/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * msccl.c - an algorithm of MSCCL that anybody may have written (cli/msccl/), and its proof. What
 * is proved is written as one again, where there is a form of it.
 */
#include "tests/fuzz/fuzz.h"

#include "cli/msccl/write.h"
#include "collectives/file/file.h"
#include "plan/msccl/msccl.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct plan_file *file = NULL;
    struct verify_report report;
    unsigned promises;
    char *text = NULL;
    size_t length;
    FILE *to;

    if (msccl_parse("input", (const char *)bytes, count, &file))
        return 0;
    if (file->size <= 16 && !file_prove(file, "input", 0, &report, &promises)) {
        to = open_memstream(&text, &length);
        fuzz_expect(to, "there is memory for a text");
        (void)!msccl_write(file->plans, file->size, to);
        fuzz_expect(!fclose(to), "a text in memory is written");
        free(text);
    }
    plan_file_close(file);
    return 0;
}
