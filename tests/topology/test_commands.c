/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_commands.c - `rondo topo` and `rondo doctor`, run as programs: what they print, write and
 * return.
 */
#include <criterion/criterion.h>

#include <jansson.h>

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 1 << 17 };

static char output[OUTPUT_MAX]; /* both streams of the last run */

/* The exit status of the commands behind `sh -c`; -1 if it ended otherwise. */
static int run(const char *arguments)
{
    char command[1024];
    FILE *from;
    size_t length;
    int status;

    snprintf(command, sizeof(command), "%s 2>&1", arguments);
    from = popen(command, "r");
    cr_assert_not_null(from);
    length = fread(output, 1, OUTPUT_MAX - 1, from);
    output[length] = 0;
    status = pclose(from);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool says(const char *text)
{
    return strstr(output, text);
}

static void temporary(char *ret_name)
{
    int fd;

    strcpy(ret_name, "/tmp/rondo_command_XXXXXX");
    fd = mkstemp(ret_name);
    cr_assert_geq(fd, 0);
    close(fd);
}

Test(topo, shows_this_machine)
{
    cr_expect_eq(run("unset RONDO_TOPOLOGY; " DRIVER " topo"), 0);
    cr_expect(says("this machine: "), "%s", output);
    cr_expect(says("usable here: "), "%s", output);
    cr_expect(says("rank"), "%s", output);
}

Test(topo, shows_rings_and_trees_over_ranks_and_gpus_of_a_recorded_machine)
{
    cr_expect_eq(run(DRIVER " topo --input " FIXTURES "/gpu8_two_sockets.xml"), 0);
    cr_expect(says("recorded machine: "), "%s", output);
    cr_expect(says("ranks 56..63 on cores 56..63, cache 7, NUMA node 1, package 1"), "%s", output);
    cr_expect(says("ring  0..31 | 32..63 | 0"), "%s", output);
    cr_expect(says("8 GPUs"), "%s", output);
    cr_expect(says("ring  0..3 | 4..7 | 0"), "%s", output);
    cr_expect(says("GPU 7 (0000:d4:00.0) reaches the network through mlx5_3"), "%s", output);
    cr_expect(says("1 across packages"), "%s", output);
}

Test(topo, takes_the_recorded_machine_from_the_environment)
{
    cr_expect_eq(run("RONDO_TOPOLOGY=" FIXTURES "/four_sockets.xml " DRIVER " topo -n 2"), 0);
    cr_expect(says("4 packages"), "%s", output);
    cr_expect(says("ranks 0 1 on cores 0 1"), "%s", output);
}

/* Runs `rondo topo` on plain.xml as `sed` changes it. */
static int run_changed(const char *change, const char *options)
{
    char file[32], command[512];
    int status;

    temporary(file);
    snprintf(command, sizeof(command),
             "sed '%s' " FIXTURES "/plain.xml >%s && " DRIVER " topo -i %s %s", change, file, file,
             options);
    status = run(command);
    unlink(file);
    return status;
}

Test(topo, cores_have_the_numbers_of_the_machine_in_text_json_and_picture)
{
    const char *allowed = "s/allowed_cpuset=\"0x0000000f\"/allowed_cpuset=\"0x0000000d\"/";

    cr_expect_eq(run_changed(allowed, ""), 0);
    cr_expect(says("usable here: 3 cores, 3 threads"), "%s", output);
    cr_expect(says("  cores 0 2-3\n"), "%s", output);
    cr_expect(says("rank  0 on core  0, "), "%s", output);
    cr_expect(says("ranks 1 2 on cores 2 3, "), "%s", output);
    cr_expect_eq(run_changed(allowed, "--json -"), 0);
    cr_expect(says("\"core\": 3,"), "%s", output);
    cr_expect(!says("\"core\": 1,"), "%s", output);
    cr_expect_eq(run_changed(allowed, "--svg /dev/stdout | grep -A 1 '\"rank\".*>1<'"), 0);
    cr_expect(says(">core 2<"), "%s", output);
}

Test(topo, a_machine_that_knows_threads_alone_has_as_many_cores)
{
    cr_expect_eq(run_changed("/type=\"Core\"/,/<.object>/{/type=\"PU\"/!d}", ""), 0);
    cr_expect(says("1 NUMA node, 4 cores, 4 threads"), "%s", output);
}

Test(topo, says_when_ranks_outnumber_cores)
{
    cr_expect_eq(run(DRIVER " topo -n 7 -i " FIXTURES "/plain.xml"), 0);
    cr_expect(says("7 ranks, more than cores"), "%s", output);
}

Test(topo, writes_a_machine_that_it_reads_again)
{
    char file[32], command[512];

    temporary(file);
    snprintf(command, sizeof(command), DRIVER " topo -i " FIXTURES "/gpu4_one_socket.xml --xml %s",
             file);
    cr_expect_eq(run(command), 0);
    snprintf(command, sizeof(command), DRIVER " topo -i %s", file);
    cr_expect_eq(run(command), 0);
    cr_expect(says("cuda3"), "%s", output);
    unlink(file);
}

/* By either of hwloc's writers of XML. */
Test(topo, says_why_a_machine_could_not_be_recorded)
{
    cr_expect_eq(run(DRIVER " topo -i " FIXTURES "/plain.xml --xml /dev/full"), 1);
    cr_expect(says("cannot write the machine to /dev/full: No space left"), "%s", output);
    cr_expect_eq(
        run("HWLOC_LIBXML_EXPORT=0 " DRIVER " topo -i " FIXTURES "/plain.xml --xml /dev/full"), 1);
    cr_expect(says("cannot write the machine to /dev/full: No space left"), "%s", output);
}

Test(topo, writes_json_that_parses)
{
    json_t *all, *gpus;

    cr_expect_eq(run(DRIVER " topo --json - -i " FIXTURES "/gpu8_two_sockets.xml"), 0);
    all = json_loads(output, 0, NULL);
    cr_assert_not_null(all, "%s", output);
    gpus = json_object_get(all, "gpus");
    cr_expect_eq(json_array_size(json_object_get(gpus, "ring")), 8);
    cr_expect_eq(json_array_size(json_object_get(all, "places")), 64);
    cr_expect_eq(json_array_size(json_object_get(all, "devices")), 16);
    json_decref(all);
}

Test(topo, draws_a_picture)
{
    char file[32], command[512];

    temporary(file);
    snprintf(command, sizeof(command),
             DRIVER " topo -i " FIXTURES "/two_sockets.xml --svg %s && head -c 5 %s", file, file);
    cr_expect_eq(run(command), 0);
    cr_expect(says("<svg "), "%s", output);
    unlink(file);
}

Test(topo, refuses_wrong_usage_with_2_and_what_cannot_be_done_with_1)
{
    cr_expect_eq(run(DRIVER " topo -n 0"), 2);
    cr_expect_eq(run(DRIVER " topo -n some"), 2);
    cr_expect_eq(run(DRIVER " topo --nonsense"), 2);
    cr_expect_eq(run(DRIVER " topo extra"), 2);
    cr_expect_eq(run(DRIVER " topo -i no/such/file.xml"), 1);
    cr_expect(says("no/such/file.xml"), "%s", output);
    cr_expect_eq(run(DRIVER " topo --svg no/such/folder/x.svg"), 1);
    cr_expect(says("no/such/folder/x.svg"), "%s", output);
    cr_expect_eq(run(DRIVER " topo --xml no/such/folder/x.xml"), 1);
    cr_expect(says("no/such/folder/x.xml"), "%s", output);
    cr_expect_eq(run(DRIVER " topo --json no/such/folder/x.json"), 1);
    cr_expect(says("no/such/folder/x.json"), "%s", output);
}

/* ---- doctor ---------------------------------------------------------------------------------- */

Test(doctor, says_what_works_here)
{
    int status = run(DRIVER " doctor");

    cr_expect(says("arithmetic: kernels for "), "%s", output);
    cr_expect(says("cores: "), "%s", output);
    cr_expect(says("ok    shared heap: "), "%s", output);
    cr_expect(says("ok    heaps of other ranks: "), "%s", output);
    cr_expect(says("cross-memory attach: "), "%s", output);
    cr_expect(says("ok    abstract Unix sockets: "), "%s", output);
    cr_expect(says("CUDA: "), "%s", output);
    cr_expect(says("launchers: `rondo run`"), "%s", output);
    cr_expect_eq(status, says("FAIL") ? 1 : 0);
}

Test(doctor, finds_a_misspelt_setting_and_names_the_nearest)
{
    cr_expect_eq(run("RONDO_TIMOUT=3 " DRIVER " doctor"), 1);
    cr_expect(says("FAIL  settings: there is no setting RONDO_TIMOUT — the nearest name is "
                   "RONDO_TIMEOUT"),
              "%s", output);
    cr_expect_eq(run("RONDO_TYPO=1 " DRIVER " doctor"), 1);
    cr_expect(says("there is no setting RONDO_TYPO"), "%s", output);
}

Test(doctor, finds_a_value_that_is_not_allowed)
{
    cr_expect_eq(run("RONDO_DETERMINISTIC=perhaps " DRIVER " doctor"), 1);
    cr_expect(says("RONDO_DETERMINISTIC"), "%s", output);
    cr_expect(says("perhaps"), "%s", output);
}

Test(doctor, shows_settings_but_never_the_secret)
{
    run("RONDO_TIMEOUT=12 RONDO_SECRET=opensesame " DRIVER " doctor");
    cr_expect(says("ok    settings: RONDO_TIMEOUT=12"), "%s", output);
    cr_expect(says("RONDO_SECRET=(set, not shown)"), "%s", output);
    cr_expect_not(says("opensesame"), "%s", output);
}

Test(doctor, finds_a_recorded_machine_that_cannot_be_read)
{
    cr_expect_eq(run("RONDO_TOPOLOGY=no/such/file.xml " DRIVER " doctor"), 1);
    cr_expect(says("FAIL  topology: "), "%s", output);
    cr_expect(says("correct or unset RONDO_TOPOLOGY"), "%s", output);
}

Test(doctor, notes_a_process_that_may_open_few_files)
{
    run("ulimit -n 100; " DRIVER " doctor");
    cr_expect(says("note  open files: at most 100"), "%s", output);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/* Doctor tries what a communicator does: a heap that finds no room is no mere note. */
Test(doctor, finds_an_address_space_in_which_no_heap_has_room)
{
    cr_expect_eq(run("ulimit -v 8000000; RONDO_HEAP_BYTES=64G " DRIVER " doctor"), 1);
    cr_expect(says("FAIL  address space: "), "%s", output);
    cr_expect(says("ulimit -v unlimited"), "%s", output);
    run("ulimit -v 8000000; " DRIVER " doctor");
    cr_expect(says("note  address space: limited to 7.6 GiB"), "%s", output);
}
#endif

Test(doctor, writes_json_that_parses)
{
    json_t *all, *lines;
    int status = run(DRIVER " doctor --json -");

    all = json_loads(output, 0, NULL);
    cr_assert_not_null(all, "%s", output);
    lines = json_object_get(all, "lines");
    cr_expect_gt(json_array_size(lines), 10);
    cr_expect_eq(json_is_true(json_object_get(all, "works")), status == 0);
    json_decref(all);
}

Test(doctor, writes_the_line_that_failed_whatever_bytes_are_in_it)
{
    json_t *report, *line;
    size_t i, failed = 0;

    int status =
        run("{ RONDO_LOG=$(printf '\\377\\033[2J') " DRIVER " doctor --json - 2>/dev/null; }");

    cr_expect_eq(status, 1);
    cr_expect(!strchr(output, '\033'));
    report = json_loads(output, 0, NULL);
    cr_assert_not_null(report, "%s", output);
    json_array_foreach(json_object_get(report, "lines"), i, line)
    {
        failed += !strcmp(json_string_value(json_object_get(line, "grade")), "FAIL") &&
                  strstr(json_string_value(json_object_get(line, "found")), "RONDO_LOG") != NULL;
    }
    cr_expect_eq(failed, 1, "%s", output);
    json_decref(report);
}

Test(doctor, refuses_wrong_usage_with_2)
{
    cr_expect_eq(run(DRIVER " doctor --nonsense"), 2);
    cr_expect_eq(run(DRIVER " doctor extra"), 2);
}
