/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * step_slots.h - what the steps of a plan do with messages in slots (link/link.h), for whoever has
 * channels to run step_loop.h with.
 *
 * The includer defines what differs between a host thread and a CUDA block, before including this
 * file:
 *
 *     STEP_FUNCTION                     qualifiers of every function here (static inline, ...);
 *                                       plan/pieces.h comes before
 *     step_load(p), step_store(p, v)    acquire load and release store of a flag or counter
 *     step_addresses(x, peer, said)     a message says where the peer's buffers are
 *     step_push(out, slot, base, flag)  tell a transport that moves bytes: the message's payload
 *     step_return(in)                   begins at `base`; slots were given back. On shared memory
 *                                       nothing is to be done
 *     step_write_ll(x, out, lines, flag), step_read_ll(x, in, lines, flag)
 *                                       the next message in LL lines, from and to its link's
 *                                       `packed`; the reading one is false while some are missing
 *     step_enter(x)                     all addresses are known: EXEC_MOVED, memory of peers may
 *                                       be touched from now on, or EXEC_LEFT
 *     step_holds(x)                     has nobody left whose memory was read? Asked before others
 *                                       hear of it, by who has entered
 *     step_ll_head(x, ll, before, lines), step_ll_depth(x, lines)
 *                                       the line with the flag of message `before` + 1 in a short
 *                                       form, and how many of that form may be under way
 *     step_fetch_ahead(x, out)          a message has left; ask for the line of a later one
 *     step_clear(p)                     store a flag of 0; needs no order
 *     step_sweep_ll(x, out)             step_sweep_flag() for every line of its short forms that
 *                                       has a flag
 *
 * No function here waits: a step that can't go on returns EXEC_BLOCKED and is tried again.
 */

STEP_FUNCTION struct link_slot *step_out_slot(const struct link_out *out)
{
    return (struct link_slot *)(out->slots + out->index * out->stride);
}

STEP_FUNCTION struct link_slot *step_in_slot(const struct link_in *in)
{
    return (struct link_slot *)(in->slots + in->index * in->stride);
}

/* The line with the flag of the next message. */
STEP_FUNCTION struct link_line *step_out_head(const struct execution *x, const struct link_out *out)
{
    return x->shape.lines && out->ll ? step_ll_head(x, out->ll, out->sent, x->shape.lines)
                                     : &step_out_slot(out)->head;
}

/* The same, if the message is of that many lines. */
STEP_FUNCTION struct link_line *step_in_head(const struct execution *x, const struct link_in *in,
                                             unsigned lines)
{
    return lines && in->ll ? step_ll_head(x, in->ll, in->received, lines) : &step_in_slot(in)->head;
}

/* True if the payload shares the line of the flag. */
STEP_FUNCTION bool step_inlines(const struct execution *x)
{
    return x->shape.lines == 1 && !x->shape.parted;
}

/* True if the message of this step travels packed, where messages are of more than one LL line. A
 * message with addresses does not. */
STEP_FUNCTION bool step_packs(const struct plan_step *step, const struct link_ll *ll)
{
    return ll && !(step->flags & PLAN_ADDRESSES);
}

/* Wait, data: has the next message come? */
STEP_FUNCTION enum exec_state step_wait_data(struct execution *x, const struct plan_step *step)
{
    struct link_in *in = &x->world->in[step->channel * x->world->size + step->peer];
    const struct link_line *head = step_in_head(x, in, x->shape.lines);
    uint64_t flag = step_load(&head->flag);

    if ((uint32_t)flag != in->received + 1 || !flag) { /* never used, when numbers wrap */
        x->blamed = step->peer;
        return EXEC_BLOCKED;
    }
    if ((uint32_t)(flag >> 32) != x->fingerprint) {
        x->blamed = step->peer;
        x->foreign = (uint32_t)(flag >> 32);
        return EXEC_MISMATCH;
    }
    if (x->shape.lines > 1 && step_packs(step, in->ll)) {
        if (!step_read_ll(x, in, x->shape.lines, flag)) {
            x->blamed = step->peer;
            return EXEC_BLOCKED;
        }
        in->take = in->packed;
    } else if (step_inlines(x)) {
        in->take = (char *)head->payload;
    } else {
        in->take = step_in_slot(in)->payload;
        if (in->ll)
            in->take += (in->lap & x->shape.last_place) * x->shape.place;
    }
    if (step->flags & PLAN_ADDRESSES)
        step_addresses(x, step->peer, (const struct link_addresses *)(const void *)head->payload);
    return EXEC_MOVED;
}

/* How many messages may be under way, if so many are consumed. The slot of a plain one may be the
 * one whose part a parted message would get. */
STEP_FUNCTION uint32_t step_room(const struct execution *x, const struct link_out *out,
                                 uint32_t consumed)
{
    if (!x->shape.lines || !out->ll)
        return out->slot_count;
    if (!x->shape.parted)
        return step_ll_depth(x, x->shape.lines);
    return (int32_t)(consumed - out->plain) < 0 ? out->slot_count
                                                : out->slot_count * (x->shape.last_place + 1);
}

/*
 * True if a slot is free for the message that follows `ahead` others. The reader's counter is
 * looked at only when the last look no longer tells; and who has filled all slots waits until half
 * of them are free, so that the counter's line crosses to the other core once for many messages,
 * not for each. Messages of all forms are counted together, so no more than `most` of any are under
 * way.
 */
STEP_FUNCTION bool step_has_room(const struct execution *x, struct link_out *out, uint32_t ahead)
{
    if (out->sent + ahead - out->consumed >= step_room(x, out, out->consumed)) {
        /* Acquire, pairs with the release in step_give_back(): the reader is done with the slot. */
        uint32_t consumed = step_load(&out->credit->consumed);
        uint32_t room = step_room(x, out, consumed);
        /* Plans are proved for 2 slots, so half of 4 or more is never waited for in vain. */
        uint32_t most = room >= 4 ? room / 2 : room - 1;

        if (out->sent + ahead - consumed > most)
            return false;
        out->consumed = consumed;
    }
    return true;
}

/* True if the reader has given back all messages. */
STEP_FUNCTION bool step_is_settled(struct link_out *out)
{
    /* Acquire, pairs with the release in step_give_back(): the reader has done what came before. */
    out->consumed = step_load(&out->credit->consumed);
    return out->consumed == out->sent;
}

/* Wait, credit. */
STEP_FUNCTION enum exec_state step_wait_credit(struct execution *x, const struct plan_step *step)
{
    struct link_out *out = &x->world->out[step->channel * x->world->size + step->peer];
    bool settles = step->flags & PLAN_SETTLED;

    if (settles && step_is_settled(out))
        return EXEC_MOVED;
    if (settles || !step_has_room(x, out, 0)) {
        x->blamed = step->peer;
        return EXEC_BLOCKED;
    }
    if (step_inlines(x)) {
        out->fill = step_out_head(x, out)->payload;
    } else if (x->shape.lines && !x->shape.parted && out->ll) {
        out->fill = out->packed;
    } else {
        out->fill = step_out_slot(out)->payload;
        if (out->ll)
            out->fill += (out->lap & x->shape.last_place) * x->shape.place;
    }
    return EXEC_MOVED;
}

/* Clear this flag unless its message may be under way. Nobody else writes it, and a reader does not
 * look for numbers that it has given back, so this disturbs nothing. */
STEP_FUNCTION void step_sweep_flag(const struct link_out *out, struct link_line *head)
{
    uint64_t flag = step_load(&head->flag);

    if (flag && (uint32_t)flag - out->consumed - 1 >= out->sent - out->consumed)
        step_clear(&head->flag);
}

/* Flags that have grown old must not be there when their numbers come again: see link.h. Without
 * short forms every flag is overwritten each time round. */
STEP_FUNCTION void step_sweep(const struct execution *x, struct link_out *out)
{
    for (uint32_t i = 0; i < out->slot_count; i++)
        step_sweep_flag(out, &((struct link_slot *)(out->slots + i * out->stride))->head);
    step_sweep_ll(x, out);
    if ((int32_t)(out->consumed - out->plain) >= 0)
        out->plain = out->consumed; /* nor may its number be that of one to come */
}

/* Signal, data: publish the open slot. */
STEP_FUNCTION enum exec_state step_publish(struct execution *x, const struct plan_step *step)
{
    struct link_out *out = &x->world->out[step->channel * x->world->size + step->peer];
    struct link_line *head = step_out_head(x, out);
    uint64_t flag = (uint64_t)x->fingerprint << 32 | (out->sent + 1);

    if (x->entered && !step_holds(x))
        return EXEC_LEFT;
    if (step->flags & PLAN_ADDRESSES)
        *(struct link_addresses *)(void *)head->payload = x->own;
    /* Release, pairs with the acquire in step_wait_data():
     * who sees the number also sees the payload. */
    if (x->shape.lines > 1 && step_packs(step, out->ll))
        step_write_ll(x, out, x->shape.lines, flag);
    else
        step_store(&head->flag, flag);
    step_push(out, step_out_slot(out),
              step_inlines(x) ? head->payload : step_out_slot(out)->payload, flag);
    out->sent++;
    step_fetch_ahead(x, out);
    if (!x->shape.lines)
        out->plain = out->sent;
    if (++out->index == out->slot_count) {
        out->index = 0;
        out->lap++;
    }
    out->fill = NULL;
    if (out->sent % LINK_SWEEP == 0 && out->ll)
        step_sweep(x, out);
    /* A rank that takes no addresses need not wait: it knows whether its own memory can be
     * reached. */
    return step->flags & PLAN_ADDRESSES && x->unreachable && !x->plan->address_messages
               ? EXEC_FALLBACK
               : EXEC_MOVED;
}

/* Signal, credit: the open message has been read. After the last one
 * with addresses it is known whether all memory can be reached. */
STEP_FUNCTION enum exec_state step_give_back(struct execution *x, const struct plan_step *step)
{
    struct link_in *in = &x->world->in[step->channel * x->world->size + step->peer];

    if (x->entered && !step_holds(x))
        return EXEC_LEFT;
    in->received++;
    if (++in->index == in->slot_count) {
        in->index = 0;
        in->lap++;
    }
    in->take = NULL;
    /* Release, pairs with the acquire in step_wait_credit(): our reads of the slot come before. */
    step_store(&in->credit->consumed, in->received);
    if (in->connection)
        step_return(in);
    if (step->flags & PLAN_ADDRESSES && --x->awaited == 0)
        return x->unreachable ? EXEC_FALLBACK : step_enter(x);
    return EXEC_MOVED;
}
