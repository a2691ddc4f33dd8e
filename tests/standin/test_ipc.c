/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_ipc.c - memory and events that two processes share.
 */
#include "tests/standin/check.h"
#include "tests/standin/peer.h"

#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct peer peer;
static struct check checked;
static struct check *const check = &checked;

/* An assertion in a suite's .init or .fini does not count with Criterion: so the case itself does
 * what belongs before and after. */
static void run(void (*body)(void))
{
    check_begin(check, 0);
    cr_assert(peer_start(&peer), "the other process can't be started");
    body();
    int status = peer_end(&peer);
    check_end(check, 0);
    cr_assert(!checked.what, "%s:%d: %s: got %ld", checked.file, checked.line, checked.what,
              checked.got);
    cr_assert_eq(status, 0, "the other process ended with status %d", status);
}

TestSuite(ipc); /* who fails here often leaves a stream that waits for ever */

#define CASE(name)          \
    static void name(void); \
    Test(ipc, name)         \
    {                       \
        run(name);          \
    }                       \
    static void name(void)

static struct peer_answer ask(enum peer_verb verb, CUdeviceptr address, unsigned value)
{
    struct peer_request request = {.verb = verb, .address = address, .value = value};
    return peer_ask(&peer, &request, -1);
}

static struct peer_answer ask_to_open(const CUipcMemHandle *handle)
{
    struct peer_request request = {.verb = PEER_OPEN, .memory = *handle};
    return peer_ask(&peer, &request, -1);
}

static CUipcMemHandle handle_of(CUdeviceptr memory)
{
    CUipcMemHandle handle;
    memset(&handle, 0, sizeof handle);
    CHECK_OK(cuIpcGetMemHandle(&handle, memory));
    return handle;
}

CASE(both_processes_use_the_same_memory)
{
    CUdeviceptr memory = check_memory(check, 100);
    CHECK_OK(cuMemsetD32(memory, 5, 1));
    CUipcMemHandle handle = handle_of(memory), again = handle_of(memory + 50);
    CHECK(memcmp(&handle, &again, sizeof handle) == 0);
    struct peer_answer opened = ask_to_open(&handle);
    CHECK_OK(opened.result);
    CHECK(ask(PEER_READ, opened.address, 0).value == 5);
    CHECK_OK(ask(PEER_WRITE, opened.address + 4, 6).result);
    CHECK_OK(ask(PEER_SYNCHRONIZE, 0, 0).result);
    CHECK(check_read(check, memory + 4) == 6);
    CHECK_GIVES(ask(PEER_READ, opened.address + 97, 0).result, CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(ask(PEER_CLOSE, opened.address, 0).result);
    CHECK_GIVES(ask(PEER_CLOSE, opened.address, 0).result, CUDA_ERROR_INVALID_VALUE);
}

CASE(second_open_of_a_handle_gives_the_same_address)
{
    CUdeviceptr memory = check_memory(check, 64);
    CUipcMemHandle handle = handle_of(memory);
    struct peer_answer first = ask_to_open(&handle), second = ask_to_open(&handle);
    CHECK(first.result == CUDA_SUCCESS && second.address == first.address);
    CHECK_OK(ask(PEER_CLOSE, first.address, 0).result);
    CHECK_OK(ask(PEER_READ, first.address, 0).result);
    CHECK_OK(ask(PEER_CLOSE, first.address, 0).result);
    CHECK_GIVES(ask(PEER_READ, first.address, 0).result, CUDA_ERROR_INVALID_VALUE);
}

CASE(importer_keeps_the_memory_that_the_exporter_frees)
{
    CUdeviceptr memory = check_memory(check, 64);
    CHECK_OK(cuMemsetD32(memory, 5, 1));
    CUipcMemHandle handle = handle_of(memory);
    struct peer_answer opened = ask_to_open(&handle);
    CHECK_OK(cuMemFree(memory));
    CUdeviceptr next = check_memory(check, 64);
    CHECK(ask(PEER_READ, opened.address, 0).value == 5);
    CHECK_OK(ask(PEER_WRITE, opened.address, 9).result);
    CHECK_OK(ask(PEER_SYNCHRONIZE, 0, 0).result);
    CHECK(check_read(check, next) == 0); /* it is no other's memory now */
    CHECK_OK(ask(PEER_CLOSE, opened.address, 0).result);
    CHECK_GIVES(ask_to_open(&handle).result, CUDA_ERROR_INVALID_VALUE); /* freed: gone */
}

CASE(own_and_wrong_handles_are_refused)
{
    CUdeviceptr managed = 0, opened = 0, device = check_memory(check, 64);
    unsigned *word = check_word(check), flags = CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
    CUipcMemHandle handle, nonsense;
    memset(&nonsense, 7, sizeof nonsense);
    CHECK_OK(cuMemAllocManaged(&managed, 64, CU_MEM_ATTACH_GLOBAL));
    CHECK_GIVES(cuIpcGetMemHandle(&handle, managed), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuIpcGetMemHandle(&handle, check_address(word)), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuIpcGetMemHandle(&handle, device));
    CHECK_GIVES(cuIpcOpenMemHandle(&opened, handle, flags), CUDA_ERROR_INVALID_CONTEXT);
    CHECK_GIVES(cuIpcOpenMemHandle(&opened, nonsense, flags), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(ask_to_open(&nonsense).result, CUDA_ERROR_INVALID_VALUE);
    struct peer_answer there = ask(PEER_EXPORT, 0, 0);
    CHECK_OK(there.result);
    CHECK_GIVES(cuIpcOpenMemHandle(&opened, there.memory, 0), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuIpcOpenMemHandle(&opened, there.memory, flags));
    CHECK_GIVES(cuMemFree(opened), CUDA_ERROR_INVALID_VALUE);
    CHECK_GIVES(cuIpcGetMemHandle(&handle, opened), CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cuIpcCloseMemHandle(opened));
    CHECK_GIVES(cuIpcCloseMemHandle(device), CUDA_ERROR_INVALID_VALUE);
}

CASE(stream_of_one_process_waits_for_a_word_of_the_other)
{
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    CUipcMemHandle handle = handle_of(memory);
    CUdeviceptr there = ask_to_open(&handle).address;
    CHECK_OK(ask(PEER_WAIT_VALUE, there, 3).result);
    CHECK_OK(ask(PEER_WRITE, there + 4, 4).result);
    CHECK_GIVES(ask(PEER_QUERY, 0, 0).result, CUDA_ERROR_NOT_READY);
    CHECK_OK(cuStreamWaitValue32(stream, memory + 4, 4, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuMemsetD32(memory, 3, 1));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(ask(PEER_SYNCHRONIZE, 0, 0).result);
}

static CUevent shared_event(CUipcEventHandle *handle)
{
    CUevent event = NULL;
    CHECK_OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS));
    CHECK_OK(cuIpcGetEventHandle(handle, event));
    return event;
}

CASE(other_process_waits_for_an_event_of_ours)
{
    struct peer_request open = {.verb = PEER_OPEN_EVENT};
    CUstream stream = check_stream(check);
    unsigned *gate = check_word(check);
    CUevent event = shared_event(&open.event), opened = NULL;
    CHECK_OK(cuEventQuery(event));
    CHECK_OK(peer_ask(&peer, &open, -1).result);
    CHECK_OK(cuStreamWaitValue32(stream, check_address(gate), 1, CU_STREAM_WAIT_VALUE_GEQ));
    CHECK_OK(cuEventRecord(event, stream));
    CHECK_GIVES(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    CHECK_OK(ask(PEER_WAIT_EVENT, 0, 0).result);
    CHECK_GIVES(ask(PEER_QUERY, 0, 0).result, CUDA_ERROR_NOT_READY);
    check_release(gate, 1);
    CHECK_OK(ask(PEER_SYNCHRONIZE, 0, 0).result);
    CHECK_OK(cuEventSynchronize(event));
    CHECK_GIVES(cuIpcOpenEventHandle(&opened, open.event), CUDA_ERROR_INVALID_CONTEXT);
}

CASE(event_that_the_other_process_records_holds_our_stream)
{
    struct peer_request open = {.verb = PEER_OPEN_EVENT};
    CUstream stream = check_stream(check);
    CUdeviceptr memory = check_memory(check, 64);
    CUipcMemHandle handle = handle_of(memory);
    CUdeviceptr there = ask_to_open(&handle).address;
    CUevent event = shared_event(&open.event), plain = NULL;
    CHECK_OK(peer_ask(&peer, &open, -1).result);
    CHECK_OK(ask(PEER_WAIT_VALUE, there, 1).result);
    CHECK_OK(ask(PEER_RECORD, 0, 0).result);
    CHECK_OK(cuStreamWaitEvent(stream, event, 0));
    CHECK_GIVES(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    CHECK_OK(cuMemsetD32(memory, 1, 1));
    CHECK_OK(cuStreamSynchronize(stream));
    CHECK_OK(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
    CHECK_GIVES(cuIpcGetEventHandle(&open.event, plain), CUDA_ERROR_INVALID_HANDLE);
    CHECK_GIVES(cuEventCreate(&plain, CU_EVENT_INTERPROCESS), CUDA_ERROR_INVALID_VALUE);
}

CASE(mapped_memory_goes_over_as_a_descriptor)
{
    enum { SIZE = 2 << 20 };
    CUmemAllocationProp how = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
    CUmemAccessDesc access = {.location = how.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle = 0;
    CUdeviceptr memory = 0;
    int fd = -1;
    CHECK_OK(cuMemCreate(&handle, SIZE, &how, 0));
    CHECK_OK(cuMemAddressReserve(&memory, SIZE, 0, 0, 0));
    CHECK_OK(cuMemMap(memory, SIZE, 0, handle, 0));
    CHECK_OK(cuMemSetAccess(memory, SIZE, &access, 1));
    CHECK_OK(
        cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    CHECK_OK(cuMemsetD32(memory + 64, 5, 1));
    struct peer_request import = {.verb = PEER_IMPORT};
    struct peer_answer there = peer_ask(&peer, &import, fd);
    close(fd);
    CHECK_OK(there.result);
    CHECK_OK(cuMemUnmap(memory, SIZE));
    CHECK_OK(cuMemRelease(handle));
    CHECK_OK(cuMemAddressFree(memory, SIZE));
    CHECK(ask(PEER_READ, there.address + 64, 0).value == 5);
    CHECK_OK(ask(PEER_UNMAP, there.address, 0).result);
}

CASE(forked_child_can_not_use_the_driver)
{
    int status = 0;
    pid_t child = fork();
    if (!child) {
        CUdeviceptr memory = 0;
        int refused = cuMemAlloc(&memory, 64) == CUDA_ERROR_NOT_INITIALIZED &&
                      cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
        _exit(refused ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}
