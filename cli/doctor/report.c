/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - collects the lines of `rondo doctor`, prints them, writes them as JSON. */
#include "cli/doctor/report.h"

#include "cli/common/json_file.h"

#include <stdarg.h>

static const char *const grades[] = {"ok", "note", "FAIL"};

void doctor_say(struct doctor_report *report, enum doctor_grade grade, const char *subject,
                const char *remedy, const char *format, ...)
{
    struct doctor_line *line;
    va_list arguments;

    if (report->count == DOCTOR_LINES_MAX)
        return;
    line = &report->line[report->count++];
    line->grade = grade;
    line->subject = subject;
    snprintf(line->remedy, sizeof(line->remedy), "%s", remedy ? remedy : "");
    va_start(arguments, format);
    vsnprintf(line->found, sizeof(line->found), format, arguments);
    va_end(arguments);
    json_text_clean(line->remedy);
    json_text_clean(line->found);
}

int doctor_count(const struct doctor_report *report, enum doctor_grade grade)
{
    int count = 0;

    for (int i = 0; i < report->count; i++)
        count += report->line[i].grade == grade;
    return count;
}

void doctor_print(const struct doctor_report *report, FILE *to)
{
    int failed = doctor_count(report, DOCTOR_FAIL);
    int notes = doctor_count(report, DOCTOR_NOTE);

    for (int i = 0; i < report->count; i++) {
        const struct doctor_line *line = &report->line[i];

        fprintf(to, "%-4s  %s: %s", grades[line->grade], line->subject, line->found);
        fprintf(to, line->remedy[0] ? " — %s\n" : "%s\n", line->remedy);
    }
    if (failed)
        fprintf(to, "\n%d thing%s to mend before Rondo works here\n", failed,
                failed == 1 ? "" : "s");
    else
        fprintf(to, "\nRondo works here%s\n", notes ? "; notes say what could be better" : "");
}

bool doctor_write_json(const struct doctor_report *report, const char *file)
{
    json_t *lines = json_array(), *all = NULL;
    bool good = true;

    for (int i = 0; i < report->count && good; i++) {
        const struct doctor_line *line = &report->line[i];

        good = !json_array_append_new(
            lines, json_pack("{s:s,s:s,s:s,s:s}", "grade", grades[line->grade], "subject",
                             line->subject, "found", line->found, "remedy", line->remedy));
    }
    if (good)
        all = json_pack("{s:b,s:O}", "works", !doctor_count(report, DOCTOR_FAIL), "lines", lines);
    json_decref(lines);
    return json_file_write("rondo doctor", file, all);
}
