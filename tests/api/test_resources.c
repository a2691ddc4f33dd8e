/* SPDX-License-Identifier: BSD-3-Clause */
/* test_resources.c - nothing is left behind: file descriptors,
 * shared memory; limits are met with a sentence. */
#include "bodies.h"
#include "failures.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct world_report report;

static int count_entries(const char *folder)
{
    DIR *directory = opendir(folder);
    int entries = 0;

    if (!directory)
        return 0;
    while (readdir(directory))
        entries++;
    closedir(directory);
    return entries;
}

/* Names in /dev/shm that have to do with us; others may come and go beside this test. */
static int count_shared_names(void)
{
    DIR *directory = opendir("/dev/shm");
    struct dirent *entry;
    int names = 0;

    if (!directory)
        return 0;
    while ((entry = readdir(directory)))
        names += strstr(entry->d_name, "rondo") != NULL;
    closedir(directory);
    return names;
}

static rondo_result some_work(rondo_comm *comm, void *argument, char *sentence)
{
    return bodies_all_reduce(comm, 5000, sentence);
}

/* tests/net/test_net.py does so a thousand times. */
Test(resources, opening_and_closing_two_hundred_times_keeps_no_descriptor)
{
    rondo_comm *comms[2];
    int before = 0;

    for (int i = 0; i < 200; i++) {
        cr_assert(rondo_comm_open_all(2, NULL, comms) == RONDO_OK, "cycle %d: %s", i,
                  rondo_last_error(NULL));
        rondo_comm_close(comms[0]);
        rondo_comm_close(comms[1]);
        if (i == 10)
            before = count_entries("/proc/self/fd");
    }
    cr_expect(count_entries("/proc/self/fd") <= before, "%d descriptors, %d at first",
              count_entries("/proc/self/fd"), before);
}

/* A communicator with its peers, again and again in the
 * same processes, by splitting; descriptors do not grow. */
static rondo_result split_often(rondo_comm *comm, void *argument, char *sentence)
{
    int before = 0;

    for (int i = 0; i < 100; i++) {
        rondo_comm *part = NULL;
        rondo_result result = rondo_comm_split(comm, i % 3, 0, NULL, &part);

        if (!result)
            result = bodies_all_reduce(part, 100, sentence);
        if (!result)
            result = rondo_comm_finalize(part);
        rondo_comm_close(part);
        if (result)
            return world_say(sentence, result, "%s", rondo_last_error(comm));
        if (i == 10)
            before = count_entries("/proc/self/fd");
    }
    if (count_entries("/proc/self/fd") > before)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "descriptors grew from %d to %d", before,
                         count_entries("/proc/self/fd"));
    return RONDO_OK;
}

Test(resources, splitting_a_hundred_times_keeps_no_descriptor)
{
    cr_assert(world_run_processes(3, split_often, NULL, &report) == 0, "%s", report.summary);
}

Test(resources, nothing_stays_in_shared_memory_also_after_kill_9)
{
    int before = count_shared_names(), descriptors = count_entries("/proc/self/fd");
    struct failures *f = world_share(sizeof(*f));
    struct world world = {.size = 4, .processes = true};

    cr_assert(world_run_processes(4, some_work, NULL, &report) == 0, "%s", report.summary);
    cr_expect(count_shared_names() == before);
    f->culprit = 1;
    f->collective = RONDO_ALL_REDUCE;
    f->count = 1000;
    f->calls = 3;
    world_run(&world, failures_die, f, &report);
    cr_expect(report.signals[1] == SIGKILL);
    cr_expect(count_shared_names() == before, "something stayed in /dev/shm");
    cr_expect(count_entries("/proc/self/fd") == descriptors);
}

/* Bytes of Rondo's shared files that this process has mapped and that a core would hold, filled for
 * the purpose; and of all of them. */
static size_t bytes_in_cores(size_t *ret_mapped)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    size_t kib = 0, dumped = 0;
    bool ours = false;
    char line[512];

    *ret_mapped = 0;
    while (maps && fgets(line, sizeof(line), maps)) {
        if (strchr(line, '-') && !strchr(line, ':'))
            ours = false;
        if (strstr(line, "memfd:rondo-"))
            ours = true;
        else if (sscanf(line, "Size: %zu", &kib) == 1 && ours)
            *ret_mapped += kib << 10;
        else if (ours && strncmp(line, "VmFlags:", 8) == 0 && !strstr(line, " dd"))
            dumped += kib << 10;
        if (strncmp(line, "VmFlags:", 8) == 0)
            ours = false;
    }
    if (maps)
        fclose(maps);
    return dumped;
}

static rondo_result look_at_mappings(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_result result = bodies_all_reduce(comm, 5000, sentence);
    size_t mapped, dumped = bytes_in_cores(&mapped);

    if (!result && (!mapped || dumped))
        result = world_say(sentence, RONDO_ERROR_INTERNAL, "%zu bytes of %zu would be in a core",
                           dumped, mapped);
    return result;
}

/* Heaps are many times as large as the memory, and so is the core of a rank that has them in it. */
Test(resources, a_core_leaves_out_what_ranks_have_reserved)
{
    cr_assert(world_run_processes(3, look_at_mappings, NULL, &report) == 0, "%s", report.summary);
}

/* The user may have no other thread. 0: refused in a sentence; 77: this cannot be tried here. */
static int open_without_threads(void)
{
    struct rlimit one = {1, 1};
    rondo_stream *stream = NULL;
    rondo_result result;

    if ((!getuid() && setuid(65534)) || setrlimit(RLIMIT_NPROC, &one))
        return 77;
    result = rondo_stream_open(&stream);
    return !(result == RONDO_ERROR_SYSTEM && !stream &&
             strstr(rondo_last_error(NULL), "Cannot start the thread of a stream (ulimit -u?)") &&
             strstr(rondo_last_error(NULL), strerror(EAGAIN)));
}

/* The body returns 0 if all is well, and 77 if it cannot be tried here. */
static void expect_in_child(int (*body)(void), const char *obstacle)
{
    int status = 0;
    pid_t child = fork();

    if (!child)
        _exit(body());
    waitpid(child, &status, 0);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
        cr_skip_test("%s", obstacle);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %#x", status);
}

Test(resources, a_stream_says_why_its_thread_cannot_be_started)
{
    expect_in_child(open_without_threads, "this user's limits cannot be set");
}

/* On a machine of 512 GiB: the heaps together are more than a process can address. */
Test(resources, sixty_four_processes_with_large_heaps_start_and_add_up)
{
    setenv("RONDO_HEAP_BYTES", "2T", 1);
    cr_assert(world_run_processes(64, some_work, NULL, &report) == 0, "%s", report.summary);
}

Test(resources, sixty_four_threads_start_and_add_up)
{
    cr_assert(world_run_threads(64, some_work, NULL, &report) == 0, "%s", report.summary);
}

/* ---- Limits: a child with less and less address space or descriptors gets sentences ---------- */

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static size_t address_space(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    size_t pages = 0;

    if (file) {
        if (fscanf(file, "%zu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* 0: worked; 1: refused in a sentence; 2: refused without one. */
static int try_with_limit(int what, size_t limit)
{
    struct rlimit rlimit = {limit, limit};
    rondo_comm *comms[2] = {NULL, NULL};
    rondo_result result;

    if (setrlimit(what, &rlimit))
        return 3;
    result = rondo_comm_open_all(2, NULL, comms);
    if (result)
        return strlen(rondo_last_error(NULL)) > 10 ? 1 : 2;
    rondo_comm_close(comms[0]);
    rondo_comm_close(comms[1]);
    return 0;
}

static int in_child(int what, size_t limit)
{
    int status = 0;
    pid_t child = fork();

    if (!child)
        _exit(try_with_limit(what, limit));
    waitpid(child, &status, 0);
    return status;
}

Test(resources, little_address_space_gives_a_sentence_and_no_crash)
{
    int refused = 0;

    for (size_t extra = (size_t)1 << 20; extra < (size_t)1 << 42; extra *= 2) {
        int status = in_child(RLIMIT_AS, address_space() + extra);

        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "%zu MiB: status %#x", extra >> 20,
                  status);
        refused += WIFEXITED(status) && WEXITSTATUS(status) == 1;
    }
    cr_expect(refused > 0, "the limit was never felt");
}

/* Pages of shared memory that are there. */
static size_t shared_kib(void)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    size_t kib = 0;

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "RssShmem: %zu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

/* 0: worked; 77: memory can't be locked here. */
static int work_with_locked_memory(void)
{
    rondo_comm *comms[2] = {NULL, NULL};
    size_t memory = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    if (rondo_comm_open_all(2, NULL, comms))
        return 1;
    if (mlockall(MCL_CURRENT | MCL_FUTURE))
        return 77;
    rondo_comm_close(comms[0]);
    rondo_comm_close(comms[1]);
    if (rondo_comm_open_all(2, NULL, comms))
        return 2;
    return shared_kib() < memory / 1024 / 8 ? 0 : 3;
}

Test(resources, locked_memory_is_what_is_used_and_not_what_is_reserved)
{
    expect_in_child(work_with_locked_memory, "memory cannot be locked here");
}

Test(resources, few_descriptors_give_a_sentence_and_no_crash)
{
    for (size_t limit = 3; limit < 20; limit++) {
        int status = in_child(RLIMIT_NOFILE, limit);

        cr_expect(WIFEXITED(status) && WEXITSTATUS(status) <= 1, "%zu descriptors: status %#x",
                  limit, status);
    }
}
#endif
