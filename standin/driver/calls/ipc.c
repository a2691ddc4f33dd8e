/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ipc.c - memory and events between processes: a handle names a process and a descriptor there,
 * /proc opens it.
 *
 * The importer's mapping is its own: the exporter may free the memory or end, the importer's pages
 * stay what they are.
 */
#include "standin/driver/calls/ipc.h"

#include "standin/driver/base/call.h"
#include "standin/driver/capture.h"
#include "standin/driver/context.h"
#include "standin/driver/event.h"
#include "standin/driver/memory.h"
#include "standin/driver/queue.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert(sizeof(struct ipc_handle) <= CU_IPC_HANDLE_SIZE, "a handle has 64 bytes");

static const char magic[8] = "standin";

void ipc_export(void *handle, const struct ipc_handle *what)
{
    struct ipc_handle full = *what;
    memcpy(full.magic, magic, sizeof magic);
    full.process = getpid();
    memset(handle, 0, CU_IPC_HANDLE_SIZE);
    memcpy(handle, &full, sizeof full);
}

bool ipc_read(const void *handle, int kind, struct ipc_handle *ret_what)
{
    memcpy(ret_what, handle, sizeof *ret_what);
    return memcmp(ret_what->magic, magic, sizeof magic) == 0 && ret_what->kind == kind;
}

int ipc_open(const struct ipc_handle *what)
{
    char path[64], name[64], target[128] = "";
    snprintf(path, sizeof path, "/proc/%d/fd/%d", what->process, what->fd);
    snprintf(name, sizeof name, "/memfd:cuda_standin-%d-%llu ", what->device,
             (unsigned long long)what->id);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    char own[64];
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    if (fd >= 0 && readlink(own, target, sizeof target - 1) > 0 &&
        strncmp(target, name, strlen(name)) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    const struct memory *memory = memory_holding(address, 1);
    if (!memory || memory->kind != MEMORY_DEVICE)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        ipc_export(handle, &(struct ipc_handle){.fd = memory->fd,
                                                .device = memory->device,
                                                .kind = IPC_MEMORY,
                                                .id = memory->id,
                                                .size = memory->size});
    call_unlock();
    return result;
}

/* Maps the file of the handle as memory of the context's device; NULL when that fails. */
static struct memory *import(CUcontext context, const struct ipc_handle *what)
{
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    memory->kind = MEMORY_IMPORTED;
    memory->size = what->size;
    memory->context = context;
    memory->device = what->device;
    memory->opens = 1;
    memory->fd = ipc_open(what);
    memory->base = memory->fd < 0 ? NULL : memory_map_file(memory->fd, memory_pages(what->size));
    if (memory->base) {
        memory->length = memory_pages(what->size);
        memory_add(memory);
        return memory;
    }
    if (memory->fd >= 0)
        close(memory->fd);
    free(memory);
    return NULL;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *address, CUipcMemHandle handle, unsigned flags)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    struct ipc_handle what;
    if (!address || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ||
        !ipc_read(&handle, IPC_MEMORY, &what))
        return CUDA_ERROR_INVALID_VALUE;
    if (what.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    call_lock_memory(context->device);
    call_lock();
    result = capture_forbid();
    struct memory *memory = result ? NULL : memory_imported(context, &handle);
    if (memory) {
        memory->opens++;
    } else if (!result) {
        memory = import(context, &what);
        if (memory)
            memory->handle = handle;
        else
            result = CUDA_ERROR_INVALID_VALUE;
    }
    if (memory)
        *address = memory_address(memory);
    call_unlock();
    call_unlock_memory(context->device);
    return result;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr address)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    call_lock_memory(context->device);
    call_lock();
    struct memory *memory = memory_holding(address, 1);
    if (!memory || memory->kind != MEMORY_IMPORTED || memory_address(memory) != address)
        result = CUDA_ERROR_INVALID_VALUE;
    else
        result = capture_forbid();
    if (!result && --memory->opens == 0) {
        queue_drain_context(memory->context);
        memory_remove(memory);
    }
    call_unlock();
    call_unlock_memory(context->device);
    return result;
}

bool event_share(CUevent event)
{
    event->fd = memory_file(event->context->device, event->id, sizeof *event->page);
    void *page = event->fd < 0 ? MAP_FAILED
                               : mmap(NULL, sizeof *event->page, PROT_READ | PROT_WRITE, MAP_SHARED,
                                      event->fd, 0);
    event->page = page == MAP_FAILED ? NULL : page;
    return event->page;
}

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event_handle)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    CUevent event = event_find(event_handle);
    if (!event || !event->page || event->imported)
        result = CUDA_ERROR_INVALID_HANDLE;
    else
        ipc_export(handle, &(struct ipc_handle){.fd = event->fd,
                                                .device = event->context->device,
                                                .kind = IPC_EVENT,
                                                .id = event->id,
                                                .size = sizeof *event->page});
    call_unlock();
    return result;
}

CUresult cuIpcOpenEventHandle(CUevent *ret_event, CUipcEventHandle handle)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    struct ipc_handle what;
    if (!ret_event || !ipc_read(&handle, IPC_EVENT, &what) ||
        what.size != sizeof(struct event_page))
        return CUDA_ERROR_INVALID_VALUE;
    if (what.process == getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    int fd = ipc_open(&what);
    if (fd < 0)
        return CUDA_ERROR_INVALID_VALUE;
    void *page = mmap(NULL, sizeof(struct event_page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    call_lock();
    CUevent event = page == MAP_FAILED ? NULL : event_open(context, CU_EVENT_DISABLE_TIMING);
    if (event) {
        event->page = page;
        event->fd = fd;
        event->imported = true;
    }
    call_unlock();
    if (!event) {
        close(fd);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *ret_event = event;
    return CUDA_SUCCESS;
}
