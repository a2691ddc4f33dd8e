/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.c - librondo-heap.so: malloc() for programs that were not written for zero copy.
 *
 *     LD_PRELOAD=librondo-heap.so program
 *
 * Allocations of LARGE bytes and more come from rondo_mem_alloc(), whose memory peers map; all
 * others, and those for which the heap has no room, come from glibc. Blocks of the heap begin on a
 * page and are in a table (blocks.h), so free() looks up page-aligned addresses only.
 *
 * librondo.so itself always gets glibc's memory: it may allocate while it holds the lock of the
 * heap. So does everybody before our constructor has run, and what a thread runs while it forks.
 *
 * fork(): memory of the heap is shared, and a program that knows nothing of Rondo expects a child
 * to have its own. The child copies all blocks to private pages at the same addresses, and the
 * parent waits for that; what other threads of the parent write meanwhile may be in the copy or
 * not. A block for which the child has no memory is inaccessible there. vfork() and posix_spawn()
 * copy nothing. A child of a bare clone() shares all blocks with its parent, as no handler runs.
 */
#include "compat/heap/blocks.h"

#include "base/caller/descriptor.h"
#include "rondo/rondo.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, LARGE = 64 * 1024 };

/* glibc's own, which need no lookup, also before anything is initialized. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);
/* All that pthread_atfork() does is to call this. */
extern int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                             void *library);

/* True when the constructor has run. Release, with is_for_heap(): who sees it knows the code. */
static atomic_bool ready;
/* librondo.so's code is here; both are written before `ready`. */
static uintptr_t code_begin, code_end;
/* This thread is in rondo_mem_alloc() or rondo_mem_free(), or forks, while other threads may have
 * locks of librondo.so that the child never gets. */
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

static bool is_for_heap(size_t bytes, const void *caller)
{
    uintptr_t from = (uintptr_t)caller;

    return bytes >= LARGE && bytes <= PTRDIFF_MAX && !inside &&
           atomic_load_explicit(&ready, memory_order_acquire) &&
           !(from >= code_begin && from < code_end);
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* The last errors of this thread, which malloc() and free() leave as they are. */
struct errors {
    int number;
    bool inside;
    char sentence[1024]; /* rondo_last_error(NULL): none is longer */
};

/* From here until leave_rondo() this thread calls librondo.so. */
static void enter_rondo(struct errors *ret_errors)
{
    ret_errors->number = errno;
    ret_errors->inside = inside;
    inside = true;
    snprintf(ret_errors->sentence, sizeof(ret_errors->sentence), "%s", rondo_last_error(NULL));
}

static void leave_rondo(const struct errors *errors)
{
    /* The sentence lies in memory of this thread that has room for any. */
    char *last = (char *)(uintptr_t)rondo_last_error(NULL);

    strcpy(last, errors->sentence);
    inside = errors->inside;
    errno = errors->number;
}

/* NULL: the heap has none. The block has all of its last page: a program that was told so by
 * malloc_usable_size() may use it, and realloc() leaves it where it is. */
static void *heap_take(size_t bytes)
{
    struct errors errors;
    void *memory = NULL;

    enter_rondo(&errors);
    if (rondo_mem_alloc(bytes, &memory))
        memory = NULL;
    if (memory && !blocks_add(memory, whole_pages(bytes))) {
        rondo_mem_free(memory);
        memory = NULL;
    }
    leave_rondo(&errors);
    return memory;
}

/* Bytes of a block of the heap; 0: it is none. */
static size_t heap_bytes(const void *memory)
{
    return memory && (uintptr_t)memory % PAGE == 0 ? blocks_find(memory).bytes : 0;
}

static bool heap_give(void *memory)
{
    struct block block = {0};
    struct errors errors;

    if (!memory || (uintptr_t)memory % PAGE != 0 || !blocks_remove(memory, &block))
        return false;
    enter_rondo(&errors);
    if (block.is_private)
        munmap(memory, block.bytes);
    else
        rondo_mem_free(memory);
    leave_rondo(&errors);
    return true;
}

/* ---- What programs call ---------------------------------------------------------------------- */

#define CALLER __builtin_return_address(0)

RONDO_API void *malloc(size_t bytes)
{
    void *memory = is_for_heap(bytes, CALLER) ? heap_take(bytes) : NULL;

    return memory ? memory : __libc_malloc(bytes);
}

RONDO_API void *calloc(size_t count, size_t bytes)
{
    size_t all;
    void *memory = NULL;

    if (!__builtin_mul_overflow(count, bytes, &all) && is_for_heap(all, CALLER))
        memory = heap_take(all); /* zeroed, as it comes */
    return memory ? memory : __libc_calloc(count, bytes);
}

RONDO_API void free(void *memory)
{
    if (!heap_give(memory))
        __libc_free(memory);
}

/* Moves what fits into a block of another kind, which is then the only one. */
static void *move(void *from, size_t old, void *to, size_t bytes)
{
    if (to) {
        memcpy(to, from, old < bytes ? old : bytes);
        free(from);
    }
    return to;
}

static void *resize(void *memory, size_t bytes, const void *caller)
{
    size_t old = heap_bytes(memory);
    bool large = is_for_heap(bytes, caller);
    void *other;

    if (!old && (!memory || !large)) {
        other = large ? heap_take(bytes) : NULL;
        return other ? other : __libc_realloc(memory, bytes);
    }
    if (old && !bytes) {
        free(memory);
        return NULL;
    }
    /* Within its pages a block may grow, and it may shrink to a half. */
    if (old && bytes <= old && bytes >= old / 2 && bytes >= LARGE)
        return memory;
    other = large ? heap_take(bytes) : NULL;
    if (!old)
        return other ? move(memory, malloc_usable_size(memory), other, bytes)
                     : __libc_realloc(memory, bytes);
    return move(memory, old, other ? other : __libc_malloc(bytes), bytes);
}

RONDO_API void *realloc(void *memory, size_t bytes)
{
    return resize(memory, bytes, CALLER);
}

RONDO_API void *reallocarray(void *memory, size_t count, size_t bytes)
{
    size_t all;

    if (__builtin_mul_overflow(count, bytes, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    return resize(memory, all, CALLER);
}

static void *align(size_t alignment, size_t bytes, const void *caller)
{
    void *memory = alignment <= PAGE && is_for_heap(bytes, caller) ? heap_take(bytes) : NULL;

    return memory ? memory : __libc_memalign(alignment, bytes);
}

RONDO_API void *memalign(size_t alignment, size_t bytes)
{
    return align(alignment, bytes, CALLER);
}

RONDO_API void *aligned_alloc(size_t alignment, size_t bytes)
{
    return align(alignment, bytes, CALLER);
}

RONDO_API void *valloc(size_t bytes)
{
    return align(PAGE, bytes, CALLER);
}

RONDO_API int posix_memalign(void **ret_memory, size_t alignment, size_t bytes)
{
    int number = errno;
    void *memory;

    if (alignment % sizeof(void *) || !alignment || (alignment & (alignment - 1)))
        return EINVAL;
    memory = align(alignment, bytes, CALLER);
    errno = number;
    if (!memory)
        return ENOMEM;
    *ret_memory = memory;
    return 0;
}

/* Reads the size in front of a block of glibc, as malloc_usable_size() of glibc does. */
static size_t usable_of_libc(void *memory)
{
    size_t head;

    memcpy(&head, (char *)memory - sizeof(head), sizeof(head));
    /* Bit 1: the block was mapped by itself, and its head is not shared with the next one. */
    return (head & ~(size_t)7) - (head & 2 ? 2 * sizeof(head) : sizeof(head));
}

RONDO_API size_t malloc_usable_size(void *memory)
{
    size_t bytes = heap_bytes(memory);

    if (!memory)
        return 0;
    return bytes ? bytes : usable_of_libc(memory);
}

/* ---- fork() ---------------------------------------------------------------------------------- */

static int copied[2] = {-1, -1}; /* a pipe that ends when the child has its own memory */

static void before_fork(void)
{
    blocks_lock();
    if (!blocks_any() || descriptor_pipe(copied))
        copied[0] = copied[1] = -1;
}

static void after_fork_in_parent(void)
{
    char nothing;

    if (copied[0] >= 0) {
        close(copied[1]);
        while (read(copied[0], &nothing, 1) < 0 && errno == EINTR)
            continue;
        close(copied[0]);
    }
    blocks_unlock();
}

static size_t lacking; /* bytes of blocks for which this child had no memory */

/*
 * The block's pages become this process's own, one piece after another, which takes no address
 * space beside the block. Where there is no memory for a piece, the rest is made inaccessible: else
 * this process would write into the memory of its parent.
 */
static void make_private(char *memory, size_t bytes)
{
    static char piece[LARGE];

    for (size_t done = 0, length; done < bytes; done += length) {
        length = bytes - done < sizeof(piece) ? bytes - done : sizeof(piece);
        memcpy(piece, memory + done, length);
        if (mmap(memory + done, length, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
            mmap(memory + done, bytes - done, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
            lacking += bytes - done;
            return;
        }
        memcpy(memory + done, piece, length);
    }
}

static void say_lacking(void)
{
    char line[384];
    int length = snprintf(line, sizeof(line),
                          "rondo warning: process %d was forked and has no memory for its own copy "
                          "of %zu bytes that librondo-heap.so gave to its parent; it ends where it "
                          "touches them. Fork before such memory is allocated, or raise the limit "
                          "(ulimit -v, -d; vm.overcommit_memory).\n",
                          (int)getpid(), lacking);

    if (write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* nobody can be told */
}

static void after_fork_in_child(void)
{
    lacking = 0;
    blocks_each(make_private);
    if (lacking)
        say_lacking();
    if (copied[0] >= 0) {
        close(copied[0]);
        close(copied[1]);
    }
    blocks_unlock();
}

/* From here on until the locks of librondo.so are free, handlers of this program get glibc's. */
static void begin_fork(void)
{
    inside = true;
}

static void end_fork(void)
{
    inside = false;
}

static __typeof__(__register_atfork) *register_next; /* glibc's */
static bool children_copy;                           /* our handlers are registered */

static void register_first(void)
{
    *(void **)&register_next = dlsym(RTLD_NEXT, "__register_atfork");
    children_copy = register_next &&
                    !register_next(before_fork, after_fork_in_parent, after_fork_in_child, NULL);
}

/*
 * Stands before glibc's function. Handlers in a child run in the order in which they were
 * registered, so ours go before the first of anybody else: whatever they write in the child is the
 * child's. Before the fork ours are the last, so none of theirs finds the table locked.
 */
RONDO_API int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                                void *library)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, register_first);
    return register_next ? register_next(prepare, parent, child, library) : ENOSYS;
}

/* ---- Beginning ------------------------------------------------------------------------------- */

static int find_code(struct dl_phdr_info *info, size_t size, void *unused)
{
    uintptr_t inside_of = (uintptr_t)&rondo_mem_alloc;

    for (int i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        uintptr_t end = begin + info->dlpi_phdr[i].p_memsz;

        if (info->dlpi_phdr[i].p_type == PT_LOAD && inside_of >= begin && inside_of < end) {
            code_begin = begin;
            code_end = end;
            return 1;
        }
    }
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    /* Without these children would share memory with us: then there is no heap. */
    if (pthread_atfork(begin_fork, end_fork, end_fork) || !children_copy)
        return;
    if (dl_iterate_phdr(find_code, NULL) == 1)
        atomic_store_explicit(&ready, true, memory_order_release); /* with is_for_heap() */
}
