/* SPDX-License-Identifier: BSD-3-Clause */
/* zcopy.c - see zcopy.h. */
#include "plan/zcopy.h"

#include "transport/link/connection.h"

#include <string.h>

#define STEP_FUNCTION static inline
#include "plan/pieces.h"

static struct link_in *link_in_of(const struct execution *x, int channel, int peer)
{
    return &x->world->in[channel * x->world->size + peer];
}

/* The flag that the next message of a link will carry. */
static uint64_t next_flag(const struct execution *x, const struct link_in *in)
{
    return (uint64_t)x->fingerprint << 32 | (in->received + 1);
}

/* ---- Reading --------------------------------------------------------------------------------- */

static bool is_own_output(const struct plan *plan, const struct plan_operand *operand)
{
    return operand->buffer == PLAN_OUTPUT && operand->rank == plan->rank;
}

const struct plan_step *zcopy_copy(const struct plan *plan, uint32_t program_end,
                                   const struct plan_step *wait)
{
    const struct plan_step *end = &plan->steps[program_end], *step = wait + 1;
    const struct plan_operand *source;

    while (step < end && step->verb == PLAN_WAIT)
        step++;
    if (step == end || step->verb != PLAN_COPY || step->sources != 1)
        return NULL;
    source = plan_sources(plan, step);
    return source->buffer == PLAN_SLOT && source->rank == wait->peer &&
                   source->channel == wait->channel
               ? step
               : NULL;
}

const struct plan_step *zcopy_behind(const struct plan *plan, uint32_t program_end,
                                     const struct plan_step *copy)
{
    const struct plan_step *end = &plan->steps[program_end], *step = copy + 1;

    while (step < end && step->verb == PLAN_SIGNAL)
        step++;
    return step;
}

const struct plan_operand *zcopy_place(const struct plan *plan, const struct plan_step *copy)
{
    const struct plan_operand *outputs = plan_destinations(plan, copy);

    for (int i = 0; i < copy->destinations; i++)
        if (is_own_output(plan, &outputs[i]))
            return &outputs[i];
    return NULL;
}

/* Does as zcopy_copy(), for the operation of this call. */
static const struct plan_step *copy_behind(const struct execution *x,
                                           const struct exec_program *program,
                                           const struct plan_step *wait)
{
    const struct plan_step *copy = zcopy_copy(x->plan, program->end, wait);

    return copy && only_copies(x, copy) ? copy : NULL;
}

/* The bytes of my output to which a copy puts its part; false: it puts none there. */
static bool own_output(const struct execution *x, const struct exec_program *program,
                       const struct plan_step *copy, size_t *ret_at)
{
    const struct plan_operand *delivered_to = zcopy_place(x->plan, copy);

    if (delivered_to)
        *ret_at = user_offset(x, program, delivered_to);
    return delivered_to;
}

/* True if a copy from the program's place up to `copy` writes to the same bytes of the output. */
static bool is_touched(const struct execution *x, const struct exec_program *program,
                       const struct plan_step *copy, size_t at, size_t bytes)
{
    const struct plan_step *other = &x->plan->steps[program->at];
    size_t begin;

    while ((other = copy_behind(x, program, other)) && other != copy) {
        size_t length = step_elements(x, program, other) * x->shape.element;

        if (own_output(x, program, other, &begin) && begin < at + bytes && at < begin + length)
            return true;
        other = zcopy_behind(x->plan, program->end, other);
    }
    return false;
}

/* One network at a time is sent zero-copy to and puts what it is expected to, as it settles for
 * itself. */
static bool is_zcopy_connection(const struct exec_world *world, const struct connection *connection)
{
    return !world->zcopy_connection || !connection ||
           world->zcopy_connection->ops == connection->ops;
}

static void expect_copy(struct execution *x, const struct exec_program *program,
                        const struct plan_step *copy, struct connection *connection)
{
    size_t bytes = step_elements(x, program, copy) * x->shape.element, at;

    if (bytes >= ZCOPY_FROM && is_zcopy_connection(x->world, connection) &&
        own_output(x, program, copy, &at) && !is_touched(x, program, copy, at, bytes))
        connection->ops->post_receive(connection, connection->posted, x->output + at, bytes);
}

/* Peers are waited for one after the other, and their messages come in any order. So all are
 * expected that will only be copied, as far as nothing else is done in between. */
void zcopy_post(struct execution *x, const struct exec_program *program)
{
    const struct plan_step *end = &x->plan->steps[program->end], *copy;
    const struct plan_step *wait = &x->plan->steps[program->at];

    for (; wait < end && wait->verb == PLAN_WAIT && wait->event == PLAN_DATA;
         wait = zcopy_behind(x->plan, program->end, copy)) {
        const struct link_in *in = link_in_of(x, wait->channel, wait->peer);
        bool expects = connection_posts(in->connection);

        if (expects && in->connection->posted == next_flag(x, in))
            return; /* and so have been those behind it */
        copy = copy_behind(x, program, wait);
        if (expects)
            in->connection->posted = next_flag(x, in);
        if (!copy)
            return;
        if (expects)
            expect_copy(x, program, copy, in->connection);
    }
}

const char *zcopy_delivered(const struct execution *x, const struct plan_operand *slot,
                            const char *at)
{
    const struct link_in *in = link_in_of(x, slot->channel, slot->rank);

    return in->connection && in->connection->delivered == next_flag(x, in)
               ? in->connection->delivered_to
               : at;
}

/* ---- Writing --------------------------------------------------------------------------------- */

/* Memory of the call that has what the step stores; NULL: there is none. */
static const char *lendable(const struct execution *x, const struct plan_step *step, bool copies)
{
    const struct plan_operand *operands = plan_destinations(x->plan, step);
    const struct plan_operand *source = plan_sources(x->plan, step);

    for (int i = 0; i < step->destinations; i++)
        if (is_own_output(x->plan, &operands[i]))
            return x->world->destinations[i];
    if (copies && source->rank == x->plan->rank &&
        (source->buffer == PLAN_INPUT || source->buffer == PLAN_OUTPUT))
        return x->world->sources[0];
    return NULL;
}

/* Let the link send the memory at `from` in place of this piece, if the piece is the first of its
 * message; true: the link takes it from there. */
static bool zcopy(struct execution *x, struct link_out *link, const char *piece, size_t bytes,
                  const char *from)
{
    char *payload =
        ((struct link_slot *)(void *)(link->slots + link->index * link->stride))->payload;

    if (from && piece == payload && is_zcopy_connection(x->world, link->connection) &&
        connection_takes(link->connection, from, bytes)) {
        link->zcopy = from;
        x->world->zcopy_connection = link->connection;
        return true;
    }
    if (link->zcopy) { /* and now there is a second piece */
        memcpy(payload, link->zcopy, (size_t)(piece - payload));
        link->zcopy = NULL;
    }
    return false;
}

int zcopy_destinations(struct execution *x, const struct plan_step *step, size_t bytes, bool copies)
{
    const struct plan_operand *operands = plan_destinations(x->plan, step);
    const char *from = bytes >= ZCOPY_FROM ? lendable(x, step, copies) : NULL;
    struct exec_world *world = x->world;
    int left = 0;

    for (int i = 0; i < step->destinations; i++) {
        char *to = world->destinations[i];
        const struct plan_operand *operand = &operands[i];

        if (operand->buffer == PLAN_SLOT &&
            zcopy(x, &world->out[operand->channel * world->size + operand->rank], to, bytes, from))
            continue;
        if (is_own_output(x->plan, operand) && world->zcopy_connection &&
            (!copies || to != world->sources[0]))
            world->zcopy_connection->ops->reclaim(world->zcopy_connection, to, bytes);
        world->destinations[left++] = to;
    }
    return left;
}
