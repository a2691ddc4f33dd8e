/* SPDX-License-Identifier: BSD-3-Clause */
/* lines.c - see lines.h. */
#include "cli/common/lines.h"

#include <stdio.h>
#include <string.h>

bool line_after(const char *file, const char *key, char *text, size_t room)
{
    FILE *from = fopen(file, "re");
    bool found = false;
    char line[512];

    *text = 0;
    while (from && !found && fgets(line, sizeof(line), from)) {
        found = !strncmp(line, key, strlen(key));
        line[strcspn(line, "\n")] = 0;
        if (found)
            snprintf(text, room, "%s", line + strlen(key));
    }
    if (from)
        fclose(from);
    return found;
}
