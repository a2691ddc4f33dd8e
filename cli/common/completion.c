/* SPDX-License-Identifier: BSD-3-Clause */
/* completion.c - what a shell may offer after a command: its options. */
#include "cli/common/completion.h"

#include <stdio.h>

void completion_word(const char *word, const char *value, const char *help)
{
    printf("%s\t%s\t", word, value ? value : "-");
    printf("-\t%s\n", help ? help : "");
}

static void print_option(const struct argument *row)
{
    const char *const *words = row->effect.words;

    if (row->name)
        printf("--%s\t", row->name);
    else
        printf("-%c\t", row->letter);
    printf("%s\t", row->value ? row->value : "-");
    if (!words)
        printf("-");
    for (int i = 0; words && words[i]; i++)
        printf("%s%s", i ? " " : "", words[i]);
    printf("\t%s\n", row->help);
}

void completion_print(const struct argument_command *command)
{
    for (const struct argument *row = command->table; row->name || row->letter; row++)
        if (row->help)
            print_option(row);
}
