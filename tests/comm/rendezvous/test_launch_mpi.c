/* SPDX-License-Identifier: BSD-3-Clause */
/* test_launch_mpi.c - real launchers start ranks that find each other; SHOW is show_launch. */
#include "tests/comm/command.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <unistd.h>

/* `local`: how many ranks of the host a rank knows of. */
static void check(const char *launcher, const char *arguments, const char *by, int local,
                  const char *program)
{
    char command[1024];
    const char *said;
    int status;

    snprintf(command, sizeof(command), "command -v %s", launcher);
    command_output(command, &status);
    if (status)
        cr_skip_test("%s is not installed", launcher);
    snprintf(command, sizeof(command), "%s %s %s 2>&1", launcher, arguments, program);
    said = command_output(command, &status);
    cr_assert_eq(status, 0, "%s", said);
    cr_assert_eq(command_count(said, "met 0 1 2\n"), 3, "%s", said);
    for (int rank = 0; rank < 3; rank++) {
        char part[80];

        snprintf(part, sizeof(part), "rank %d of 3 by %s (local %d of %d)", rank, by, rank, local);
        cr_assert_eq(command_count(said, part), 1, "%s", said);
    }
}

/* Each job has a folder of its own: two that make the usual one at the same time end. */
static void check_openmpi(const char *by, int local, const char *program)
{
    char folder[] = "/tmp/openmpi-XXXXXX", arguments[80];

    cr_assert(mkdtemp(folder));
    snprintf(arguments, sizeof(arguments), "--oversubscribe --mca orte_tmpdir_base %s -n 3",
             folder);
    setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
    setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
    check("mpirun.openmpi", arguments, by, local, program);
    rmdir(folder);
}

Test(launch_mpi, openmpi_starts_ranks_that_meet)
{
    check_openmpi("Open MPI", 3, SHOW);
}

/* Open MPI's daemon speaks PMIx, as that of any other launcher may. */
Test(launch_mpi, ranks_that_know_nothing_but_pmix_meet, .disabled = !HAVE_PMIX)
{
    check_openmpi("PMIx", 3, "env -u OMPI_COMM_WORLD_RANK -u OMPI_COMM_WORLD_SIZE " SHOW);
}

/* The ranks are on several hosts, as far as they know. */
Test(launch_mpi, ranks_without_an_address_are_told_one_by_pmix, .disabled = !HAVE_PMIX)
{
    check_openmpi("Open MPI", -1, "env -u OMPI_COMM_WORLD_LOCAL_SIZE " SHOW);
}

Test(launch_mpi, mpich_starts_ranks_that_meet)
{
    check("mpirun.mpich", "-n 3", "MPICH", 3, SHOW);
}

Test(launch_mpi, ranks_behind_a_shell_meet_too)
{
    check("mpirun.mpich", "-n 3", "MPICH", 3, "sh -c '" SHOW "; exit $?'");
}

/* Two jobs at the same time must not meet each other. */
Test(launch_mpi, jobs_side_by_side_do_not_mix)
{
    const char *said;
    int status;

    command_output("command -v mpirun.mpich", &status);
    if (status)
        cr_skip_test("mpirun.mpich is not installed");
    said = command_output("mpirun.mpich -n 2 " SHOW " 2>&1 & mpirun.mpich -n 3 " SHOW " 2>&1; wait",
                          &status);
    cr_assert_eq(command_count(said, "of 3 by MPICH"), 3, "%s", said);
    cr_assert_eq(command_count(said, "of 2 by MPICH"), 2, "%s", said);
}
