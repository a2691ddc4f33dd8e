/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * link.c - signal and wait: messages in bounded slots, and what they order.
 *
 * Message number s lives in slot s % slots. To open it the sender waits until the message `slots`
 * before it was given back. What it signals orders its past before the receiver's wait. A free slot
 * orders nothing: with more slots it would have come earlier, and plans must be right with any
 * number of slots from the given one on. But who waits for all messages to be given back knows what
 * the receiver did before that.
 */
#include "plan/verify/machine.h"

#include "base/collective.h"

#include <string.h>

static const struct plan_step *step_of(const struct verify_machine *machine,
                                       const struct verify_actor *actor)
{
    return &machine->members[actor->member].plan->steps[actor->step];
}

static struct verify_link *link_of(const struct verify_machine *machine,
                                   const struct verify_actor *actor)
{
    return &machine->links[machine->members[actor->member].step_links[actor->step]];
}

static uint32_t *own_clock(const struct verify_machine *machine, const struct verify_actor *actor)
{
    return verify_clock(machine, (int)(actor - machine->actors));
}

/* Names the sender of the message at the head of the link, for sentences. */
static const char *sender_of(const struct verify_machine *machine, const struct verify_link *link,
                             char *text, size_t size)
{
    const struct verify_slot *slot = &link->slot[link->received % (uint32_t)machine->slots];

    verify_place(machine, &machine->actors[link->sender], slot->step, text, size);
    return text;
}

static enum verify_state failed(bool result)
{
    return result ? VERIFY_MOVED : VERIFY_FAILED;
}

/* Wait for all messages to be given back. */
static enum verify_state settle(struct verify_machine *machine, struct verify_actor *actor,
                                const struct verify_link *link)
{
    const struct verify_slot *last = &link->slot[(link->sent - 1) % (uint32_t)machine->slots];

    if (link->sent != link->received)
        return VERIFY_BLOCKED;
    if (!link->sent)
        return VERIFY_MOVED;
    verify_join(machine, own_clock(machine, actor), last->freed_clock);
    if (last->freed_level + 1 > actor->level)
        actor->level = last->freed_level + 1;
    return VERIFY_MOVED;
}

static enum verify_state wait_credit(struct verify_machine *machine, struct verify_actor *actor)
{
    struct verify_link *link = link_of(machine, actor);
    struct verify_slot *slot = &link->slot[link->sent % (uint32_t)machine->slots];

    if (link->writing)
        return failed(verify_fail(machine, actor, "the slot it opened before was not signalled"));
    if (step_of(machine, actor)->flags & PLAN_SETTLED)
        return settle(machine, actor, link);
    if (link->sent - link->received >= (uint32_t)machine->slots)
        return VERIFY_BLOCKED;
    if (slot->freed_level > actor->level)
        actor->level = slot->freed_level;
    link->writing = true;
    slot->length = 0;
    actor->open++;
    return VERIFY_MOVED;
}

static enum verify_state wait_data(struct verify_machine *machine, struct verify_actor *actor)
{
    const struct plan_step *step = step_of(machine, actor);
    struct verify_link *link = link_of(machine, actor);
    struct verify_slot *slot = &link->slot[link->received % (uint32_t)machine->slots];
    size_t number = (size_t)(actor - machine->actors);
    bool pair = collective_is_pair(machine->members[actor->member].plan->collective);
    char sender[256];

    if (link->reading)
        return failed(verify_fail(machine, actor, "the message before was not given back"));
    if (link->sent == link->received)
        return VERIFY_BLOCKED;
    if (slot->lap != verify_lap(machine, actor))
        return failed(
            verify_fail(machine, actor,
                        slot->lap < verify_lap(machine, actor)
                            ? "the message that comes is left over from an earlier segment "
                              "or call, in which no step took it; it was sent by %s"
                            : "no message was sent for it: what comes is of a later segment "
                              "or call, sent by %s",
                        sender_of(machine, link, sender, sizeof(sender))));
    if ((slot->flags ^ step->flags) & PLAN_ADDRESSES)
        return failed(verify_fail(machine, actor,
                                  "the message %s where the sender's buffers are, "
                                  "this wait expects the contrary; it was sent by %s",
                                  slot->flags & PLAN_ADDRESSES ? "says" : "does not say",
                                  sender_of(machine, link, sender, sizeof(sender))));
    verify_note(machine, actor);
    verify_join(machine, own_clock(machine, actor), slot->sent_clock);
    if (slot->level > actor->level)
        actor->level = slot->level;
    if (step->flags & PLAN_ADDRESSES) {
        uint8_t *met = &machine->introduced[number * (size_t)machine->ranks + (size_t)link->from];

        actor->met += *met != (uint8_t)slot->lap && (pair || link->from != link->to);
        *met = (uint8_t)slot->lap;
    }
    link->reading = true;
    link->taken = 0;
    actor->open++;
    return VERIFY_MOVED;
}

enum verify_state verify_wait(struct verify_machine *machine, struct verify_actor *actor)
{
    return step_of(machine, actor)->event == PLAN_DATA ? wait_data(machine, actor)
                                                       : wait_credit(machine, actor);
}

static bool publish(struct verify_machine *machine, struct verify_actor *actor)
{
    const struct plan_step *step = step_of(machine, actor);
    struct verify_link *link = link_of(machine, actor);
    struct verify_slot *slot = &link->slot[link->sent % (uint32_t)machine->slots];

    if (!link->writing)
        return verify_fail(machine, actor, "it has not waited for a free slot");
    if ((step->flags & PLAN_ADDRESSES) && slot->length)
        return verify_fail(machine, actor, "a message with addresses cannot carry data as well");
    memcpy(slot->sent_clock, own_clock(machine, actor),
           (size_t)machine->actor_count * sizeof(*slot->sent_clock));
    slot->lap = verify_lap(machine, actor);
    slot->step = actor->step;
    slot->flags = step->flags;
    slot->level = actor->level > link->level ? actor->level : link->level;
    slot->level += link->from != link->to; /* a rank's programs hand over at once */
    link->level = slot->level;
    link->writing = false;
    link->sent++;
    actor->open--;
    machine->report->messages++;
    if (link->receiver != VERIFY_NOBODY)
        verify_wake(machine, link->receiver);
    return true;
}

static bool give_back(struct verify_machine *machine, struct verify_actor *actor)
{
    struct verify_link *link = link_of(machine, actor);
    struct verify_slot *slot = &link->slot[link->received % (uint32_t)machine->slots];

    if (!link->reading)
        return verify_fail(machine, actor, "it has not waited for a message");
    if (link->taken != slot->length)
        return verify_fail(machine, actor, "it took %u of the message's %u atoms", link->taken,
                           slot->length);
    if ((slot->flags ^ step_of(machine, actor)->flags) & PLAN_ADDRESSES)
        return verify_fail(machine, actor,
                           "a message with addresses is given back with "
                           "PLAN_ADDRESSES, others are not");
    slot->freed_level = actor->level;
    memcpy(slot->freed_clock, own_clock(machine, actor),
           (size_t)machine->actor_count * sizeof(*slot->freed_clock));
    link->reading = false;
    link->received++;
    actor->open--;
    verify_wake(machine, link->sender);
    return true;
}

bool verify_signal(struct verify_machine *machine, struct verify_actor *actor)
{
    return step_of(machine, actor)->event == PLAN_DATA ? publish(machine, actor)
                                                       : give_back(machine, actor);
}

struct verify_parcel *verify_take(struct verify_machine *machine, struct verify_actor *actor,
                                  int number, uint32_t atoms)
{
    struct verify_link *link = &machine->links[number];
    struct verify_slot *slot = &link->slot[link->received % (uint32_t)machine->slots];
    struct verify_parcel *taken = slot->parcels + link->taken;
    char sender[256];

    if (!link->reading) {
        verify_fail(machine, actor, "it reads a message from rank %d that it did not wait for",
                    link->from);
        return NULL;
    }
    if (atoms > slot->length - link->taken) {
        verify_fail(machine, actor, "it takes %u atoms of a message that has %u left, sent by %s",
                    atoms, slot->length - link->taken,
                    sender_of(machine, link, sender, sizeof(sender)));
        return NULL;
    }
    for (uint32_t i = 1; i < atoms; i++)
        if (taken[i].begins || !taken[0].begins) {
            verify_fail(machine, actor, "it takes atoms that were not one piece, sent by %s",
                        sender_of(machine, link, sender, sizeof(sender)));
            return NULL;
        }
    link->taken += atoms;
    if (link->taken < slot->length && !taken[atoms].begins) {
        verify_fail(machine, actor,
                    "it takes only the first %u atoms of a longer piece, sent by "
                    "%s",
                    atoms, sender_of(machine, link, sender, sizeof(sender)));
        return NULL;
    }
    return taken;
}

struct verify_parcel *verify_append(struct verify_machine *machine, struct verify_actor *actor,
                                    int number, uint32_t atoms)
{
    struct verify_link *link = &machine->links[number];
    struct verify_slot *slot = &link->slot[link->sent % (uint32_t)machine->slots];
    uint32_t limit = machine->members[actor->member].plan->message_atoms;

    if (!link->writing) {
        verify_fail(machine, actor, "it writes into a slot to rank %d that it did not wait for",
                    link->to);
        return NULL;
    }
    if (atoms > limit - slot->length) {
        verify_fail(machine, actor, "the message grows to %u atoms, the plan says at most %u",
                    slot->length + atoms, limit);
        return NULL;
    }
    slot->length += atoms;
    return slot->parcels + slot->length - atoms;
}
