/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - the lines of `rondo doctor`, and the checks that add them. A check tries the
 * thing itself where it can, says in one sentence what it found, and with anything but "ok" what to
 * do about it.
 */
#ifndef RONDO_CLI_DOCTOR_REPORT_H
#define RONDO_CLI_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stdio.h>

enum doctor_grade {
    DOCTOR_OK,
    DOCTOR_NOTE, /* Rondo works, but slower or without something */
    DOCTOR_FAIL  /* Rondo does not work until this is mended */
};

enum { DOCTOR_LINES_MAX = 128, DOCTOR_TEXT_MAX = 512 };

struct doctor_line {
    enum doctor_grade grade;
    const char *subject; /* "shared heap" */
    char found[DOCTOR_TEXT_MAX];
    char remedy[DOCTOR_TEXT_MAX]; /* "" if nothing is to be done */
};

struct doctor_report {
    int count;
    struct doctor_line line[DOCTOR_LINES_MAX];
};

/*
 * `remedy` may be NULL; the rest is the sentence, as for printf. Lines beyond the maximum are
 * dropped.
 */
void doctor_say(struct doctor_report *report, enum doctor_grade grade, const char *subject,
                const char *remedy, const char *format, ...) __attribute__((format(printf, 5, 6)));
int doctor_count(const struct doctor_report *report, enum doctor_grade grade);
void doctor_print(const struct doctor_report *report, FILE *to);
/* "-" is stdout. False: it could not be written, and stderr says why. */
bool doctor_write_json(const struct doctor_report *report, const char *file);

/*
 * processes.c: what ranks of one machine need from the operating system to reach each other.
 */
void doctor_check_processes(struct doctor_report *report);
/* limits.c: memory, files, address space, pages. */
void doctor_check_limits(struct doctor_report *report);
/* machine.c: cores, kernels, devices, launchers. */
void doctor_check_machine(struct doctor_report *report);
void doctor_check_devices(struct doctor_report *report);
void doctor_check_launchers(struct doctor_report *report);
/* rdma.c: ports, addresses, and what else RDMA needs. */
void doctor_check_rdma(struct doctor_report *report);
/* cuda.c: the driver of GPUs, the devices, and who reaches whom. */
void doctor_check_cuda(struct doctor_report *report);
void doctor_check_gpudirect(struct doctor_report *report);
/* settings.c: the RONDO_ variables of the environment. */
void doctor_check_settings(struct doctor_report *report);

#endif
