/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * settings.c - the RONDO_ variables of the environment: is there such a setting, and is its
 * value one of its type? The library warns of a misspelt name once; here it is a fault.
 */
#include "cli/doctor/report.h"

#include "base/fail.h"
#include "base/setting.h"

#include <stdlib.h>
#include <string.h>

extern char **environ;

static void say_unknown(struct doctor_report *report, const char *name)
{
    const struct setting *nearest = setting_nearest(name);
    char remedy[128] = "unset it; docs/configuration.md has the list";

    if (nearest)
        snprintf(remedy, sizeof(remedy), "the nearest name is %s; otherwise unset it",
                 nearest->name);
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
        id = setting_find(name);
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
