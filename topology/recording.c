/* SPDX-License-Identifier: BSD-3-Clause */
/* recording.c - the child that reads a recorded machine, and its parent (see recording.h). */
#include "topology/recording.h"

#include "base/caller/descriptor.h"
#include "base/caller/times.h"
#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_BYTES = 64 << 20 };
static const rlim_t most_memory = (rlim_t)2 << 30; /* bytes, beyond what the process has */

enum verdict { UNDERSTOOD = 1, NO_MACHINE };

/* The report that the child sends first. */
struct report {
    uint64_t verdict, bytes;
};

hwloc_topology_t topology_prepare(void)
{
    hwloc_topology_t hwloc;

    if (hwloc_topology_init(&hwloc))
        return NULL;
    hwloc_topology_set_io_types_filter(hwloc, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    hwloc_topology_set_type_filter(hwloc, HWLOC_OBJ_MISC, HWLOC_TYPE_FILTER_KEEP_ALL);
    /* Ranks in CPU sets of different containers compare the numbers of their places. */
    hwloc_topology_set_flags(hwloc, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    return hwloc;
}

/* ---- The child ------------------------------------------------------------------------------- */

/* At once, with none of the program's handlers: what counts is what the parent has been told. */
_Noreturn static void end_child(void)
{
    for (;;)
        kill(getpid(), SIGKILL);
}

static void send_all(int file, const void *bytes, size_t count)
{
    for (const char *at = bytes; count;) {
        ssize_t some = write(file, at, count);

        if (some < 0 && errno != EINTR)
            end_child();
        at += some > 0 ? some : 0;
        count -= some > 0 ? (size_t)some : 0;
    }
}

/* Nobody is to wait for a child that runs in circles, nor to find its core; its crash is no news
 * for a handler of the program. */
static void limit_child(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU, SIGPIPE};
    const struct rlimit seconds = {PATIENCE_TOPOLOGY, PATIENCE_TOPOLOGY + 1}, none = {0, 0};
    unsigned long pages = 0;
    FILE *file = descriptor_stream("/proc/self/statm", "r");

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &none);
    setrlimit(RLIMIT_CPU, &seconds);
    if (file && fscanf(file, "%*u %*u %*u %*u %*u %lu", &pages) == 1) {
        rlim_t bytes = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + most_memory;
        const struct rlimit memory = {bytes, bytes};

        setrlimit(RLIMIT_DATA, &memory);
    }
    if (file)
        fclose(file);
}

static hwloc_topology_t load(const char *xml, size_t bytes)
{
    hwloc_topology_t hwloc = topology_prepare();

    if (!hwloc || hwloc_topology_set_xmlbuffer(hwloc, xml, (int)bytes) ||
        hwloc_topology_load(hwloc))
        return NULL;
    return hwloc;
}

/* Checks that hwloc shows what it and we take for granted of every machine: it ends the process if
 * not. */
static bool is_machine(hwloc_topology_t hwloc)
{
    if (!hwloc || hwloc_get_root_obj(hwloc)->type != HWLOC_OBJ_MACHINE ||
        hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_PU) < 1 ||
        hwloc_get_nbobjs_by_type(hwloc, HWLOC_OBJ_NUMANODE) < 1)
        return false;
    hwloc_topology_check(hwloc);
    return true;
}

_Noreturn static void read_in_child(const char *xml, size_t bytes, int to)
{
    struct report report = {.verdict = NO_MACHINE};
    hwloc_topology_t hwloc;
    char *text = NULL;
    int length = 0;

    limit_child();
    hwloc = load(xml, bytes);
    if (hwloc && !hwloc_topology_export_xmlbuffer(hwloc, &text, &length, 0) && length > 0 &&
        is_machine(load(text, (size_t)length)))
        report = (struct report){.verdict = UNDERSTOOD, .bytes = (uint64_t)length};
    send_all(to, &report, sizeof(report));
    send_all(to, text, (size_t)report.bytes);
    end_child();
}

/* ---- The parent ------------------------------------------------------------------------------ */

static bool receive_all(int file, void *bytes, size_t count)
{
    for (char *at = bytes; count;) {
        ssize_t some = read(file, at, count);

        if (some == 0 || (some < 0 && errno != EINTR))
            return false;
        at += some > 0 ? some : 0;
        count -= some > 0 ? (size_t)some : 0;
    }
    return true;
}

static rondo_result out_of_memory(const char *name)
{
    return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while reading the recorded machine %s",
                      name);
}

/* All of the file, terminated; its end may come before `bytes`. */
static rondo_result read_file(const char *name, char **ret_text, size_t *ret_bytes)
{
    int file = descriptor_above(open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status;
    rondo_result result = RONDO_OK;
    char *text;

    if (file < 0 || fstat(file, &status)) {
        result = rondo_fail_errno(RONDO_ERROR_INVALID, "cannot read the recorded machine %s", name);
    } else if (!S_ISREG(status.st_mode) || status.st_size > MOST_BYTES) {
        result = rondo_fail(RONDO_ERROR_INVALID,
                            "%s is not a recorded machine: it is no file of at most %d MiB", name,
                            MOST_BYTES >> 20);
    } else {
        text = calloc(1, (size_t)status.st_size + 1);
        if (!text) {
            result = out_of_memory(name);
        } else if (receive_all(file, text, (size_t)status.st_size)) {
            *ret_text = text;
            *ret_bytes = (size_t)status.st_size + 1;
        } else {
            free(text);
            result = rondo_fail(RONDO_ERROR_SYSTEM, "cannot read the recorded machine %s", name);
        }
    }
    if (file >= 0)
        close(file);
    return result;
}

/* Reads what the child sends, if it comes to that; no text: it had no answer. */
static rondo_result hear(int from, const char *name, struct report *ret_report, char **ret_text)
{
    char *text;

    if (!receive_all(from, ret_report, sizeof(*ret_report))) {
        *ret_report = (struct report){0};
        return RONDO_OK;
    }
    if (ret_report->verdict != UNDERSTOOD || ret_report->bytes > INT_MAX)
        return RONDO_OK;
    text = calloc(1, ret_report->bytes + 1);
    if (!text)
        return out_of_memory(name);
    if (receive_all(from, text, ret_report->bytes))
        *ret_text = text;
    else
        free(text);
    return RONDO_OK;
}

/* `status`: of waitpid(), if the program left it to us. */
static rondo_result refuse(const char *name, const struct report *report, bool waited, int status)
{
    char why[128] = "hwloc did not survive reading it";

    if (report->verdict == NO_MACHINE)
        snprintf(why, sizeof(why), "hwloc cannot read a machine from it");
    else if (waited && WIFSIGNALED(status))
        snprintf(why, sizeof(why), "hwloc did not survive reading it (%s)",
                 strsignal(WTERMSIG(status)));
    return rondo_fail(RONDO_ERROR_INVALID,
                      "%s is not a recorded machine: %s; `rondo topo --xml FILE` or "
                      "`lstopo FILE.xml` writes one",
                      name, why);
}

rondo_result topology_read_recording(const char *name, char **ret_xml, size_t *ret_bytes)
{
    struct report report = {0};
    size_t bytes = 0;
    char *text = NULL, *understood = NULL;
    int ends[2], status = 0;
    bool waited;
    pid_t child;
    rondo_result result = read_file(name, &text, &bytes);

    if (result)
        return result;
    if (descriptor_pipe(ends)) {
        free(text);
        return rondo_fail_errno(RONDO_ERROR_SYSTEM, "cannot read the recorded machine %s", name);
    }
    child = fork();
    if (!child)
        read_in_child(text, bytes, ends[1]);
    if (child < 0)
        result =
            rondo_fail_errno(RONDO_ERROR_SYSTEM,
                             "cannot start the process that reads the recorded machine %s", name);
    close(ends[1]);
    if (!result)
        result = hear(ends[0], name, &report, &understood);
    close(ends[0]);
    waited = child > 0 && waitpid(child, &status, 0) == child;
    free(text);
    if (!result && !understood)
        result = refuse(name, &report, waited, status);
    if (!result) {
        *ret_xml = understood;
        *ret_bytes = (size_t)report.bytes;
    }
    return result;
}
