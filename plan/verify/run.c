/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - the greedy run: every program goes on until it has to wait; when none can, all are
 * through or it is a deadlock, which is told as a chain of who waits for whom.
 */
#include "plan/verify/machine.h"

#include <stdio.h>

static const struct plan_program *program_of(const struct verify_machine *machine,
                                             const struct verify_actor *actor)
{
    return &machine->plans[actor->member]->program[actor->program];
}

static void enqueue(struct verify_machine *machine, int number)
{
    struct verify_actor *actor = &machine->actors[number];

    if (actor->queued)
        return;
    actor->queued = true;
    machine->queue[(machine->queue_head + machine->queue_length++) % machine->actor_count] = number;
}

void verify_wake(struct verify_machine *machine, int number)
{
    if (number != VERIFY_NOBODY && machine->actors[number].blocked != VERIFY_NO_LINK)
        enqueue(machine, number);
}

static bool start_call(struct verify_machine *machine, int number)
{
    struct verify_member *member = &machine->members[number];

    if (!verify_user_start(machine, number))
        return false;
    for (int i = member->actor; i < member->actor + member->programs; i++) {
        struct verify_actor *actor = &machine->actors[i];

        if (member->call == machine->calls)
            continue;
        actor->call = member->call;
        actor->segment = 0;
        actor->done = false;
        actor->step = program_of(machine, actor)->begin;
        enqueue(machine, i);
    }
    return true;
}

static bool end_segment(struct verify_machine *machine, struct verify_actor *actor)
{
    struct verify_member *member = &machine->members[actor->member];
    const struct plan_program *program = program_of(machine, actor);

    if (actor->open) {
        actor->step = program->end - 1;
        return verify_fail(machine, actor, "the program ends with %d of its slots still open",
                           actor->open);
    }
    actor->step = program->begin;
    actor->met = 0;
    if (++actor->segment < machine->segments)
        return true;
    actor->done = true;
    if (++member->done < member->programs)
        return true;
    return verify_user_end(machine, actor->member) && start_call(machine, actor->member);
}

static enum verify_state run_step(struct verify_machine *machine, struct verify_actor *actor)
{
    const struct plan_step *step = &machine->plans[actor->member]->steps[actor->step];
    int number = (int)(actor - machine->actors);
    uint32_t *own = &verify_clock(machine, number)[number];
    enum verify_state state = VERIFY_MOVED;

    ++*own;
    if (step->verb == PLAN_WAIT)
        state = verify_wait(machine, actor);
    else if (step->verb == PLAN_SIGNAL)
        state = verify_signal(machine, actor) ? VERIFY_MOVED : VERIFY_FAILED;
    else
        state = verify_move(machine, actor) ? VERIFY_MOVED : VERIFY_FAILED;
    if (state == VERIFY_BLOCKED)
        --*own;
    if (state != VERIFY_MOVED)
        return state;
    machine->report->steps++;
    if (machine->observer)
        machine->observer->stepped(machine->observer->context, machine, actor, step);
    actor->step++;
    return VERIFY_MOVED;
}

static bool run_actor(struct verify_machine *machine, struct verify_actor *actor)
{
    const struct plan_program *program = program_of(machine, actor);

    actor->blocked = VERIFY_NO_LINK;
    while (!actor->done) {
        enum verify_state state;

        if (actor->step == program->end) {
            int call = actor->call;

            if (!end_segment(machine, actor))
                return false;
            if (actor->call != call)
                return true; /* queued anew with the others of its rank */
            continue;
        }
        state = run_step(machine, actor);
        if (state == VERIFY_FAILED)
            return false;
        if (state == VERIFY_BLOCKED) {
            actor->blocked = machine->members[actor->member].step_links[actor->step];
            return true;
        }
    }
    return true;
}

/* The program that has to move before this actor can go on; VERIFY_NOBODY: there is none. */
static int waits_for(const struct verify_machine *machine, const struct verify_actor *actor)
{
    const struct verify_link *link = &machine->links[actor->blocked];
    const struct plan_step *step = &machine->plans[actor->member]->steps[actor->step];

    return step->event == PLAN_DATA ? link->sender : link->receiver;
}

/* Follow the chain of waits from `number` for `hops` links; the program at its end. */
static int follow(const struct verify_machine *machine, int number, int hops)
{
    while (hops-- > 0 && number != VERIFY_NOBODY &&
           machine->actors[number].blocked != VERIFY_NO_LINK)
        number = waits_for(machine, &machine->actors[number]);
    return number;
}

static void tell(struct verify_machine *machine, int number, char *text, size_t size, size_t *at)
{
    const struct verify_actor *actor = &machine->actors[number];
    char place[320];

    verify_place(machine, actor, actor->step, place, sizeof(place));
    if (*at < size)
        *at += (size_t)snprintf(text + *at, size - *at, "%s; ", place);
}

/* The chain from the first program that waits: up to where it ends, or round its circle once. */
static bool tell_deadlock(struct verify_machine *machine, int start)
{
    enum { SHOWN = 6 };
    char text[900] = "";
    size_t at = 0;
    int end = follow(machine, start, machine->actor_count), number = start, shown = 0;
    bool circle = end != VERIFY_NOBODY && machine->actors[end].blocked != VERIFY_NO_LINK;
    const struct plan *plan;

    if (circle)
        number = end;
    else /* the last few before the end tell why */
        while (follow(machine, number, SHOWN) != end)
            number = waits_for(machine, &machine->actors[number]);
    while (number != VERIFY_NOBODY && machine->actors[number].blocked != VERIFY_NO_LINK &&
           shown++ < SHOWN) {
        tell(machine, number, text, sizeof(text), &at);
        number = waits_for(machine, &machine->actors[number]);
        if (circle && number == end)
            break;
    }
    if (number == VERIFY_NOBODY)
        return verify_refuse(machine, "deadlock: %snobody is at the other end", text);
    if (circle)
        return verify_refuse(machine, "deadlock: %s%s", text,
                             number == end ? "that is a circle" : "and so on in a circle");
    plan = machine->plans[machine->actors[number].member];
    if (plan->programs > 1)
        return verify_refuse(machine, "deadlock: %srank %d, program %d, has ended", text,
                             plan->rank, machine->actors[number].program);
    return verify_refuse(machine, "deadlock: %srank %d has ended", text, plan->rank);
}

static bool check_ended(struct verify_machine *machine)
{
    for (int i = 0; i < machine->actor_count; i++)
        if (machine->actors[i].blocked != VERIFY_NO_LINK)
            return tell_deadlock(machine, i);
    for (int i = 0; i < machine->link_count; i++) {
        const struct verify_link *link = &machine->links[i];

        if (link->sent != link->received)
            return verify_refuse(machine,
                                 "rank %d sent %u messages to rank %d on lane %d, which "
                                 "took %u of them",
                                 link->from, link->sent, link->to, link->channel, link->received);
    }
    return true;
}

bool verify_machine_run(struct verify_machine *machine)
{
    for (int i = 0; i < machine->size; i++)
        if (machine->plans[i] && !start_call(machine, i))
            return false;
    while (machine->queue_length) {
        struct verify_actor *actor = &machine->actors[machine->queue[machine->queue_head]];

        machine->queue_head = (machine->queue_head + 1) % machine->actor_count;
        machine->queue_length--;
        actor->queued = false;
        if (!run_actor(machine, actor))
            return false;
    }
    return check_ended(machine);
}
