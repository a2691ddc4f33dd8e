/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * standin_peer.c - the other process of the IPC tests: does what it is asked on descriptor 3, with
 * device 1 and a stream of its own.
 */
#include "tests/standin/peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOCKET = 3, MAPPED = 2 << 20 };

static CUstream stream;
static CUevent event;

/* Takes a request, and the descriptor that comes with it (-1: none). False at the end. */
static int take(struct peer_request *request, int *ret_fd)
{
    char control[CMSG_SPACE(sizeof *ret_fd)] __attribute__((aligned(8)));
    struct iovec bytes = {request, sizeof *request};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof control};
    *ret_fd = -1;
    if (recvmsg(SOCKET, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *request)
        return 0;
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    if (header)
        memcpy(ret_fd, CMSG_DATA(header), sizeof *ret_fd);
    return 1;
}

static CUresult import(int fd, CUdeviceptr *address)
{
    CUmemGenericAllocationHandle handle = 0;
    CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUresult result = cuMemImportFromShareableHandle(&handle, (void *)(size_t)fd,
                                                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    close(fd);
    if (!result)
        result = cuMemAddressReserve(address, MAPPED, 0, 0, 0);
    if (!result)
        result = cuMemMap(*address, MAPPED, 0, handle, 0);
    if (!result)
        result = cuMemRelease(handle);
    return result ? result : cuMemSetAccess(*address, MAPPED, &access, 1);
}

static CUresult unmap(CUdeviceptr address)
{
    CUresult result = cuMemUnmap(address, MAPPED);
    return result ? result : cuMemAddressFree(address, MAPPED);
}

static CUresult export(CUipcMemHandle *handle)
{
    CUdeviceptr memory = 0;
    CUresult result = cuMemAlloc(&memory, 64);
    return result ? result : cuIpcGetMemHandle(handle, memory);
}

static CUresult answer(const struct peer_request *request, int fd, struct peer_answer *said)
{
    switch (request->verb) {
    case PEER_OPEN:
        return cuIpcOpenMemHandle(&said->address, request->memory,
                                  CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    case PEER_CLOSE:
        return cuIpcCloseMemHandle(request->address);
    case PEER_READ:
        return cuMemcpyDtoH(&said->value, request->address, sizeof said->value);
    case PEER_WRITE:
        return cuStreamWriteValue32(stream, request->address, request->value, 0);
    case PEER_WAIT_VALUE:
        return cuStreamWaitValue32(stream, request->address, request->value,
                                   CU_STREAM_WAIT_VALUE_EQ);
    case PEER_QUERY:
        return cuStreamQuery(stream);
    case PEER_SYNCHRONIZE:
        return cuStreamSynchronize(stream);
    case PEER_OPEN_EVENT:
        return cuIpcOpenEventHandle(&event, request->event);
    case PEER_WAIT_EVENT:
        return cuStreamWaitEvent(stream, event, 0);
    case PEER_RECORD:
        return cuEventRecord(event, stream);
    case PEER_IMPORT:
        return import(fd, &said->address);
    case PEER_UNMAP:
        return unmap(request->address);
    case PEER_EXPORT:
        return export(&said->memory);
    case PEER_END:
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}

int main(void)
{
    CUcontext context = NULL;
    struct peer_request request = {0};
    int fd = -1;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 1) || cuCtxSetCurrent(context) ||
        cuCtxEnablePeerAccess(NULL, 0) != CUDA_ERROR_INVALID_CONTEXT ||
        cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING))
        return 1;
    CUcontext other = NULL;
    if (cuDevicePrimaryCtxRetain(&other, 0) || cuCtxEnablePeerAccess(other, 0))
        return 2;
    while (request.verb != PEER_END && take(&request, &fd)) {
        struct peer_answer said = {0};
        said.result = answer(&request, fd, &said);
        if (send(SOCKET, &said, sizeof said, MSG_NOSIGNAL) != (ssize_t)sizeof said)
            return 3;
    }
    return cuDevicePrimaryCtxRelease(1) || cuDevicePrimaryCtxRelease(0) ? 4 : 0;
}
