/* SPDX-License-Identifier: BSD-3-Clause */
/* lend.c - see lend.h. */
#include "plan/lend.h"

#include "transport/link/connection.h"

#include <string.h>

#define STEP_FUNCTION static inline
#include "plan/pieces.h"

static struct link_in *link_in_of(const struct execution *x, int lane, int peer)
{
    return &x->world->in[lane * x->world->size + peer];
}

/* The flag that the next message of a link will carry. */
static uint64_t next_flag(const struct execution *x, const struct link_in *in)
{
    return (uint64_t)x->fingerprint << 32 | (in->received + 1);
}

static bool is_own_output(const struct execution *x, const struct plan_operand *operand)
{
    return operand->buffer == PLAN_OUTPUT && operand->rank == x->plan->rank;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The copy of a message of that link, behind the wait for it; NULL: something else is done. */
static const struct plan_step *copy_behind(const struct execution *x,
                                           const struct exec_program *program,
                                           const struct plan_step *wait)
{
    const struct plan_step *end = &x->plan->steps[program->end], *step = wait + 1;
    const struct plan_operand *source;

    while (step < end && step->verb == PLAN_WAIT)
        step++;
    if (step == end || step->verb != PLAN_COPY || step->sources != 1 || !only_copies(x, step))
        return NULL;
    source = plan_sources(x->plan, step);
    return source->buffer == PLAN_SLOT && source->rank == wait->peer && source->lane == wait->lane
               ? step
               : NULL;
}

/* The bytes of my output to which a copy puts its part; false: it puts none there. */
static bool own_output(const struct execution *x, const struct exec_program *program,
                       const struct plan_step *copy, size_t *ret_at)
{
    const struct plan_operand *outputs = plan_destinations(x->plan, copy);

    for (int i = 0; i < copy->destinations; i++)
        if (is_own_output(x, &outputs[i])) {
            *ret_at = user_offset(x, program, &outputs[i]);
            return true;
        }
    return false;
}

/* The step behind a copy that begins with the next wait. */
static const struct plan_step *behind(const struct execution *x, const struct exec_program *program,
                                      const struct plan_step *copy)
{
    const struct plan_step *end = &x->plan->steps[program->end], *step = copy + 1;

    while (step < end && step->verb == PLAN_SIGNAL)
        step++;
    return step;
}

/* Does a copy from the program's place up to `copy` write to the same bytes of the output? */
static bool is_touched(const struct execution *x, const struct exec_program *program,
                       const struct plan_step *copy, size_t at, size_t bytes)
{
    const struct plan_step *other = &x->plan->steps[program->at];
    size_t begin;

    while ((other = copy_behind(x, program, other)) && other != copy) {
        size_t length = step_elements(x, program, other) * x->shape.element;

        if (own_output(x, program, other, &begin) && begin < at + bytes && at < begin + length)
            return true;
        other = behind(x, program, other);
    }
    return false;
}

static void expect_copy(struct execution *x, const struct exec_program *program,
                        const struct plan_step *copy, struct connection *connection)
{
    size_t bytes = step_elements(x, program, copy) * x->shape.element, at;

    if (bytes >= LEND_FROM && own_output(x, program, copy, &at) &&
        !is_touched(x, program, copy, at, bytes))
        connection->ops->expect(connection, connection->looked_for, x->output + at, bytes);
}

/* Peers are waited for one after the other, and their messages come in any order. So all are
 * expected that will only be copied, as far as nothing else is done in between. */
void lend_expect(struct execution *x, const struct exec_program *program)
{
    const struct plan_step *end = &x->plan->steps[program->end], *copy;
    const struct plan_step *wait = &x->plan->steps[program->at];

    for (; wait < end && wait->verb == PLAN_WAIT && wait->event == PLAN_DATA;
         wait = behind(x, program, copy)) {
        const struct link_in *in = link_in_of(x, wait->lane, wait->peer);
        bool expects = connection_expects(in->connection);

        if (expects && in->connection->looked_for == next_flag(x, in))
            return; /* and so have been those behind it */
        copy = copy_behind(x, program, wait);
        if (expects)
            in->connection->looked_for = next_flag(x, in);
        if (!copy)
            return;
        if (expects)
            expect_copy(x, program, copy, in->connection);
    }
}

const char *lend_placed(const struct execution *x, const struct plan_operand *slot, const char *at)
{
    const struct link_in *in = link_in_of(x, slot->lane, slot->rank);

    return in->connection && in->connection->placed == next_flag(x, in) ? in->connection->place
                                                                        : at;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Memory of the call that has what the step stores; NULL: there is none. */
static const char *lendable(const struct execution *x, const struct plan_step *step, bool copies)
{
    const struct plan_operand *operands = plan_destinations(x->plan, step);
    const struct plan_operand *source = plan_sources(x->plan, step);

    for (int i = 0; i < step->destinations; i++)
        if (is_own_output(x, &operands[i]))
            return x->world->destinations[i];
    if (copies && source->rank == x->plan->rank &&
        (source->buffer == PLAN_INPUT || source->buffer == PLAN_OUTPUT))
        return x->world->sources[0];
    return NULL;
}

/* Lend to one network at a time, as only one can be asked to settle. */
static bool may_lend(const struct exec_world *world, const struct link_out *link)
{
    return !world->lender || !link->connection || world->lender->ops == link->connection->ops;
}

/* Lend the link the memory at `from` in place of this piece, if the piece is the first of its
 * message; true: the link takes it from there. */
static bool lend(struct execution *x, struct link_out *link, const char *piece, size_t bytes,
                 const char *from)
{
    char *payload =
        ((struct link_slot *)(void *)(link->slots + link->index * link->stride))->payload;

    if (from && piece == payload && may_lend(x->world, link) &&
        connection_takes(link->connection, from, bytes)) {
        link->lent = from;
        x->world->lender = link->connection;
        return true;
    }
    if (link->lent) { /* and now there is a second piece */
        memcpy(payload, link->lent, (size_t)(piece - payload));
        link->lent = NULL;
    }
    return false;
}

int lend_destinations(struct execution *x, const struct plan_step *step, size_t bytes, bool copies)
{
    const struct plan_operand *operands = plan_destinations(x->plan, step);
    const char *from = bytes >= LEND_FROM ? lendable(x, step, copies) : NULL;
    struct exec_world *world = x->world;
    int left = 0;

    for (int i = 0; i < step->destinations; i++) {
        char *to = world->destinations[i];
        const struct plan_operand *operand = &operands[i];

        if (operand->buffer == PLAN_SLOT &&
            lend(x, &world->out[operand->lane * world->size + operand->rank], to, bytes, from))
            continue;
        if (is_own_output(x, operand) && world->lender && (!copies || to != world->sources[0]))
            world->lender->ops->settle(world->lender, to, bytes);
        world->destinations[left++] = to;
    }
    return left;
}
