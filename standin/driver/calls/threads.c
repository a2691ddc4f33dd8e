/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c - the threads of a block are coroutines: each has a stack, and gives way at barriers.
 *
 * In a round every thread that has not ended goes on until its next barrier. A thread that comes to
 * none needs its stack only while it runs, so the next one that begins gets that.
 */
#include "standin/driver/calls/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK_BYTES = 64 * 1024 };

enum state { NEW, AT_BARRIER, ENDED };

struct thread {
    ucontext_t context;
    void *stack;
    enum state state;
};

struct block {
    const struct CUfunc_st *function;
    void **parameters;
    ucontext_t round; /* who resumes the threads */
    struct thread *running;
    void *spare; /* a stack that nobody uses, or NULL */
};

static _Thread_local struct block *here;

static void begin(void)
{
    here->function->run(here->parameters);
    here->running->state = ENDED;
}

static void give_way(void)
{
    struct block *block = here;
    struct thread *thread = block->running;
    thread->state = AT_BARRIER;
    swapcontext(&thread->context, &block->round);
}

static void *new_stack(void)
{
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack != MAP_FAILED)
        return stack;
    fputs("CUDA stand-in: no stack for a thread of a kernel\n", stderr);
    abort();
}

static void make(struct block *block, struct thread *thread)
{
    thread->stack = block->spare ? block->spare : new_stack();
    block->spare = NULL;
    getcontext(&thread->context);
    thread->context.uc_stack.ss_sp = thread->stack;
    thread->context.uc_stack.ss_size = STACK_BYTES;
    thread->context.uc_link = &block->round;
    makecontext(&thread->context, begin, 0);
}

static void free_stack(void *stack)
{
    if (stack)
        munmap(stack, STACK_BYTES);
}

/* Until it gives way or ends. */
static void resume(struct block *block, struct thread *thread)
{
    if (thread->state == NEW)
        make(block, thread);
    block->running = thread;
    swapcontext(&block->round, &thread->context);
    if (thread->state != ENDED)
        return;
    free_stack(block->spare);
    block->spare = thread->stack;
    thread->stack = NULL;
}

static void run_rounds(struct block *block, struct thread *threads, struct module_place place)
{
    unsigned count = place.block[0] * place.block[1] * place.block[2];
    place.barrier = give_way;
    for (unsigned left = count; left;) {
        for (unsigned i = 0; i < count; i++) {
            if (threads[i].state == ENDED)
                continue;
            place.thread_index[0] = i % place.block[0];
            place.thread_index[1] = i / place.block[0] % place.block[1];
            place.thread_index[2] = i / place.block[0] / place.block[1];
            block->function->enter(&place);
            resume(block, &threads[i]);
            left -= threads[i].state == ENDED;
        }
    }
    free_stack(block->spare);
}

void threads_run(const struct CUfunc_st *function, const struct module_place *place,
                 void **parameters)
{
    size_t count = (size_t)place->block[0] * place->block[1] * place->block[2];
    if (count == 1) {
        function->enter(place);
        function->run(parameters);
        return;
    }
    struct thread *threads = calloc(count, sizeof *threads);
    if (!threads) {
        fputs("CUDA stand-in: no memory for the threads of a block\n", stderr);
        abort();
    }
    struct block block = {.function = function, .parameters = parameters};
    here = &block;
    run_rounds(&block, threads, *place);
    here = NULL;
    free(threads);
}
