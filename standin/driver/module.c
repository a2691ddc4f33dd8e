/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.c - loading an image: an ELF shared object in memory is written to a memfd and opened from
 * there.
 *
 * Each load has a file of its own, so that two loads of an image have their own variables, as in
 * CUDA. The length of an image is where its headers say it ends: the last section, section table or
 * segment.
 */
#include "standin/driver/module.h"

#include "standin/driver/base/call.h"
#include "standin/driver/capture.h"
#include "standin/driver/context.h"
#include "standin/driver/memory.h"
#include "standin/driver/queue.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NAME_LIMIT = 512 };

struct CUmod_st {
    struct CUmod_st *next; /* all that are loaded */
    CUcontext context;
    void *object;
    int fd; /* its file: open as long as the object, which the loader knows by the number */
    CUfunction functions;
};

static CUmodule modules;

static bool is_object(const Elf64_Ehdr *header)
{
    return memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
           header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_type == ET_DYN;
}

static size_t image_length(const char *image)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)(const void *)image;
    size_t length = header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(const void *)(image + header->e_phoff);
    for (int i = 0; i < header->e_phnum; i++) {
        size_t end = segments[i].p_offset + segments[i].p_filesz;
        length = end > length ? end : length;
    }
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(image + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        size_t size = sections[i].sh_type == SHT_NOBITS ? 0 : sections[i].sh_size;
        size_t end = sections[i].sh_offset + size;
        length = end > length ? end : length;
    }
    return length;
}

static bool write_all(int fd, const char *bytes, size_t length)
{
    for (size_t done = 0; done < length;) {
        ssize_t count = write(fd, bytes + done, length - done);
        if (count <= 0)
            return false;
        done += (size_t)count;
    }
    return true;
}

static bool open_image(CUmodule module, const char *image)
{
    module->fd = memfd_create("cuda_standin-module", MFD_CLOEXEC);
    if (module->fd < 0)
        return false;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", module->fd);
    if (write_all(module->fd, image, image_length(image)))
        module->object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (module->object)
        return true;
    const char *reason = dlerror();
    fprintf(stderr, "CUDA stand-in: module: %s\n", reason ? reason : "its file is too large");
    close(module->fd);
    return false;
}

CUresult cuModuleLoadDataEx(CUmodule *ret_module, const void *image, unsigned count,
                            CUjit_option *options, void **values)
{
    CUcontext context = NULL;
    CUresult result = context_enter("cuModuleLoadData", &context);
    if (result)
        return result;
    if (!ret_module || !image)
        return CUDA_ERROR_INVALID_VALUE;
    if (!is_object(image))
        return CUDA_ERROR_INVALID_IMAGE;
    CUmodule module = calloc(1, sizeof *module);
    if (!module)
        return CUDA_ERROR_OUT_OF_MEMORY;
    module->context = context;
    call_lock();
    result = capture_forbid();
    call_unlock();
    if (!result && !open_image(module, image))
        result = CUDA_ERROR_INVALID_IMAGE;
    if (result) {
        free(module);
        return result;
    }
    call_lock();
    module->next = modules;
    modules = module;
    call_unlock();
    *ret_module = module;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

static CUmodule find(CUmodule handle)
{
    CUmodule module = modules;
    while (module && module != handle)
        module = module->next;
    return module;
}

bool module_has(CUfunction handle)
{
    for (CUmodule module = modules; module; module = module->next) {
        for (CUfunction function = module->functions; function; function = function->next) {
            if (function == handle)
                return true;
        }
    }
    return false;
}

CUcontext module_context(CUfunction function)
{
    return function->module->context;
}

/* Work that uses it is done. Under the lock. */
static void close_module(CUmodule module)
{
    CUmodule *link = &modules;
    while (*link != module)
        link = &(*link)->next;
    *link = module->next;
    memory_forget_module(module->object);
    dlclose(module->object);
    close(module->fd);
    for (CUfunction function = module->functions, next; function; function = next) {
        next = function->next;
        free(function->name);
        free(function);
    }
    free(module);
}

void module_close_all(CUcontext context)
{
    for (CUmodule module = modules, next; module; module = next) {
        next = module->next;
        if (module->context == context)
            close_module(module);
    }
}

CUresult cuModuleUnload(CUmodule handle)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    call_lock();
    CUmodule module = find(handle);
    if (module) {
        queue_drain_context(module->context);
        module = find(handle); /* another thread may have had the lock meanwhile */
    }
    if (module)
        close_module(module);
    call_unlock();
    return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* The kernel of that name, new in the module's list; NULL when there is none. Under the lock. */
static CUfunction add_function(CUmodule module, const char *name)
{
    char sizes[NAME_LIMIT], threads[NAME_LIMIT];
    snprintf(sizes, sizeof sizes, "%s_sizes", name);
    snprintf(threads, sizeof threads, "%s_threads", name);
    CUfunction function = calloc(1, sizeof *function);
    if (!function)
        return NULL;
    void *run = dlsym(module->object, name);
    void *enter = dlsym(module->object, "cuda_standin_enter");
    function->sizes = dlsym(module->object, sizes);
    const unsigned *limit = dlsym(module->object, threads);
    function->threads = limit ? *limit : 1;
    function->name = strdup(name);
    if (!run || !enter || !function->sizes || !function->name) {
        free(function->name);
        free(function);
        return NULL;
    }
    memcpy(&function->run, &run, sizeof run); /* POSIX: a symbol may be a function */
    memcpy(&function->enter, &enter, sizeof enter);
    function->module = module;
    function->dynamic_shared = 48 * 1024;
    function->next = module->functions;
    module->functions = function;
    return function;
}

CUresult cuModuleGetFunction(CUfunction *ret_function, CUmodule handle, const char *name)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!ret_function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    CUmodule module = find(handle);
    CUfunction function = module ? module->functions : NULL;
    while (function && strcmp(function->name, name) != 0)
        function = function->next;
    if (module && !function)
        function = add_function(module, name);
    call_unlock();
    if (!function)
        return module ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_HANDLE;
    *ret_function = function;
    return CUDA_SUCCESS;
}

/* The variable becomes memory that copies know. */
static struct memory *add_variable(CUmodule module, char *base, size_t size)
{
    struct memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return NULL;
    *memory = (struct memory){.kind = MEMORY_MODULE, .base = base, .size = size, .fd = -1};
    memory->context = module->context;
    memory->device = module->context->device;
    memory->object = (uintptr_t)module->object;
    memory_add(memory);
    return memory;
}

CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *size, CUmodule handle, const char *name)
{
    CUcontext context = NULL;
    CUresult result = context_enter(__func__, &context);
    if (result)
        return result;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    call_lock();
    CUmodule module = find(handle);
    char *base = module ? dlsym(module->object, name) : NULL;
    Dl_info info;
    const Elf64_Sym *symbol = NULL;
    void *extra = NULL;
    struct memory *memory = NULL;
    if (base && dladdr1(base, &info, &extra, RTLD_DL_SYMENT) && extra) {
        symbol = extra;
        memory = memory_find(base);
        memory = memory ? memory : add_variable(module, base, symbol->st_size);
    }
    if (memory && address)
        *address = memory_address(memory);
    if (memory && size)
        *size = memory->size;
    call_unlock();
    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    return memory ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
