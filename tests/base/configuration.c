/* SPDX-License-Identifier: BSD-3-Clause */
/* configuration.c - prints docs/configuration.md from the table of settings. */
#include "base/setting.h"

#include <stdio.h>

static const char head[] =
    "<!-- Made from base/setting.c by tests/base/configuration.c; a test compares the two. -->\n"
    "# Configuration\n"
    "\n"
    "Rondo reads environment variables when a communicator is opened; commands of `rondo`\n"
    "read those of which it says so. A field that is set in `rondo_config` goes before its\n"
    "variable; an empty variable is as good as none. `RONDO_ALGORITHM`, `RONDO_DETERMINISTIC`,\n"
    "`RONDO_SLOT_BYTES`, `RONDO_SLOTS`, `RONDO_SECURITY`, `RONDO_COSTS`, `RONDO_GROUPS`,\n"
    "`RONDO_UNIFORM`, `RONDO_COPY_ENGINES` and `RONDO_TRANSPORT`\n"
    "must be the same on every rank: what differs is refused at the start. So must\n"
    "`RONDO_CUDA_PIECE`: ranks that cut differently find that out in the call.\n"
    "\n"
    "| Variable | Default | Accepted | Meaning |\n"
    "| --- | --- | --- | --- |\n";

/* In a table of Markdown a bar ends the cell. */
static void print_cell(const char *text)
{
    for (; *text; text++)
        printf(*text == '|' ? "\\|" : "%c", *text);
}

int main(void)
{
    fputs(head, stdout);
    for (int id = 0; id < SETTINGS; id++) {
        const struct setting *setting = setting_at((enum setting_id)id);
        char accepted[160];

        setting_accepts(setting, accepted, sizeof(accepted));
        printf("| `%s` | ", setting->name);
        if (*setting->fallback)
            printf("`%s`", setting->fallback);
        else
            printf("not set");
        printf(" | %s | ", accepted);
        print_cell(setting->sentence);
        printf(" |\n");
    }
    return 0;
}
