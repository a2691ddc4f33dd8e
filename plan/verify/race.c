/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * race.c - what happens before what, by vector clocks.
 *
 * clock[a][b] is how far actor b had come in all that actor a knows of. A signal hands the sender's
 * clock on, a wait joins it. An access is an epoch: an actor and its own clock at that time; it
 * comes before what a does now if clock[a][actor] has reached it. A cell keeps the epochs of its
 * last write and of all reads since: often one. An actor's clock counts its steps, with one tick
 * for the user before each call, so an epoch also names the step.
 */
#include "plan/verify/machine.h"

#include <stdio.h>
#include <stdlib.h>

static uint64_t epoch_of(int actor, uint32_t clock)
{
    return (uint64_t)(uint32_t)actor << 32 | clock;
}

static int epoch_actor(uint64_t epoch)
{
    return (int)(epoch >> 32);
}

static bool is_before(uint64_t epoch, const uint32_t *clock)
{
    return (uint32_t)epoch <= clock[epoch >> 32];
}

void verify_join(const struct verify_machine *machine, uint32_t *into, const uint32_t *from)
{
    for (int i = 0; i < machine->actor_count; i++)
        into[i] = into[i] > from[i] ? into[i] : from[i];
}

static uint32_t add_reader(struct verify_machine *machine, uint64_t epoch, uint32_t next)
{
    uint32_t at = machine->reader_free;

    if (at) {
        machine->reader_free = machine->readers[at].next;
    } else {
        if (machine->reader_count + 1 >= machine->reader_room) {
            uint32_t room = machine->reader_room ? 2 * machine->reader_room : 256;
            struct verify_reader *moved = realloc(machine->readers, room * sizeof(*moved));

            if (!moved) {
                machine->out_of_memory = true;
                return next;
            }
            machine->readers = moved;
            machine->reader_room = room;
        }
        at = ++machine->reader_count; /* number 0 means none */
    }
    machine->readers[at] = (struct verify_reader){epoch, next};
    return at;
}

uint64_t verify_reads(struct verify_machine *machine, int actor, struct verify_cell *cell)
{
    const uint32_t *clock = verify_clock(machine, actor);
    uint64_t now = epoch_of(actor, clock[actor]);

    if (cell->write && !is_before(cell->write, clock))
        return cell->write;
    if (!cell->read || is_before(cell->read, clock)) {
        cell->read = now; /* what was before this read is before every write that is after it */
        return 0;
    }
    for (uint32_t at = cell->readers; at; at = machine->readers[at].next)
        if (is_before(machine->readers[at].epoch, clock)) {
            machine->readers[at].epoch = now;
            return 0;
        }
    cell->readers = add_reader(machine, now, cell->readers);
    return 0;
}

uint64_t verify_writes(struct verify_machine *machine, int actor, struct verify_cell *cell)
{
    const uint32_t *clock = verify_clock(machine, actor);

    if (cell->write && !is_before(cell->write, clock))
        return cell->write;
    if (cell->read && !is_before(cell->read, clock))
        return cell->read;
    while (cell->readers) {
        struct verify_reader *reader = &machine->readers[cell->readers];
        uint32_t next = reader->next;

        if (!is_before(reader->epoch, clock))
            return reader->epoch;
        reader->next = machine->reader_free;
        machine->reader_free = cell->readers;
        cell->readers = next;
    }
    cell->read = 0;
    cell->write = epoch_of(actor, clock[actor]);
    return 0;
}

static bool is_known(uint64_t epoch, const uint32_t *const known[2])
{
    return !epoch || is_before(epoch, known[0]) || is_before(epoch, known[1]);
}

uint64_t verify_places(const struct verify_machine *machine, const struct verify_cell *cell,
                       const uint32_t *const known[2])
{
    if (!is_known(cell->write, known))
        return cell->write;
    if (!is_known(cell->read, known))
        return cell->read;
    for (uint32_t at = cell->readers; at; at = machine->readers[at].next)
        if (!is_known(machine->readers[at].epoch, known))
            return machine->readers[at].epoch;
    return 0;
}

bool verify_written_now(const struct verify_machine *machine, int actor,
                        const struct verify_cell *cell)
{
    return cell->write == epoch_of(actor, verify_clock(machine, actor)[actor]);
}

static uint32_t steps_per_call(const struct verify_machine *machine, int actor)
{
    const struct verify_actor *of = &machine->actors[actor];
    const struct plan *plan = machine->members[of->member].plan;
    const struct plan_program *program = &plan->program[of->program];

    return (program->end - program->begin) * (uint32_t)machine->segments + 1;
}

uint32_t verify_call_clock(const struct verify_machine *machine, int actor, int call)
{
    return (uint32_t)call * steps_per_call(machine, actor) + 1;
}

void verify_describe_epoch(const struct verify_machine *machine, uint64_t epoch, char *text,
                           size_t size)
{
    int number = epoch_actor(epoch);
    const struct verify_actor *actor = &machine->actors[number];
    const struct plan *plan = machine->members[actor->member].plan;
    const struct plan_program *program = &plan->program[actor->program];
    uint32_t at = ((uint32_t)epoch - 1) % steps_per_call(machine, number);

    if (at == 0)
        snprintf(text, size, "the user of rank %d, between calls", plan->rank);
    else
        verify_place(machine, actor, program->begin + (at - 1) % (program->end - program->begin),
                     text, size);
}
