/* SPDX-License-Identifier: BSD-3-Clause */
/* json_file.c - a file is good when it has been closed without an error, not before. */
#include "cli/common/json_file.h"

#include "cli/common/output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

bool json_file_write(const char *command, const char *file, json_t *json)
{
    FILE *to = NULL;
    bool failed = true;

    errno = ENOMEM; /* unless the file is to blame */
    if (json)
        to = output_open(file);
    if (to) {
        failed = json_dumpf(json, to, JSON_INDENT(2) | JSON_REAL_PRECISION(6)) != 0;
        fprintf(to, "\n");
        failed |= !output_close(to);
    }
    if (failed)
        fprintf(stderr, "%s: cannot write %s: %s\n", command, file, strerror(errno));
    json_decref(json);
    return !failed;
}

void json_text_clean(char *text)
{
    json_t *utf8 = json_string(text);

    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127 || (!utf8 && (unsigned char)*text > 127))
            *text = '?';
    json_decref(utf8);
}
