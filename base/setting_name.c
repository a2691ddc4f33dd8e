/* SPDX-License-Identifier: BSD-3-Clause */
/* setting_name.c - names of variables: those of the table, and which one a misspelt name means. */
#include "base/setting.h"

#include "base/log.h"

#include <stdatomic.h>
#include <string.h>

extern char **environ;

enum { NAME_MAX_LENGTH = 64, FAR = 1000, PREFIX_LENGTH = 6, LETTERS_PER_EDIT = 3 };

static int least(int a, int b, int c)
{
    int ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Letters to insert, remove or replace to make one of the other. */
static int edits_between(const char *a, const char *b)
{
    int row[NAME_MAX_LENGTH + 1];
    int columns = (int)strlen(b);

    if (columns > NAME_MAX_LENGTH || strlen(a) > NAME_MAX_LENGTH)
        return FAR;
    for (int j = 0; j <= columns; j++)
        row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int diagonal = row[0];

        row[0] = i;
        for (int j = 1; j <= columns; j++) {
            int above = row[j];

            row[j] = least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[columns];
}

int setting_find(const char *name)
{
    for (int id = 0; id < SETTINGS; id++)
        if (!strcmp(setting_at((enum setting_id)id)->name, name))
            return id;
    return -1;
}

const struct setting *setting_nearest(const char *name)
{
    const struct setting *nearest = NULL;
    int fewest = FAR, letters = (int)strlen(name) - PREFIX_LENGTH;

    for (int id = 0; id < SETTINGS; id++) {
        const struct setting *setting = setting_at((enum setting_id)id);
        int edits = edits_between(name, setting->name);

        if (edits < fewest) {
            nearest = setting;
            fewest = edits;
        }
    }
    return fewest * LETTERS_PER_EDIT <= letters ? nearest : NULL;
}

static void warn_of(const char *name)
{
    const struct setting *nearest = setting_nearest(name);

    if (nearest)
        log_warn("%s is no setting of Rondo; did you mean %s?", name, nearest->name);
    else
        log_warn("%s is no setting of Rondo; docs/configuration.md has the list", name);
}

void setting_warn_of_strangers(void)
{
    static atomic_flag told = ATOMIC_FLAG_INIT;

    /* Relaxed: only one thread may go on, and nothing else is published with it. */
    if (!log_wants(LOG_WARN) || atomic_flag_test_and_set_explicit(&told, memory_order_relaxed))
        return;
    for (char **variable = environ; variable && *variable; variable++) {
        char name[256];
        size_t length = strcspn(*variable, "=");

        if (strncmp(*variable, "RONDO_", PREFIX_LENGTH) != 0 || length >= sizeof(name) ||
            !(*variable)[length] || !(*variable)[length + 1])
            continue; /* an empty variable is as good as none */
        memcpy(name, *variable, length);
        name[length] = '\0';
        if (setting_find(name) < 0)
            warn_of(name);
    }
}
