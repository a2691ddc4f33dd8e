/* SPDX-License-Identifier: BSD-3-Clause */
/* test_topology.c - opening this machine and recorded ones, and counting what is there. */
#include "recorded.h"

#include "base/fail.h"

#include <criterion/criterion.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

Test(topology, counts_what_a_recorded_machine_has)
{
    struct topology *topology = recorded_open("two_sockets");

    cr_expect_eq(topology_packages(topology), 2);
    cr_expect_eq(topology_numa_nodes(topology), 2);
    cr_expect_eq(topology_cores(topology), 64);
    cr_expect_eq(topology_machine_cores(topology), 64);
    cr_expect_eq(topology_threads(topology), 128);
    cr_expect_eq(topology_cache_bytes(topology, 3), 16 << 20);
    cr_expect_eq(topology_cache_bytes(topology, 4), 0);
    cr_expect_eq(topology_cache_bytes(topology, 0), 0);
    cr_expect_eq(topology_devices(topology), 0);
    cr_expect_eq(topology_cpu_limit(topology), 0);
    cr_expect(topology_is_recorded(topology));
    cr_expect_null(topology_device_at(topology, 0));
    topology_close(topology);
}

Test(topology, counts_eight_numa_nodes_in_two_packages)
{
    struct topology *topology = recorded_open("eight_numa");

    cr_expect_eq(topology_packages(topology), 2);
    cr_expect_eq(topology_numa_nodes(topology), 8);
    cr_expect_eq(topology_cores(topology), 128);
    topology_close(topology);
}

Test(topology, this_machine_has_no_more_cores_than_threads_and_at_least_one)
{
    struct topology *topology = NULL;

    cr_assert_eq(topology_open("", &topology), RONDO_OK, "%s", fail_sentence());
    cr_expect_geq(topology_cores(topology), 1);
    cr_expect_leq(topology_cores(topology), topology_threads(topology));
    cr_expect_not(topology_is_recorded(topology));
    topology_close(topology);
}

/*
 * In a child, which has this one thread only: the CPU set of a process is that of all its threads.
 */
static int cores_on_one_processor(void)
{
    struct topology *topology = NULL;
    cpu_set_t allowed, one;
    int first = 0, good;

    if (sched_getaffinity(0, sizeof(allowed), &allowed))
        return 1;
    while (!CPU_ISSET(first, &allowed))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    if (sched_setaffinity(0, sizeof(one), &one) || topology_open(NULL, &topology))
        return 2;
    good = topology_cores(topology) == 1 && topology_machine_cores(topology) >= 1;
    topology_close(topology);
    return good ? 0 : 3;
}

/* Limits of the process that runs `body` end with it. */
static void succeeds_in_child(int (*body)(void))
{
    int status = -1;
    pid_t child = fork();

    if (!child)
        _exit(body());
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status));
    cr_expect_eq(WEXITSTATUS(status), 0);
}

Test(topology, a_process_limited_to_one_processor_has_one_core)
{
    succeeds_in_child(cores_on_one_processor);
}

Test(topology, a_file_that_is_not_there_is_named)
{
    struct topology *topology = NULL;

    cr_expect_eq(topology_open("no/such/machine.xml", &topology), RONDO_ERROR_INVALID);
    cr_expect_null(topology);
    cr_expect_not_null(strstr(fail_sentence(), "no/such/machine.xml"), "%s", fail_sentence());
}

Test(topology, a_file_that_is_no_machine_is_named)
{
    struct topology *topology = NULL;
    char file[] = "/tmp/rondo_topology_XXXXXX";
    int fd = mkstemp(file);

    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, "<topology><object", 17), 17);
    close(fd);
    cr_expect_eq(topology_open(file, &topology), RONDO_ERROR_INVALID);
    cr_expect_null(topology);
    cr_expect_not_null(strstr(fail_sentence(), file), "%s", fail_sentence());
    unlink(file);
}

/* True if the file of that name is refused with this result and a sentence of these words. */
static bool refused(const char *file, rondo_result result, const char *words)
{
    struct topology *topology = NULL;
    bool right = topology_open(file, &topology) == result && !topology &&
                 strstr(fail_sentence(), file) && strstr(fail_sentence(), words);

    if (!right)
        fprintf(stderr, "%s\n", fail_sentence());
    return right;
}

/* A control group may have no more processes to give. */
static int open_without_processes(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(*filter), filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 0; /* this system has no filters */
    return refused(FIXTURES "/plain.xml", RONDO_ERROR_SYSTEM, strerror(EAGAIN)) ? 0 : 1;
}

Test(topology, a_recording_that_no_process_could_read_is_not_blamed)
{
    succeeds_in_child(open_without_processes);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
static int open_without_memory(void)
{
    char file[] = "/tmp/rondo_topology_XXXXXX";
    FILE *pages = fopen("/proc/self/statm", "r");
    int fd = mkstemp(file), status = 1;
    struct rlimit little = {0};
    unsigned long data = 0;

    /* hwloc has what it needs to start; the file does not fit. */
    if (pages && fscanf(pages, "%*u %*u %*u %*u %*u %lu", &data) == 1)
        little.rlim_cur = little.rlim_max = data * (rlim_t)sysconf(_SC_PAGESIZE) + (8 << 20);
    if (pages)
        fclose(pages);
    if (data && fd >= 0 && !ftruncate(fd, 32 << 20) && !setrlimit(RLIMIT_DATA, &little))
        status = refused(file, RONDO_ERROR_MEMORY, "out of memory") ? 0 : 2;
    unlink(file);
    return status;
}

Test(topology, a_recording_that_no_memory_is_left_for_is_not_blamed)
{
    succeeds_in_child(open_without_memory);
}
#endif

/* ---- Recordings that come from somebody else ------------------------------------------------- */

/* `xml` as a file; what is said of it when it is opened, "" if it is a machine. */
static const char *open_text(const char *xml)
{
    static char file[] = "/tmp/rondo_topology_XXXXXX", sentence[1024];
    struct topology *topology = NULL;
    rondo_result result;
    int fd;

    memset(strrchr(file, '_') + 1, 'X', 6);
    fd = mkstemp(file);
    cr_assert(fd >= 0 && write(fd, xml, strlen(xml)) == (ssize_t)strlen(xml));
    close(fd);
    fail_clear();
    result = topology_open(file, &topology);
    snprintf(sentence, sizeof(sentence), "%s", result ? fail_sentence() : "");
    cr_expect(!result || (!topology && strstr(sentence, file)), "'%s'", sentence);
    topology_close(topology);
    unlink(file);
    return sentence;
}

static char *load_text(const char *name)
{
    static char text[1 << 18];
    char path[256];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", FIXTURES, name);
    file = fopen(path, "r");
    cr_assert_not_null(file);
    text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void replace(char *text, const char *from, const char *to)
{
    char *at = strstr(text, from);

    cr_assert_not_null(at, "%s", from);
    memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
    memcpy(at, to, strlen(to));
}

/* hwloc's reader crashes on a processor without node sets, and believes in a core for a machine. */
Test(topology, a_recording_of_no_possible_machine_is_refused_in_a_sentence)
{
    char *text = load_text("gpu4_one_socket.xml");

    replace(text, "cpuset=\"0x00100000\" complete_cpuset=\"0x00100000\" nodeset=\"0x00000001\" ",
            "cpuset=\"0x00100000\" ");
    replace(text, "os_index=\"20\" cpuset=\"0x00100000\" complete_nodeset=",
            "os_index=\"20\" cpuset=\"0x00100000\" compet=");
    cr_expect(strstr(open_text(text), "is not a recorded machine"), "'%s'", fail_sentence());
    text = load_text("gpu4_one_socket.xml");
    replace(text, "type=\"Machine\"", "type=\"Core\"");
    cr_expect(strstr(open_text(text), "is not a recorded machine"), "'%s'", fail_sentence());
}

/* Values of attributes that are replaced by others: a machine comes of it, or a sentence. */
Test(topology, a_damaged_recording_does_no_harm)
{
    static const char *const values[] = {
        "0", "-1", "18446744073709551615", "0x0000ff00", "PU", "Core", "NUMANode", "Bridge", ""};
    unsigned seed = 1, machines = 0, refused = 0;

    for (int i = 0; i < 60; i++) {
        char *text = load_text("plain.xml"), *open, *close;
        char before[4096], after[64];
        size_t places = 0, chosen;

        for (open = text; (open = strstr(open, "=\"")); open++)
            places++;
        seed = seed * 1103515245 + 12345;
        chosen = (seed >> 8) % places;
        for (open = strstr(text, "=\""); chosen--; open = strstr(open + 1, "=\""))
            ;
        close = strchr(open + 2, '"');
        snprintf(before, sizeof(before), "%.*s", (int)(close - open + 1), open);
        snprintf(after, sizeof(after), "=\"%s\"", values[(seed >> 24) % 9]);
        replace(open, before, after);
        if (*open_text(text))
            refused++;
        else
            machines++;
    }
    cr_expect(machines > 10 && refused > 10, "%u machines, %u refused", machines, refused);
}

static void compare(const struct topology *a, const struct topology *b)
{
    cr_expect_eq(topology_cores(a), topology_cores(b));
    cr_expect_eq(topology_threads(a), topology_threads(b));
    cr_expect_eq(topology_packages(a), topology_packages(b));
    cr_expect_eq(topology_numa_nodes(a), topology_numa_nodes(b));
    cr_assert_eq(topology_devices(a), topology_devices(b));
    for (int i = 0; i < topology_devices(a); i++) {
        const struct topology_device *x = topology_device_at(a, i), *y = topology_device_at(b, i);

        cr_expect_eq(x->kind, y->kind);
        cr_expect_str_eq(x->name, y->name);
        cr_expect_str_eq(x->pci, y->pci);
        cr_expect_eq(x->numa, y->numa);
        for (int j = 0; j < topology_devices(a); j++)
            cr_expect_eq(topology_device_distance(a, i, j), topology_device_distance(b, i, j));
    }
    for (int rank = 0; rank < topology_cores(a); rank++) {
        struct topology_place x, y;

        topology_place(a, rank, topology_cores(a), &x);
        topology_place(b, rank, topology_cores(b), &y);
        cr_expect(x.core == y.core && x.package == y.package && x.numa == y.numa && x.l3 == y.l3);
    }
}

static void round_trip(struct topology *topology)
{
    struct topology *again = NULL;
    char file[] = "/tmp/rondo_topology_XXXXXX";
    int fd = mkstemp(file);

    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(topology_write_xml(topology, file), RONDO_OK, "%s", fail_sentence());
    cr_assert_eq(topology_open(file, &again), RONDO_OK, "%s", fail_sentence());
    compare(topology, again);
    unlink(file);
    topology_close(again);
    topology_close(topology);
}

Test(topology, a_written_machine_reads_back_the_same)
{
    round_trip(recorded_open("gpu8_two_sockets"));
    round_trip(recorded_open("gpu4_one_socket"));
    round_trip(recorded_open("eight_numa"));
    round_trip(recorded_open("plain"));
}

Test(topology, a_machine_cannot_be_written_into_a_folder_that_is_not_there)
{
    struct topology *topology = recorded_open("plain");

    cr_expect_eq(topology_write_xml(topology, "no/such/folder/x.xml"), RONDO_ERROR_SYSTEM);
    cr_expect_not_null(strstr(fail_sentence(), "no/such/folder/x.xml"));
    topology_close(topology);
}

Test(topology, prints_packages_caches_and_devices)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    topology_print(topology, to);
    fclose(to);
    cr_expect_not_null(strstr(text, "2 packages, 2 NUMA nodes, 64 cores"), "%s", text);
    cr_expect_not_null(strstr(text, "cores 56-63 share cache 7"), "%s", text);
    cr_expect_not_null(strstr(text, "mlx5_3"), "%s", text);
    cr_expect_not_null(strstr(text, "PCI link 63.0 GB/s"), "%s", text);
    free(text);
    topology_close(topology);
}

Test(topology, closing_nothing_is_allowed)
{
    topology_close(NULL);
}
