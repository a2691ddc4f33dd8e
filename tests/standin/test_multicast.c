/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_multicast.c - multicast objects: who may bind what, and what their instructions do, in one
 * process and between two.
 */
#include "tests/standin/case.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 2 << 20, AT = 4096, MOST = 8 };

static const CUmemAllocationHandleType files = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

struct all {
    CUdeviceptr multicast, result;
    unsigned value;
};

/* A device's part of a team. */
struct part {
    CUmemGenericAllocationHandle memory;
    CUdeviceptr own, multicast;
};

static CUmulticastObjectProp team_of(unsigned devices)
{
    return (CUmulticastObjectProp){.numDevices = devices, .size = SIZE, .handleTypes = files};
}

static CUmemGenericAllocationHandle make_memory(CUdevice device)
{
    CUmemAllocationProp on = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes = files,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle memory = 0;
    CHECK_OK(cuMemCreate(&memory, SIZE, &on, 0));
    return memory;
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle, CUdevice device)
{
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr at = 0;
    CHECK_OK(cuMemAddressReserve(&at, SIZE, 0, 0, 0));
    CHECK_OK(cuMemMap(at, SIZE, 0, handle, 0));
    CHECK_OK(cuMemSetAccess(at, SIZE, &access, 1));
    return at;
}

static void unmap(CUdeviceptr at)
{
    CHECK_OK(cuMemUnmap(at, SIZE));
    CHECK_OK(cuMemAddressFree(at, SIZE));
}

static struct part join(CUmemGenericAllocationHandle team, CUdevice device)
{
    struct part part = {.memory = make_memory(device)};
    CHECK_OK(cuMulticastBindMem(team, 0, part.memory, 0, SIZE, 0));
    part.own = map(part.memory, device);
    part.multicast = map(team, device);
    return part;
}

static void leave(CUmemGenericAllocationHandle team, CUdevice device, struct part *part)
{
    unmap(part->multicast);
    unmap(part->own);
    CHECK_OK(cuMulticastUnbind(team, device, 0, SIZE));
    CHECK_OK(cuMemRelease(part->memory));
}

static void run(const char *name, const struct part *part, CUdeviceptr result, unsigned value)
{
    struct all job = {part->multicast + AT, result, value};
    void *parameters[] = {&job};
    CUfunction kernel = check_kernel(check, check_module(check), name);
    CHECK_OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
    CHECK_OK(cuCtxSynchronize());
}

static unsigned read_word(CUdeviceptr at)
{
    unsigned word = 0;
    CHECK_OK(cuMemcpyDtoH(&word, at, sizeof word));
    return word;
}

static void offer(const char *devices)
{
    setenv("CUDA_STANDIN_MULTICAST", "1", 1);
    setenv("CUDA_STANDIN_DEVICES", devices, 1);
}

CASE(multicast, is_not_offered_unasked)
{
    CUmulticastObjectProp two = team_of(2);
    CUmemGenericAllocationHandle team = 0;
    int offered = 1;
    unsetenv("CUDA_STANDIN_MULTICAST");
    check_begin(check, 0);
    CHECK_OK(cuDeviceGetAttribute(&offered, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
    CHECK(offered == 0);
    CHECK_GIVES(cuMulticastCreate(&team, &two), CUDA_ERROR_NOT_SUPPORTED);
    check_end(check, 0);
}

static void reach_all(unsigned devices)
{
    CUmulticastObjectProp props = team_of(devices);
    CUmemGenericAllocationHandle team = 0;
    struct part parts[MOST] = {{0}};
    size_t granularity = 0;
    int offered = 0;
    check_begin(check, 0);
    CHECK_OK(cuDeviceGetAttribute(&offered, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0));
    CHECK(offered == 1);
    CHECK_OK(cuMulticastGetGranularity(&granularity, &props, CU_MULTICAST_GRANULARITY_MINIMUM));
    CHECK(granularity == SIZE);
    CHECK_OK(cuMulticastCreate(&team, &props));
    for (unsigned i = 0; i < devices; i++)
        CHECK_OK(cuMulticastAddDevice(team, (CUdevice)i));
    for (unsigned i = 0; i < devices; i++)
        parts[i] = join(team, (CUdevice)i);
    run("example_store_all", &parts[0], 0, 7);
    for (unsigned i = 0; i < devices; i++)
        CHECK(read_word(parts[i].own + AT) == 7);
    run("example_add_all", &parts[0], 0, 3);
    for (unsigned i = 0; i < devices; i++) {
        CHECK(read_word(parts[i].own + AT) == 10);
        CHECK(read_word(parts[i].own + AT + 4) == 0);
        CHECK_OK(cuMemsetD32(parts[i].own + AT, 1u << i, 1));
    }
    run("example_reduce_all", &parts[0], parts[0].own, 0);
    CHECK(read_word(parts[0].own) == (1u << devices) - 1);
    for (unsigned i = 0; i < devices; i++)
        leave(team, (CUdevice)i, &parts[i]);
    CHECK_OK(cuMemRelease(team));
    check_end(check, 0);
}

CASE(multicast, a_store_reaches_both_and_sums_are_of_both)
{
    offer("2");
    reach_all(2);
}

CASE(multicast, a_store_reaches_all_and_sums_are_of_all)
{
    offer("8");
    reach_all(8);
}

CASE(multicast, wrong_teams_and_bindings_are_refused)
{
    CUmulticastObjectProp two = team_of(2), none = team_of(0), odd = team_of(2);
    CUmemGenericAllocationHandle team = 0, memory, foreign;
    CUdeviceptr own;
    offer("3");
    check_begin(check, 0);
    odd.size = SIZE + 4096;
    CHECK_GIVES(cuMulticastCreate(&team, &none), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMulticastCreate(&team, &odd), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMulticastCreate(&team, &two));
    memory = make_memory(0);
    foreign = make_memory(2);
    CHECK_OK(cuMulticastAddDevice(team, 0));
    CHECK_GIVES(cuMulticastAddDevice(team, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMulticastAddDevice(memory, 1), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMulticastBindMem(team, 0, memory, 0, SIZE, 0), CUDA_ERROR_ILLEGAL_STATE);
    CHECK_OK(cuMulticastAddDevice(team, 1));
    CHECK_GIVES(cuMulticastAddDevice(team, 2), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMulticastBindMem(team, 0, foreign, 0, SIZE, 0), CUDA_ERROR_INVALID_DEVICE);
    CHECK_GIVES(cuMulticastBindMem(team, 0, memory, 0, 4096, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMulticastBindMem(team, SIZE, memory, 0, SIZE, 0), CUDA_ERROR_INVALID_VALUE);
    own = map(memory, 0);
    CHECK_OK(cuMulticastBindAddr(team, 0, own, SIZE, 0));
    CHECK_GIVES(cuMulticastBindMem(team, 0, memory, 0, SIZE, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuMulticastUnbind(team, 1, 0, SIZE), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuMulticastUnbind(team, 0, 0, SIZE));
    unmap(own);
    CHECK_OK(cuMemRelease(memory));
    CHECK_OK(cuMemRelease(foreign));
    CHECK_OK(cuMemRelease(team));
    check_end(check, 0);
}

/* ---- What ends the process ------------------------------------------------------------------- */

static void misuse(const char *kernel, bool all_bound)
{
    CUmulticastObjectProp two = team_of(2);
    CUmemGenericAllocationHandle team = 0;
    struct part part;
    offer("2");
    check_begin(check, 0);
    CHECK_OK(cuMulticastCreate(&team, &two));
    CHECK_OK(cuMulticastAddDevice(team, 0));
    CHECK_OK(cuMulticastAddDevice(team, 1));
    part = join(team, 0);
    if (all_bound)
        join(team, 1);
    run(kernel, &part, 0, 1);
}

static void wrong_instruction(void)
{
    misuse("example_touch_all", true);
}

static void missing_member(void)
{
    misuse("example_store_all", false);
}

/* How the body ends in a process of its own, which has not used the driver. */
static int ends_by(void (*body)(void))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        signal(SIGABRT, SIG_DFL);
        body();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WIFEXITED(status) && WEXITSTATUS(status);
}

Test(multicast, other_accesses_end_the_process)
{
    cr_assert(ends_by(wrong_instruction) != 0);
    cr_assert(ends_by(missing_member) != 0);
}

/* ---- Two processes --------------------------------------------------------------------------- */

static void await(const _Atomic int *word, int value)
{
    while (*word < value)
        usleep(100);
}

struct meeting {
    _Atomic int file, added, bound, stored, over;
};

static struct meeting *meeting;

/* The other process: it has device 1, and the object by a file of the first one. */
static void join_as_second(void)
{
    CUmemGenericAllocationHandle team = 0;
    char path[64];
    struct part part;
    int file;
    check_begin(check, 1);
    await(&meeting->file, 1);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), meeting->file);
    file = open(path, O_RDWR | O_CLOEXEC);
    CHECK_OK(cuMemImportFromShareableHandle(&team, (void *)(size_t)file, files));
    close(file);
    CHECK_OK(cuMulticastAddDevice(team, 1));
    meeting->added = 1;
    part = join(team, 1);
    meeting->bound = 1;
    await(&meeting->stored, 1);
    CHECK(read_word(part.own + AT) == 7);
    run("example_add_all", &part, 0, 2);
    meeting->stored = 2;
    await(&meeting->over, 1);
    leave(team, 1, &part);
    CHECK_OK(cuMemRelease(team));
    check_end(check, 1);
    _exit(check->what ? 1 : 0);
}

CASE(multicast, processes_share_an_object_by_its_file)
{
    CUmulticastObjectProp two = team_of(2);
    CUmemGenericAllocationHandle team = 0;
    struct part part;
    int file = -1, status = 1;
    pid_t child;
    offer("2");
    meeting =
        mmap(NULL, sizeof *meeting, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    child = fork();
    if (child == 0)
        join_as_second();
    check_begin(check, 0);
    CHECK_OK(cuMulticastCreate(&team, &two));
    CHECK_OK(cuMemExportToShareableHandle(&file, team, files, 0));
    CHECK_OK(cuMulticastAddDevice(team, 0));
    meeting->file = file;
    await(&meeting->added, 1);
    part = join(team, 0);
    await(&meeting->bound, 1);
    run("example_store_all", &part, 0, 7);
    meeting->stored = 1;
    await(&meeting->stored, 2);
    CHECK(read_word(part.own + AT) == 9);
    run("example_reduce_all", &part, part.own, 0);
    CHECK(read_word(part.own) == 18);
    meeting->over = 1;
    waitpid(child, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(file);
    leave(team, 0, &part);
    CHECK_OK(cuMemRelease(team));
    check_end(check, 0);
}
