/* SPDX-License-Identifier: BSD-3-Clause */
/* test_launch.c - environments in, rank, size and meeting point (or a sentence) out. */
#include "comm/rendezvous/launch.h"
#include "tests/comm/rendezvous/party.h"

#include "base/fail.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { VARIABLES = 12 };

#define FORTY "0123456789012345678901234567890123456789"
/* A host name may have 253 characters in DNS. */
#define LONGEST FORTY FORTY FORTY FORTY FORTY FORTY "0123456789012"

static void set_only(const char *const *variables)
{
    clearenv();
    setenv("RONDO_LOG", "none", 1);
    for (; *variables; variables++) {
        const char *equals = strchr(*variables, '=');
        char name[64] = "";

        memcpy(name, *variables, (size_t)(equals - *variables));
        setenv(name, equals + 1, 1);
    }
}

/* clang-format off */
static const struct {
    const char *what, *launcher;
    int rank, size, local_rank, local_size;
    const char *address; /* what it starts with */
    const char *variables[VARIABLES];
} good[] = {
    {"nothing is set", "none", 0, 1, 0, 1, "", {NULL}},
    {"only variables that mean nothing together", "none", 0, 1, 0, 1, "",
     {"MASTER_ADDR=host", "LOCAL_RANK=3", "SLURM_JOB_ID=1", NULL}},
    {"rondo run", "rondo run", 2, 4, 2, 4, "unix:rondo-run-x",
     {"RONDO_RANK=2", "RONDO_SIZE=4", "RONDO_LOCAL_RANK=2", "RONDO_LOCAL_SIZE=4",
      "RONDO_ADDRESS=unix:rondo-run-x", "RONDO_SECRET=s", NULL}},
    {"by hand over TCP", "rondo run", 0, 2, -1, -1, "node1:4711",
     {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_ADDRESS=node1:4711", "RONDO_SECRET=s", NULL}},
    {"the longest name of DNS", "rondo run", 0, 2, -1, -1, LONGEST ":47110",
     {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_SECRET=s",
      "RONDO_ADDRESS=" LONGEST ":47110", NULL}},
    {"the longest name of DNS by torchrun", "torchrun", 0, 2, -1, -1,
     LONGEST ":47110",
     {"RANK=0", "WORLD_SIZE=2", "RONDO_SECRET=s", "MASTER_PORT=47110",
      "MASTER_ADDR=" LONGEST, NULL}},
    {"an address on a link", "torchrun", 0, 2, -1, -1, "[fe80::1%eth0]:4711",
     {"RANK=0", "WORLD_SIZE=2", "RONDO_SECRET=s", "MASTER_PORT=4711",
      "MASTER_ADDR=fe80::1%eth0", NULL}},
    {"by hand over TCP with IPv6", "rondo run", 0, 2, -1, -1, "[::1]:4711",
     {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_ADDRESS=[::1]:4711", "RONDO_SECRET=s", NULL}},
    {"-1 in our own variables is not set", "none", 0, 1, 0, 1, "",
     {"RONDO_RANK=-1", "RONDO_SIZE=-1", NULL}},
    {"one rank needs no address", "rondo run", 0, 1, 0, 1, "",
     {"RONDO_RANK=0", "RONDO_SIZE=1", NULL}},
    {"torchrun on one host", "torchrun", 1, 2, 1, 2, "unix:rondo-",
     {"RANK=1", "WORLD_SIZE=2", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=host.example",
      "MASTER_PORT=29500", "TORCHELASTIC_RUN_ID=none", NULL}},
    {"torchrun's variables by hand, on the loopback", "torchrun", 1, 2, 1, 2, "unix:rondo-",
     {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=29500", NULL}},
    {"rank 0 of Kubeflow's several hosts", "torchrun", 0, 2, -1, -1, "localhost:29500",
     {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=29500", "RONDO_SECRET=s",
      NULL}},
    {"torchrun on two hosts", "torchrun", 3, 4, 1, 2, "host.example:29500",
     {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=host.example",
      "MASTER_PORT=29500", "RONDO_SECRET=s", NULL}},
    {"torchrun on two hosts with its own store on the port", "torchrun", 3, 4, 1, 2,
     "host.example:29501",
     {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=host.example",
      "MASTER_PORT=29500", "TORCHELASTIC_USE_AGENT_STORE=True", "RONDO_SECRET=s", NULL}},
    {"torchrun's store on the last port", "torchrun", 3, 4, 1, 2, "[2001:db8::1]:65534",
     {"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1", "LOCAL_WORLD_SIZE=2", "MASTER_ADDR=2001:db8::1",
      "MASTER_PORT=65535", "TORCHELASTIC_USE_AGENT_STORE=True", "RONDO_SECRET=s", NULL}},
    {"torchrun with RONDO_ADDRESS", "torchrun", 1, 2, -1, -1, "127.0.0.1:4711",
     {"RANK=1", "WORLD_SIZE=2", "RONDO_ADDRESS=127.0.0.1:4711", "RONDO_SECRET=s", NULL}},
    {"Open MPI on one host", "Open MPI", 2, 3, 2, 3, "unix:rondo-",
     {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=3", "OMPI_COMM_WORLD_LOCAL_RANK=2",
      "OMPI_COMM_WORLD_LOCAL_SIZE=3", "PMIX_NAMESPACE=1902444545", NULL}},
    {"Open MPI on two hosts with an address", "Open MPI", 2, 4, 0, 2, "node1:4711",
     {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=0",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2", "RONDO_ADDRESS=node1:4711", "RONDO_SECRET=s", NULL}},
    {"MPICH on one host", "MPICH", 1, 2, 1, 2, "unix:rondo-",
     {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", NULL}},
    {"Slurm on one node", "Slurm", 1, 2, 1, 2, "unix:rondo-",
     {"SLURM_PROCID=1", "SLURM_NTASKS=2", "SLURM_LOCALID=1", "SLURM_JOB_ID=7", "SLURM_STEP_ID=0",
      "SLURM_NNODES=1", NULL}},
    {"a step that is smaller than its allocation", "Slurm", 1, 2, 1, 2, "unix:rondo-",
     {"SLURM_PROCID=1", "SLURM_NTASKS=8", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=1",
      "SLURM_JOB_ID=7", "SLURM_STEP_ID=3", "SLURM_NNODES=4", "SLURM_STEP_NUM_NODES=1", NULL}},
    {"Slurm on three nodes", "Slurm", 4, 5, 0, 1, "node1:4711",
     {"SLURM_PROCID=4", "SLURM_STEP_NUM_TASKS=5", "SLURM_LOCALID=0", "SLURM_JOB_ID=7",
      "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=3", "SLURM_NODEID=2",
      "SLURM_STEP_TASKS_PER_NODE=2(x2),1",
      "RONDO_ADDRESS=node1:4711", "RONDO_SECRET=s", NULL}},
    {"srun with PMI", "Slurm", 1, 2, 1, 2, "unix:rondo-",
     {"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_LOCALID=1", "SLURM_JOB_ID=7",
      "SLURM_STEP_ID=0", "SLURM_STEP_NUM_NODES=1", "PMI_RANK=1", "PMI_SIZE=2", NULL}},
    {"a batch script is no step", "none", 0, 1, 0, 1, "",
     {"SLURM_PROCID=0", "SLURM_NTASKS=8", "SLURM_LOCALID=0", "SLURM_JOB_ID=7", NULL}},
    {"rondo run inside of mpirun", "rondo run", 1, 2, 1, 2, "unix:rondo-run-x",
     {"RONDO_RANK=1", "RONDO_SIZE=2", "RONDO_LOCAL_RANK=1", "RONDO_LOCAL_SIZE=2",
      "RONDO_ADDRESS=unix:rondo-run-x", "OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=3", NULL}},
    {"a lone RANK beside MPICH", "MPICH", 1, 2, 1, 2, "unix:rondo-",
     {"RANK=5", "PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=1", "MPI_LOCALNRANKS=2", NULL}},
};

static const struct {
    const char *part; /* of the sentence */
    const char *variables[VARIABLES];
} bad[] = {
    {"RONDO_RANK is 7 but RONDO_SIZE is 4: ranks go from 0 to 3",
     {"RONDO_RANK=7", "RONDO_SIZE=4", NULL}},
    {"RONDO_RANK is set but RONDO_SIZE is not", {"RONDO_RANK=7", NULL}},
    {"RONDO_SIZE is set but RONDO_RANK is not", {"RONDO_SIZE=7", "PMI_RANK=0", "PMI_SIZE=2", NULL}},
    {"RONDO_ADDRESS is not", {"RONDO_RANK=0", "RONDO_SIZE=2", NULL}},
    {"RONDO_SECRET is not set", {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_ADDRESS=host:1", NULL}},
    {"'nonsense' is no address", {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_ADDRESS=nonsense", NULL}},
    {"'unix:' is no address", {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_ADDRESS=unix:", NULL}},
    {"has more than 79 characters",
     {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_ADDRESS=unix:" FORTY FORTY, NULL}},
    {"has more than 259 characters",
     {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_SECRET=s",
      "RONDO_ADDRESS=" FORTY FORTY FORTY FORTY FORTY FORTY "0123456789012345:4711", NULL}},
    {"RONDO_RANK is 'x'", {"RONDO_RANK=x", "RONDO_SIZE=2", NULL}},
    {"RONDO_RANK is '-3'", {"RONDO_RANK=-3", "RONDO_SIZE=2", NULL}},
    {"RONDO_RANK is '1.5'", {"RONDO_RANK=1.5", "RONDO_SIZE=2", NULL}},
    {"RONDO_SIZE is '0'", {"RONDO_RANK=0", "RONDO_SIZE=0", NULL}},
    {"RONDO_SIZE is '99999999999999999999'",
     {"RONDO_RANK=0", "RONDO_SIZE=99999999999999999999", NULL}},
    {"RONDO_LOCAL_SIZE is 3 but RONDO_SIZE is 2",
     {"RONDO_RANK=0", "RONDO_SIZE=2", "RONDO_LOCAL_SIZE=3", "RONDO_ADDRESS=unix:x", NULL}},
    {"RONDO_LOCAL_RANK is 2 but RONDO_LOCAL_SIZE is 2",
     {"RONDO_RANK=0", "RONDO_SIZE=4", "RONDO_LOCAL_RANK=2", "RONDO_LOCAL_SIZE=2",
      "RONDO_ADDRESS=unix:x", NULL}},
    {"RANK is set but WORLD_SIZE is not", {"RANK=1", NULL}},
    {"WORLD_SIZE is set but RANK is not", {"WORLD_SIZE=1", NULL}},
    {"RANK is 4 but WORLD_SIZE is 4", {"RANK=4", "WORLD_SIZE=4", NULL}},
    {"MASTER_ADDR is not", {"RANK=1", "WORLD_SIZE=2", NULL}},
    {"MASTER_PORT is not", {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=host", NULL}},
    {"MASTER_PORT is 'no'",
     {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=localhost", "MASTER_PORT=no", NULL}},
    {"'host:70000' is no address",
     {"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=host", "MASTER_PORT=70000", "RONDO_SECRET=s", NULL}},
    {"RONDO_SECRET is not set: set it to the same random text on all hosts",
     {"RANK=1", "WORLD_SIZE=4", "LOCAL_WORLD_SIZE=2", "LOCAL_RANK=1", "MASTER_ADDR=host",
      "MASTER_PORT=29500", NULL}},
    {"OMPI_COMM_WORLD_SIZE is set but OMPI_COMM_WORLD_RANK is not",
     {"OMPI_COMM_WORLD_SIZE=2", NULL}},
    {"OMPI_COMM_WORLD_RANK is 2 but OMPI_COMM_WORLD_SIZE is 2",
     {"OMPI_COMM_WORLD_RANK=2", "OMPI_COMM_WORLD_SIZE=2", NULL}},
    {"no variable names the job",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=1",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2", NULL}},
    {"4 ranks on several hosts, started by Open MPI, need a place to meet: set RONDO_ADDRESS",
     {"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_RANK=1",
      "OMPI_COMM_WORLD_LOCAL_SIZE=2", "PMIX_NAMESPACE=1", NULL}},
    {"PMI_RANK is set but PMI_SIZE is not", {"PMI_RANK=1", NULL}},
    {"MPI_LOCALRANKID is 'x'",
     {"PMI_RANK=1", "PMI_SIZE=2", "MPI_LOCALRANKID=x", "MPI_LOCALNRANKS=2", NULL}},
    {"SLURM_PROCID is 9 but SLURM_STEP_NUM_TASKS is 2",
     {"SLURM_PROCID=9", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0", NULL}},
    {"started by Slurm, need a place",
     {"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_ID=0",
      "SLURM_STEP_NUM_NODES=2", NULL}},
};
/* clang-format on */

Test(launch, every_environment_that_means_something_is_understood)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct launch launch = {.launcher = ""};
        /* Ranks of other hosts have been told another name. */
        bool everywhere = !strncmp(good[i].address, "localhost:", 10);

        if (fork() == 0) { /* a fresh count of opens for each */
            set_only(good[i].variables);
            if (launch_read(&launch))
                _exit(1);
            if (strcmp(launch.launcher, good[i].launcher))
                _exit(2);
            if (launch.rank != good[i].rank || launch.size != good[i].size)
                _exit(3);
            if (launch.local_rank != good[i].local_rank || launch.local_size != good[i].local_size)
                _exit(4);
            if (strncmp(launch.place.address, good[i].address, strlen(good[i].address)))
                _exit(5);
            _exit(launch.place.listen_everywhere == everywhere ? 0 : 6);
        }
        int status;

        wait(&status);
        cr_assert(WIFEXITED(status) && !WEXITSTATUS(status),
                  "%s: %d (1 error, 2 launcher, 3 rank or size, 4 local ones, 5 address, "
                  "6 interfaces)",
                  good[i].what, WEXITSTATUS(status));
    }
}

Test(launch, every_contradiction_gets_a_sentence_that_names_the_variable)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct launch launch = {.launcher = "untouched"};

        set_only(bad[i].variables);
        cr_assert_eq(launch_read(&launch), RONDO_ERROR_INVALID, "%s", bad[i].part);
        cr_assert(strstr(fail_sentence(), bad[i].part), "'%s' should be '%s'", fail_sentence(),
                  bad[i].part);
        cr_assert_str_eq(launch.launcher, "untouched");
    }
}

static const char *const one_job[] = {"RANK=0",
                                      "WORLD_SIZE=2",
                                      "LOCAL_WORLD_SIZE=2",
                                      "MASTER_ADDR=localhost",
                                      "MASTER_PORT=29500",
                                      "TORCHELASTIC_RUN_ID=a",
                                      NULL};

/* The place in a process of its own, whose count of opens begins anew. */
static struct bootstrap_place place_with(const char *name, const char *value)
{
    struct bootstrap_place place = {.address = ""};
    struct launch launch;
    int ends[2];

    cr_assert_eq(pipe(ends), 0);
    if (fork() == 0) {
        set_only(one_job);
        setenv(name, value, 1);
        if (launch_read(&launch))
            _exit(1);
        _exit(write(ends[1], &launch.place, sizeof(launch.place)) < 0);
    }
    wait(NULL);
    close(ends[1]);
    cr_assert_eq(read(ends[0], &place, sizeof(place)), (ssize_t)sizeof(place));
    close(ends[0]);
    return place;
}

Test(launch, ranks_of_one_job_find_one_place_and_other_jobs_another)
{
    struct bootstrap_place mine = place_with("RANK", "0"), other = place_with("RANK", "1");

    cr_assert_str_eq(mine.address, other.address);
    cr_assert_arr_eq(mine.secret, other.secret, BOOTSTRAP_SECRET);
    cr_assert_str_neq(mine.address, place_with("MASTER_PORT", "29501").address);
    cr_assert_str_neq(mine.address, place_with("TORCHELASTIC_RUN_ID", "b").address);
    cr_assert_str_neq(mine.address, place_with("TORCHELASTIC_RESTART_COUNT", "1").address);
    other = place_with("RONDO_SECRET", "x");
    cr_assert_str_eq(mine.address, other.address);
    cr_assert_arr_neq(mine.secret, other.secret, BOOTSTRAP_SECRET);
}

Test(launch, each_open_of_a_process_has_a_place_of_its_own)
{
    struct launch launch;
    char addresses[3][BOOTSTRAP_ADDRESS_MAX];

    set_only(one_job);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(launch_read(&launch), RONDO_OK);
        strcpy(addresses[i], launch.place.address);
        for (int j = 0; j < i; j++)
            cr_assert_str_neq(addresses[i], addresses[j]);
    }
}

/* Starts a rank that has been told that address, and a port and a secret. */
static pid_t start_by_master(const char *const *job, const char *rank, const char *address,
                             const char *port)
{
    pid_t child = fork();

    if (!child) {
        struct launch launch;
        int ranks[2];

        set_only(job);
        setenv("RANK", rank, 1);
        setenv("MASTER_ADDR", address, 1);
        setenv("MASTER_PORT", port, 1);
        _exit(launch_read(&launch) ||
              bootstrap_all_gather(&launch.place, launch.rank, launch.size, true, 60, &launch.rank,
                                   sizeof(int), ranks));
    }
    return child;
}

Test(launch, the_master_of_several_hosts_may_be_told_localhost)
{
    static const char *const job[] = {"WORLD_SIZE=2", "RONDO_SECRET=0123456789abcdef0123456789abcd",
                                      NULL};
    struct bootstrap_place place;
    const char *port;
    pid_t ranks[2];

    party_place(&place, true);
    port = strrchr(place.address, ':') + 1;
    ranks[0] = start_by_master(job, "0", "localhost", port);
    ranks[1] = start_by_master(job, "1", "127.0.0.2", port);
    for (int rank = 0; rank < 2; rank++) {
        int status = -1;

        waitpid(ranks[rank], &status, 0);
        cr_expect_eq(status, 0, "rank %d", rank);
    }
}

/* ---- The key --------------------------------------------------------------------------------- */

Test(launch, a_secret_is_strong_if_it_is_long_and_looks_random)
{
    cr_expect(launch_secret_is_strong("GGydDo6XZOO0gPv8nFRnQ2D5dpPyv0pN"));
    cr_expect(launch_secret_is_strong("0123456789abcdef0123456789abcdef"));
    cr_expect(!launch_secret_is_strong("GGydDo6XZOO0gPv8nFRnQ2D5dpPyv0p"), "31 characters");
    cr_expect(!launch_secret_is_strong("xyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxyxy"));
    cr_expect(!launch_secret_is_strong(""));
}

static struct bootstrap_place place_over_tcp(const char *secret)
{
    static const char *const job[] = {"RONDO_RANK=1", "RONDO_SIZE=2",
                                      "RONDO_ADDRESS=127.0.0.1:29999", NULL};
    struct launch launch;

    set_only(job);
    setenv("RONDO_SECRET", secret, 1);
    cr_assert_eq(launch_read(&launch), RONDO_OK, "%s", fail_sentence());
    return launch.place;
}

/* Seconds of processor time. */
static double worked(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

Test(launch, a_guess_at_a_weak_secret_costs_time_and_a_strong_one_none)
{
    static const char weak[] = "correct horse battery";
    unsigned char key[BOOTSTRAP_SECRET];
    struct bootstrap_place place;
    double began = worked(), first, again;

    place = place_over_tcp(weak);
    first = worked() - began;
    cr_expect_gt(first, 0.005, "%g s", first);
    began = worked();
    cr_assert_eq(launch_secret_stretch(weak, key), RONDO_OK);
    again = worked() - began;
    cr_expect_lt(again, first / 4, "the second time %g s, the first %g s", again, first);
    cr_expect_arr_eq(place.secret, key, sizeof(key));
    cr_assert_eq(launch_secret_stretch("correct horse batterz", key), RONDO_OK);
    cr_expect_arr_neq(place.secret, key, sizeof(key));
    began = worked();
    place_over_tcp("GGydDo6XZOO0gPv8nFRnQ2D5dpPyv0pN");
    cr_expect_lt(worked() - began, first / 4);
}
