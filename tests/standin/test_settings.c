/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_settings.c - what the environment changes. Each case is a process of its own, and sets it
 * before the driver is initialised.
 */
#include "standin/driver/base/standin.h"
#include "tests/patience.h"
#include "tests/standin/case.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

CASE(settings, no_devices_are_said_at_the_start)
{
    setenv("CUDA_STANDIN_DEVICES", "0", 1);
    CHECK_GIVES(cuInit(0), CUDA_ERROR_NO_DEVICE);
    CHECK_GIVES(cuInit(1), CUDA_ERROR_INVALID_VALUE);
}

CASE(settings, functions_need_the_start)
{
    int count = 0;
    CUcontext context = NULL;
    CHECK_GIVES(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_GIVES(cuCtxGetCurrent(&context), CUDA_ERROR_NOT_INITIALIZED);
    CHECK_OK(cuDriverGetVersion(&count));
    CHECK(count == CUDA_VERSION);
}

CASE(settings, visible_devices_are_chosen_and_ordered)
{
    CUuuid all[4], first;
    setenv("CUDA_STANDIN_DEVICES", "4", 1);
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    int count = 0;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuDeviceGetCount(&count));
    CHECK(count == 2);
    CHECK_OK(cuDeviceGetUuid(&first, 0));
    CHECK_OK(cuDeviceGetUuid(&all[1], 1));
    CHECK(first.bytes[15] == 2 && all[1].bytes[15] == 0);
}

CASE(settings, mps_gives_a_share_of_the_multiprocessors)
{
    int count = 0;
    setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "25", 1);
    check_begin(check, 0);
    CHECK_OK(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    CHECK(count == 3); /* of 10, rounded up */
}

CASE(settings, memory_and_peers_are_limited)
{
    setenv("CUDA_STANDIN_MEMORY", "1000000", 1);
    setenv("CUDA_STANDIN_PEER", "0", 1);
    size_t total = 0;
    int can = 1;
    CUdeviceptr memory = 0;
    CUcontext second = check_begin(check, 1);
    check_begin(check, 0);
    CHECK_OK(cuDeviceTotalMem(&total, 0));
    CHECK(total == 1000000);
    CHECK_GIVES(cuMemAlloc(&memory, 1000001), CUDA_ERROR_OUT_OF_MEMORY);
    CHECK_OK(cuDeviceCanAccessPeer(&can, 0, 1));
    CHECK(can == 0);
    CHECK_GIVES(cuCtxEnablePeerAccess(second, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
}

CASE(settings, calls_fail_on_request)
{
    setenv("CUDA_STANDIN_FAIL", "cuMemAlloc:2,cuStreamCreate:1=801,cuMemAllocHost:1", 1);
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    check_begin(check, 0);
    CHECK_OK(cuMemAlloc(&memory, 64));
    CHECK_GIVES(cuMemAlloc(&memory, 64), CUDA_ERROR_UNKNOWN);
    CHECK_OK(cuMemAlloc(&memory, 64));
    CHECK_GIVES(cuStreamCreate(&stream, 0), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_OK(cuStreamCreate(&stream, 0));
    CHECK_OK(cuStreamDestroy(stream));
    void *bytes = NULL;
    CHECK_OK(cuMemHostAlloc(&bytes, 64, 0));
    CHECK_GIVES(cuMemAllocHost(&bytes, 64), CUDA_ERROR_UNKNOWN);
}

CASE(settings, calls_go_on_failing_on_request)
{
    setenv("CUDA_STANDIN_FAIL", "cuMemAlloc:2+=801,cuStreamCreate:1", 1);
    CUdeviceptr memory = 0;
    CUstream stream = NULL;
    check_begin(check, 0);
    CHECK_OK(cuMemAlloc(&memory, 64));
    for (int i = 0; i < 3; i++)
        CHECK_GIVES(cuMemAlloc(&memory, 64), CUDA_ERROR_NOT_SUPPORTED);
    CHECK_GIVES(cuStreamCreate(&stream, 0), CUDA_ERROR_UNKNOWN);
    CHECK_OK(cuStreamCreate(&stream, 0));
    CHECK_OK(cuStreamDestroy(stream));
}

/* The end of a child that reads the word by its own hand. */
static int end_of_reader(CUdeviceptr memory)
{
    int status = 0;
    pid_t child = fork();
    if (!child) {
        signal(SIGSEGV, SIG_DFL);
        const unsigned *word = (const unsigned *)(size_t)memory;
        _exit(*word == 5 ? 0 : 1);
    }
    waitpid(child, &status, 0);
    return status;
}

CASE(settings, device_memory_is_out_of_the_programs_reach)
{
    check_begin(check, 0);
    CUdeviceptr memory = check_memory(check, 64);
    CHECK_OK(cuMemsetD32(memory, 5, 1));
    CHECK(WTERMSIG(end_of_reader(memory)) == SIGSEGV);
}

CASE(settings, device_memory_is_closed_while_nothing_runs)
{
    setenv("CUDA_STANDIN_GUARD", "2", 1);
    check_begin(check, 0);
    CUdeviceptr memory = check_memory(check, 64);
    CHECK_OK(cuMemsetD32(memory, 5, 1));
    CHECK(WTERMSIG(end_of_reader(memory)) == SIGSEGV);
    CHECK(check_read(check, memory) == 5);
    CHECK(WTERMSIG(end_of_reader(memory)) == SIGSEGV);
    check_end(check, 0);
}

CASE(settings, work_elsewhere_does_not_open_device_memory)
{
    setenv("CUDA_STANDIN_GUARD", "2", 1);
    check_begin(check, 0);
    CUdeviceptr memory = check_memory(check, 64), other = check_memory(check, 64);
    CUstream stream = NULL;
    CHECK_OK(cuMemsetD32(memory, 5, 1));
    CHECK_OK(cuMemsetD32(other, 0, 1));
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_OK(cuStreamWaitValue32(stream, other, 1, CU_STREAM_WAIT_VALUE_EQ));
    CHECK(WTERMSIG(end_of_reader(memory)) == SIGSEGV);
    CHECK_OK(cuMemsetD32Async(other, 1, 1, CU_STREAM_PER_THREAD));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK(WTERMSIG(end_of_reader(other)) == SIGSEGV);
    CHECK_OK(cuStreamDestroy(stream));
    check_end(check, 0);
}

CASE(settings, guard_can_be_turned_off)
{
    setenv("CUDA_STANDIN_GUARD", "0", 1);
    check_begin(check, 0);
    CUdeviceptr memory = check_memory(check, 64);
    CHECK_OK(cuMemsetD32(memory, 5, 1));
    CHECK(end_of_reader(memory) == 0);
}

struct freer {
    CUcontext context;
    CUdeviceptr memory;
    _Atomic pid_t thread; /* about to free or allocate */
    atomic_bool done;
};

static void *free_memory(void *argument)
{
    struct freer *freer = argument;
    cuCtxSetCurrent(freer->context);
    atomic_store_explicit(&freer->thread, gettid(), memory_order_relaxed);
    cuMemFree(freer->memory);
    return NULL;
}

static void *allocate_memory(void *argument)
{
    struct freer *freer = argument;
    cuCtxSetCurrent(freer->context);
    atomic_store_explicit(&freer->thread, gettid(), memory_order_relaxed);
    cuMemAlloc(&freer->memory, 64);
    atomic_store_explicit(&freer->done, true, memory_order_relaxed);
    return NULL;
}

/* True if an allocation ends while a free waits for work of the device. */
static bool allocates_beside_free(void)
{
    CUcontext context = check_begin(check, 0);
    struct freer freer = {.context = context, .memory = check_memory(check, 64)};
    struct freer allocator = {.context = context};
    CUdeviceptr word = check_memory(check, 64);
    CUstream stream = NULL;
    pthread_t freeing, allocating;
    CHECK_OK(cuMemsetD32(word, 0, 1));
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK_OK(cuStreamWaitValue32(stream, word, 1, CU_STREAM_WAIT_VALUE_EQ));
    pthread_create(&freeing, NULL, free_memory, &freer);
    world_await_told(&freer.thread);
    pthread_create(&allocating, NULL, allocate_memory, &allocator);
    world_await_told(&allocator.thread);
    bool allocated = atomic_load_explicit(&allocator.done, memory_order_relaxed);
    CHECK_OK(cuMemsetD32Async(word, 1, 1, CU_STREAM_PER_THREAD));
    pthread_join(freeing, NULL);
    pthread_join(allocating, NULL);
    CHECK(allocator.memory);
    CHECK_OK(cuStreamDestroy(stream));
    return allocated;
}

CASE(settings, a_free_keeps_others_from_memory)
{
    CHECK(!allocates_beside_free());
}

CASE(settings, a_free_lets_others_allocate_on_request)
{
    setenv("CUDA_STANDIN_FREE_LOCKS", "0", 1);
    CHECK(allocates_beside_free());
}

CASE(settings, errors_have_names_and_sentences)
{
    const char *text = NULL;
    CHECK_OK(cuGetErrorName(CUDA_ERROR_NOT_READY, &text));
    CHECK(text && strcmp(text, "CUDA_ERROR_NOT_READY") == 0);
    CHECK_OK(cuGetErrorString(CUDA_SUCCESS, &text));
    CHECK(text && strcmp(text, "no error") == 0);
    CHECK_GIVES(cuGetErrorName((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    CHECK(!text);
}

CASE(settings, functions_are_found_by_their_names)
{
    void *function = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
    CUresult (*version)(int *) = NULL;
    int number = 0;
    CHECK_OK(cuInit(0));
    CHECK_OK(cuGetProcAddress("cuMemAlloc", &function, CUDA_VERSION, 0, &status));
    CHECK(function && status == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK_OK(cuGetProcAddress("cuDriverGetVersion", &function, CUDA_VERSION, 0, NULL));
    memcpy(&version, &function, sizeof version);
    CHECK_OK(version(&number));
    CHECK(number == CUDA_VERSION);
    CHECK_GIVES(cuGetProcAddress("cuNothing", &function, CUDA_VERSION, 0, &status),
                CUDA_ERROR_NOT_FOUND);
    CHECK(!function && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

enum { STOPS = 5, STOP_FILLS = 40, STOP_BYTES = 16 << 20 };

/* Fills the memory again and again, and stops now and then. */
static void fill_and_stop(unsigned char *memory)
{
    CUdeviceptr device = 0;
    CUstream stream = NULL;
    check_begin(check, 0);
    CHECK_OK(cuMemHostRegister(memory, STOP_BYTES, CU_MEMHOSTREGISTER_DEVICEMAP));
    CHECK_OK(cuMemHostGetDevicePointer(&device, memory, 0));
    CHECK_OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int stop = 0; stop < STOPS && !check->what; stop++) {
        for (int i = 0; i < STOP_FILLS; i++)
            CHECK_OK(cuMemsetD8Async(device, (unsigned char)(STOP_FILLS * stop + i), STOP_BYTES,
                                     stream));
        while (__atomic_load_n(memory, __ATOMIC_RELAXED) <= STOP_FILLS * stop && !check->what)
            usleep(100); /* until the second one begins */
        cuStandinStop();
    }
    CHECK_OK(cuStreamSynchronize(stream));
    _exit(check->what != NULL);
}

CASE(settings, a_process_stops_between_operations)
{
    unsigned char *memory =
        mmap(NULL, STOP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    pid_t child = fork();
    if (!child)
        fill_and_stop(memory);
    for (int stop = 0; stop < STOPS; stop++) {
        CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
        CHECK(memcmp(memory, memory + 1, STOP_BYTES - 1) == 0);
        kill(child, SIGCONT);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(memory[0] == STOPS * STOP_FILLS - 1);
    munmap(memory, STOP_BYTES);
}
