/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - buffers of every kind, their poison, and what a rank does with them after its call.
 *
 * Poison is a number per word that depends on its place, the arena and the rank, so that a copy of
 * poison to another place shows, too.
 */
#include "soak.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static size_t round_up(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* ---- Arenas ---------------------------------------------------------------------------------- */

static rondo_result map(struct arena *arena, void *wish)
{
    void *base =
        mmap(wish, arena->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (base == MAP_FAILED)
        return RONDO_ERROR_MEMORY;
    arena->base = base;
    return RONDO_OK;
}

static rondo_result allocate(struct arena *arena, void *wish, rondo_comm *comm)
{
    rondo_result result;
    void *base = NULL;

    switch (arena->kind) {
    case MEMORY_MALLOC:
        arena->base = malloc(arena->bytes);
        return arena->base ? RONDO_OK : RONDO_ERROR_MEMORY;
    case MEMORY_HEAP:
        result = rondo_mem_alloc(arena->bytes, &base);
        arena->base = base;
        return result;
    case MEMORY_REGISTERED:
        result = map(arena, wish);
        if (result || !comm)
            return result;
        return rondo_comm_register(comm, arena->base, arena->bytes, &arena->registration);
    default:
        return map(arena, wish);
    }
}

static rondo_result add(struct memory *memory, const struct arena *like, rondo_comm *comm)
{
    struct arena *arena = &memory->arenas[memory->count];
    rondo_result result;

    *arena = (struct arena){.kind = like->kind, .bytes = like->bytes};
    result = allocate(arena, like->base, comm);
    if (arena->base)
        memory->count++;
    return result;
}

static rondo_result deregister(struct arena *arena, rondo_comm *comm)
{
    rondo_result result = RONDO_OK;

    if (arena->registration && comm)
        result = rondo_comm_deregister(comm, arena->registration);
    arena->registration = NULL;
    return result;
}

static void release(struct arena *arena)
{
    if (arena->kind == MEMORY_MALLOC)
        free(arena->base);
    else if (arena->kind == MEMORY_HEAP)
        rondo_mem_free(arena->base);
    else
        munmap(arena->base, arena->bytes);
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static rondo_result open_one(struct memory *memory, enum soak_memory kind, size_t bytes,
                             rondo_comm *comm)
{
    const struct arena like = {.kind = kind, .bytes = round_up(bytes + 1)};

    return add(memory, &like, comm);
}

/* In place: both in one range, of which the shorter one is the rank's block. */
static void overlay(struct memory *m, int rank, size_t element)
{
    if (m->input_count < m->output_count)
        m->input = m->output + (size_t)rank * m->input_count * element;
    else if (m->output_count < m->input_count)
        m->output = m->input + (size_t)rank * m->output_count * element;
}

rondo_result memory_open(const struct scene *scene, int rank, rondo_comm *comm,
                         struct memory *ret_memory)
{
    const struct seat *seat = &scene->seats[rank];
    struct memory *m = ret_memory;
    size_t element = rondo_type_size(scene->type), in, out;
    bool in_place, together;
    rondo_result result;

    *m = (struct memory){.salt = world_hash(scene->seed, (uint64_t)rank + 1)};
    scene_lengths(scene, rank, &m->input_count, &m->output_count);
    in = m->input_count * element;
    out = m->output_count * element;
    in_place = scene->in_place && in && out;
    together = in_place || scene->shares_page;
    result = open_one(m, seat->input,
                      seat->input_offset + (in_place   ? in > out ? in : out
                                            : together ? in + out
                                                       : in),
                      comm);
    if (!result && !together)
        result = open_one(m, seat->output, seat->output_offset + out, comm);
    if (result)
        return result;
    m->input = m->output = m->arenas[0].base + seat->input_offset;
    if (in_place)
        overlay(m, rank, element);
    else
        m->output = together ? m->input + in : m->arenas[1].base + seat->output_offset;
    if (!in)
        m->input = NULL;
    if (!out)
        m->output = NULL;
    return RONDO_OK;
}

rondo_result memory_reuse(struct memory *memory, const struct seat *seat, rondo_comm *comm)
{
    static const enum soak_memory others[] = {MEMORY_HEAP, MEMORY_MALLOC};
    struct arena old[MEMORY_ARENAS];
    int count = memory->count;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < count && !result; i++)
        if (seat->renews || seat->deregisters)
            result = deregister(&memory->arenas[i], comm);
    if (result || !seat->renews)
        return result;
    memcpy(old, memory->arenas, sizeof(old));
    memory->count = 0;
    for (int i = 0; i < count; i++)
        release(&old[i]);
    for (int i = 0; i < count && !result; i++)
        result = add(memory, &old[i], comm);
    for (int i = 0; i < 2 && !result; i++) {
        const struct arena like = {.kind = others[i], .bytes = old[0].bytes};

        result = add(memory, &like, comm);
    }
    memory->salt++; /* the poison of before is as wrong as anything */
    memory_poison(memory);
    return result;
}

void memory_forget_registrations(struct memory *memory)
{
    for (int i = 0; i < memory->count; i++)
        memory->arenas[i].registration = NULL;
}

void memory_close(struct memory *memory, rondo_comm *comm)
{
    for (int i = 0; i < memory->count; i++) {
        deregister(&memory->arenas[i], comm);
        release(&memory->arenas[i]);
    }
    memory->count = 0;
}

/* ---- Poison ---------------------------------------------------------------------------------- */

static uint64_t poison_at(uint64_t salt, size_t word)
{
    return salt ^ word * 0x9e3779b97f4a7c15u;
}

void memory_poison(struct memory *memory)
{
    for (int i = 0; i < memory->count; i++) {
        uint64_t *words = (uint64_t *)(void *)memory->arenas[i].base;
        uint64_t salt = world_hash(memory->salt, (uint64_t)i);

        for (size_t w = 0; w < memory->arenas[i].bytes / sizeof(*words); w++)
            words[w] = poison_at(salt, w);
    }
}

size_t memory_changed(const struct memory *memory, char *text, size_t size)
{
    size_t all = 0, used = 0;

    for (int i = 0; i < memory->count; i++) {
        const struct arena *arena = &memory->arenas[i];
        const uint64_t *words = (const uint64_t *)(const void *)arena->base;
        uint64_t salt = world_hash(memory->salt, (uint64_t)i);
        size_t total = arena->bytes / sizeof(*words), changed = 0, first = 0;

        for (size_t w = 0; w < total; w++)
            if (words[w] != poison_at(salt, w) && !changed++)
                first = w;
        all += changed;
        if (changed && used < size)
            used += (size_t)snprintf(text + used, size - used,
                                     "%zu of %zu words of %s memory from byte %zu on; ", changed,
                                     total, soak_memories[arena->kind], first * sizeof(*words));
    }
    return all;
}
