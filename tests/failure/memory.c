/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory.c - buffers of every kind, their poison, and what a rank does with them after its call.
 *
 * Poison is a number per word that depends on its place, the arena and the rank, so that a copy of
 * poison to another place shows, too.
 */
#include "device.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

static size_t round_up(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

static bool is_on_device(enum soak_memory kind)
{
    return kind >= HOST_MEMORIES;
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

    if (is_on_device(arena->kind)) {
        arena->base = soak_device_alloc(arena->kind, arena->bytes);
        return arena->base ? RONDO_OK : RONDO_ERROR_MEMORY;
    }
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
        return rondo_comm_register(comm, arena->base + arena->begin, arena->end - arena->begin,
                                   &arena->registration);
    default:
        return map(arena, wish);
    }
}

static rondo_result add(struct memory *memory, const struct arena *like, rondo_comm *comm)
{
    struct arena *arena = &memory->arenas[memory->count];
    rondo_result result;

    *arena = (struct arena){
        .kind = like->kind, .bytes = like->bytes, .begin = like->begin, .end = like->end};
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
    if (is_on_device(arena->kind))
        soak_device_free(arena->kind, arena->base);
    else if (arena->kind == MEMORY_MALLOC)
        free(arena->base);
    else if (arena->kind == MEMORY_HEAP)
        rondo_mem_free(arena->base);
    else
        munmap(arena->base, arena->bytes);
}

/* ---- Buffers --------------------------------------------------------------------------------- */

static rondo_result open_one(struct memory *memory, enum soak_memory kind, size_t begin,
                             size_t bytes, rondo_comm *comm)
{
    size_t end = begin + bytes + 1;
    const struct arena like = {.kind = kind, .bytes = round_up(end), .begin = begin, .end = end};

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
    const struct part *part = &scene->parts[rank];
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
    result = open_one(m, part->input, part->input_offset,
                      in_place   ? in > out ? in : out
                      : together ? in + out
                                 : in,
                      comm);
    if (!result && !together)
        result = open_one(m, part->output, part->output_offset, out, comm);
    if (result)
        return result;
    m->input = m->output = m->arenas[0].base + part->input_offset;
    if (in_place)
        overlay(m, rank, element);
    else
        m->output = together ? m->input + in : m->arenas[1].base + part->output_offset;
    m->input_view = m->input = in ? m->input : NULL;
    m->output_view = m->output = out ? m->output : NULL;
    m->element = element;
    m->input_is_far = in && is_on_device(m->arenas[0].kind);
    m->output_is_far = out && is_on_device(m->arenas[together ? 0 : 1].kind);
    if (m->input_is_far)
        m->input_view = malloc(in);
    if (m->output_is_far)
        m->output_view = malloc(out);
    return RONDO_OK;
}

void memory_push(struct memory *memory)
{
    if (memory->input_is_far)
        soak_device_copy(memory->input, memory->input_view, memory->input_count * memory->element);
}

void memory_pull(struct memory *memory)
{
    if (memory->input_is_far)
        soak_device_copy(memory->input_view, memory->input, memory->input_count * memory->element);
    if (memory->output_is_far)
        soak_device_copy(memory->output_view, memory->output,
                         memory->output_count * memory->element);
}

rondo_result memory_reuse(struct memory *memory, const struct part *part, rondo_comm *comm)
{
    static const enum soak_memory others[] = {MEMORY_HEAP, MEMORY_MALLOC};
    struct arena old[MEMORY_ARENAS];
    int count = memory->count;
    rondo_result result = RONDO_OK;

    for (int i = 0; i < count && !result; i++)
        if (part->renews || part->deregisters)
            result = deregister(&memory->arenas[i], comm);
    if (result || !part->renews)
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
    if (memory->input_is_far)
        free(memory->input_view);
    if (memory->output_is_far)
        free(memory->output_view);
}

/* ---- Poison ---------------------------------------------------------------------------------- */

static uint64_t poison_at(uint64_t salt, size_t word)
{
    return salt ^ word * 0x9e3779b97f4a7c15u;
}

/* The words of an arena to look at or to write: its own, or room for a copy. NULL: no memory. */
static uint64_t *words_of(const struct arena *arena)
{
    return is_on_device(arena->kind) ? malloc(arena->bytes) : (void *)arena->base;
}

void memory_poison(struct memory *memory)
{
    for (int i = 0; i < memory->count; i++) {
        const struct arena *arena = &memory->arenas[i];
        uint64_t *words = words_of(arena);
        uint64_t salt = world_hash(memory->salt, (uint64_t)i);

        for (size_t w = 0; words && w < arena->bytes / sizeof(*words); w++)
            words[w] = poison_at(salt, w);
        if (is_on_device(arena->kind)) {
            soak_device_copy(arena->base, words, arena->bytes);
            free(words);
        }
    }
}

static size_t count_changed(const uint64_t *words, size_t total, uint64_t salt, size_t *ret_first)
{
    size_t changed = 0;

    for (size_t w = 0; w < total; w++)
        if (words[w] != poison_at(salt, w) && !changed++)
            *ret_first = w;
    return changed;
}

size_t memory_changed(const struct memory *memory, char *text, size_t size)
{
    size_t all = 0, used = 0;

    for (int i = 0; i < memory->count; i++) {
        const struct arena *arena = &memory->arenas[i];
        uint64_t *words = words_of(arena);
        size_t total = arena->bytes / sizeof(*words), first = 0, changed = total;

        if (words &&
            (!is_on_device(arena->kind) || soak_device_copy(words, arena->base, arena->bytes)))
            changed = count_changed(words, total, world_hash(memory->salt, (uint64_t)i), &first);
        if (is_on_device(arena->kind))
            free(words);
        all += changed;
        if (changed && used < size)
            used += (size_t)snprintf(text + used, size - used,
                                     "%zu of %zu words of %s memory from byte %zu on; ", changed,
                                     total, soak_memories[arena->kind], first * sizeof(*words));
    }
    return all;
}
