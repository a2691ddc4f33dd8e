/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - the RONDO_ variables of the environment: is there such a setting, and is its
 * value one of its type? A misspelt name is silently ignored by the library, so it is found here.
 */
#include "cli/doctor/report.h"

#include "base/fail.h"
#include "base/setting.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

enum { NAME_MAX_LENGTH = 64, FAR = 1000 };

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

static int setting_by_name(const char *name)
{
    for (int id = 0; id < SETTINGS; id++)
        if (!strcmp(setting_at(id)->name, name))
            return id;
    return -1;
}

static void say_unknown(struct doctor_report *report, const char *name)
{
    const struct setting *nearest = setting_at(0);
    char remedy[128];

    for (int id = 1; id < SETTINGS; id++)
        if (edits_between(name, setting_at(id)->name) < edits_between(name, nearest->name))
            nearest = setting_at(id);
    snprintf(remedy, sizeof(remedy), "the nearest name is %s; otherwise unset it", nearest->name);
    doctor_say(report, DOCTOR_FAIL, "settings", remedy, "there is no setting %.200s", name);
}

static void say_known(struct doctor_report *report, enum setting_id id, const char *value)
{
    const struct setting *setting = setting_at(id);
    char remedy[160];

    if (setting_check(id)) {
        snprintf(remedy, sizeof(remedy), "correct it or unset it; the default is '%s'",
                 setting->fallback);
        doctor_say(report, DOCTOR_FAIL, "settings", remedy, "%s", fail_sentence());
    } else {
        /* The secret opens the job to whoever reads it: it is never shown. */
        doctor_say(report, DOCTOR_OK, "settings", NULL, "%s=%.200s", setting->name,
                   id == SETTING_SECRET ? "(set, not shown)" : value);
    }
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void say_all(struct doctor_report *report, char **variables, int count)
{
    qsort(variables, (size_t)count, sizeof(*variables), compare_names);
    for (int i = 0; i < count; i++) {
        char name[256];
        size_t length = strcspn(variables[i], "=");
        int id;

        snprintf(name, sizeof(name), "%.*s", (int)length, variables[i]);
        id = setting_by_name(name);
        if (id < 0)
            say_unknown(report, name);
        else
            say_known(report, (enum setting_id)id, variables[i] + length + 1);
    }
}

void doctor_check_settings(struct doctor_report *report)
{
    char *variables[DOCTOR_LINES_MAX / 2];
    int count = 0;

    for (char **variable = environ; variable && *variable; variable++)
        if (!strncmp(*variable, "RONDO_", 6) && strchr(*variable, '=') &&
            count < DOCTOR_LINES_MAX / 2)
            variables[count++] = *variable;
    if (!count)
        doctor_say(report, DOCTOR_OK, "settings", NULL, "no RONDO_ variable is set: defaults hold");
    say_all(report, variables, count);
}
