/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.c - the events of a call, in their order.
 *
 * A track is run until it has to wait, as step_loop.h runs a program. What ends a wait has a time:
 * the arrival of a message and the return of a slot are known when the bytes have flowed or the
 * slot was given back, so a track that waits for them is told once, when it goes on.
 */
#include "plan/simulate/state.h"

#include "base/fail.h"

#include <math.h>
#include <string.h>

static void post(struct simulation *s, double time, enum event_kind kind, int32_t index,
                 uint32_t version)
{
    if (!queue_push(&s->queue, time, kind, index, version))
        s->out_of_memory = true;
}

static struct message_state *message(struct simulation *s, int32_t wire, uint32_t number)
{
    uint32_t slots = (uint32_t)s->programs->machine.slots;

    return &s->messages[(size_t)wire * slots + number % slots];
}

static double atom_bytes(const struct simulation *s, const struct track_state *track)
{
    return (int)track->segment + 1 == s->result->segments ? s->last_atom : s->atom;
}

static bool stop(struct simulation *s, struct track_state *track, enum track_wait wait)
{
    if (track->wait != wait)
        track->since = s->now;
    track->wait = (uint8_t)wait;
    return false;
}

/* A wait is over. If it lasted, what ended it is what the track had to wait for. */
static bool go_on(struct track_state *track, uint32_t cause)
{
    if (track->wait != WAIT_NONE && cause)
        track->last = cause;
    track->wait = WAIT_NONE;
    track->at++;
    return true;
}

/* ---- Messages -------------------------------------------------------------------------------- */

static void arrive(struct simulation *s, int32_t number, uint32_t cause)
{
    struct wire_state *wire = &s->wires[number];
    struct message_state *m = message(s, number, wire->arrived++);

    m->arrives = s->now + s->programs->wires[number].latency;
    m->cause = cause;
    s->result->received += m->bytes;
    if (wire->receiver >= 0)
        post(s, m->arrives, EVENT_RESUME, wire->receiver, 0);
    wire->receiver = -1;
}

/* The next message leaves, if none is on its way. */
static void depart(struct simulation *s, int32_t number, uint32_t cause)
{
    const struct wire *wire = &s->programs->wires[number];
    struct wire_state *state = &s->wires[number];

    while (state->started == state->arrived && state->started < state->sent) {
        struct message_state *m = message(s, number, state->started++);

        state->began = s->now;
        state->cause = cause;
        if (wire->flow < 0 || m->bytes <= 0 || wire->direct) {
            arrive(s, number, cause);
            continue;
        }
        share_start(&s->programs->share, wire->flow, m->bytes, s->now);
    }
}

static bool do_send(struct simulation *s, int32_t index, struct track_state *track, int32_t number)
{
    struct wire_state *wire = &s->wires[number];
    double cost = s->programs->machine.message * s->ranks[s->programs->tracks[index].rank].slow;

    if (cost > 0 && track->wait != WAIT_SEND && !s->programs->wires[number].direct) {
        post(s, s->now + cost, EVENT_RESUME, index, 0);
        return stop(s, track, WAIT_SEND);
    }
    if (track->wait == WAIT_SEND)
        track->last = record_add(s, (struct record){.begin = track->since,
                                                    .end = s->now,
                                                    .before = track->last,
                                                    .track = index,
                                                    .what = -1,
                                                    .rank = s->programs->tracks[index].rank,
                                                    .kind = RECORD_MOVE});
    message(s, number, wire->sent)->bytes = wire->fill;
    s->result->sent += wire->fill;
    wire->fill = 0;
    wire->sent++;
    depart(s, number, track->last);
    return go_on(track, 0);
}

static bool do_await(struct simulation *s, int32_t index, struct track_state *track, int32_t number)
{
    struct wire_state *wire = &s->wires[number];
    struct message_state *m;

    if (wire->awaited == wire->arrived) {
        wire->receiver = index;
        return stop(s, track, WAIT_MESSAGE);
    }
    m = message(s, number, wire->awaited);
    if (m->arrives > s->now) {
        post(s, m->arrives, EVENT_RESUME, index, 0);
        return stop(s, track, WAIT_MESSAGE);
    }
    wire->awaited++;
    return go_on(track, m->cause);
}

/* Waits for so many messages of the wire to be given back. */
static bool await_back(struct simulation *s, int32_t index, struct track_state *track,
                       int32_t number, uint32_t most)
{
    struct wire_state *wire = &s->wires[number];
    struct message_state *m = most ? message(s, number, most - 1) : NULL;

    if (!m)
        return go_on(track, 0);
    if (wire->freed < most) {
        wire->sender = index;
        return stop(s, track, WAIT_SLOT);
    }
    if (m->free > s->now) {
        post(s, m->free, EVENT_RESUME, index, 0);
        return stop(s, track, WAIT_SLOT);
    }
    return go_on(track, m->back);
}

static bool do_acquire(struct simulation *s, int32_t index, struct track_state *track,
                       int32_t number)
{
    struct wire_state *wire = &s->wires[number];
    uint32_t slots = (uint32_t)s->programs->machine.slots;
    uint32_t most = wire->acquired < slots ? 0 : wire->acquired - slots + 1;
    bool free = await_back(s, index, track, number, most);

    wire->acquired += free;
    return free;
}

static bool do_release(struct simulation *s, struct track_state *track, int32_t number)
{
    struct wire_state *wire = &s->wires[number];
    struct message_state *m = message(s, number, wire->freed++);

    m->free = s->now + s->programs->wires[number].latency;
    m->back = track->last;
    if (wire->sender >= 0)
        post(s, m->free, EVENT_RESUME, wire->sender, 0);
    wire->sender = -1;
    return go_on(track, 0);
}

/* ---- Moves ----------------------------------------------------------------------------------- */

static double own_seconds(struct simulation *s, const struct track *track,
                          struct track_state *state, const struct op *op)
{
    const struct machine *machine = &s->programs->machine;
    double atom = atom_bytes(s, state);
    double seconds = machine->step + (double)op->copied * atom / machine->copy_bw +
                     (double)op->reduced * atom / machine->reduce_bw;

    if (s->call->jitter > 0) {
        uint64_t who = (uint64_t)track->rank * PLAN_PROGRAMS_MAX + (uint64_t)track->number;

        seconds *= 1 - s->call->jitter * log(state_chance(s->call->seed, who, state->moves++));
    }
    return seconds * s->ranks[track->rank].slow;
}

/* The rank can do one more: the next of its programs that waits for that. */
static void next_turn(struct simulation *s, struct rank_state *rank, uint32_t cause)
{
    rank->moving--;
    for (int i = 0; i < rank->tracks; i++)
        if (rank->waiting >> i & 1) {
            rank->waiting &= ~(1U << i);
            if (cause)
                s->tracks[rank->first + i].last = cause;
            post(s, s->now, EVENT_RESUME, rank->first + i, 0);
            return;
        }
}

static bool end_move(struct simulation *s, int32_t index, int32_t slowest)
{
    const struct track *track = &s->programs->tracks[index];
    struct track_state *state = &s->tracks[index];

    state->last = record_add(s, (struct record){.begin = state->since,
                                                .end = s->now,
                                                .before = state->last,
                                                .track = index,
                                                .what = slowest,
                                                .rank = track->rank,
                                                .kind = RECORD_MOVE});
    next_turn(s, &s->ranks[track->rank], state->last);
    return go_on(state, 0);
}

/* Starts what a move sends along: by the rank's own hands at once, else when it is published. */
static void fill(struct simulation *s, int32_t index, struct track_state *track,
                 const struct op *op)
{
    const struct wire *wire = &s->programs->wires[op->link];
    struct wire_state *state = &s->wires[op->link];
    double bytes = (double)op->copied * atom_bytes(s, track);

    if (!wire->access)
        state->fill += bytes;
    if (!wire->direct || wire->flow < 0 || bytes <= 0)
        return;
    state->owner = index;
    if (!s->programs->share.flows[wire->flow].active)
        track->pending++;
    share_start(&s->programs->share, wire->flow, bytes, s->now);
}

static bool do_move(struct simulation *s, int32_t index, struct track_state *track,
                    const struct op *op)
{
    const struct track *own = &s->programs->tracks[index];
    struct rank_state *rank = &s->ranks[own->rank];
    double seconds;

    if (track->wait == WAIT_MOVE)
        return false;
    if (rank->moving >= s->programs->machine.together) {
        rank->waiting |= 1U << own->number;
        return stop(s, track, WAIT_TURN);
    }
    rank->moving++;
    track->pending = 0;
    for (int32_t i = op->link; i > 0; i--)
        fill(s, index, track, op - i);
    seconds = own_seconds(s, own, track, op);
    track->timer = s->now + seconds;
    stop(s, track, WAIT_MOVE);
    track->since = s->now;
    if (seconds <= 0 && !track->pending)
        return end_move(s, index, -1);
    track->pending++;
    post(s, track->timer, EVENT_TIMER, index, 0);
    return false;
}

/* ---- Tracks ---------------------------------------------------------------------------------- */

static bool do_op(struct simulation *s, int32_t index, struct track_state *track)
{
    const struct op *op = &s->programs->ops[track->at];

    switch (op->kind) {
    case OP_AWAIT:
        return do_await(s, index, track, op->link);
    case OP_ACQUIRE:
        return do_acquire(s, index, track, op->link);
    case OP_SETTLE:
        return await_back(s, index, track, op->link, s->wires[op->link].sent);
    case OP_MOVE:
        return do_move(s, index, track, op);
    case OP_SEND:
        return do_send(s, index, track, op->link);
    case OP_RELEASE:
        return do_release(s, track, op->link);
    default: /* a fill: its move does it */
        track->at++;
        return true;
    }
}

static void end_track(struct simulation *s, int32_t index, struct track_state *track)
{
    int rank = s->programs->tracks[index].rank;

    s->left--;
    s->result->rank_ends[rank] = fmax(s->result->rank_ends[rank], s->now);
    if (s->now >= s->result->end) {
        s->result->end = s->now;
        s->result->last = track->last;
        s->result->last_rank = rank;
    }
}

static void run_track(struct simulation *s, int32_t index)
{
    const struct track *track = &s->programs->tracks[index];
    struct track_state *state = &s->tracks[index];

    while ((int)state->segment < s->result->simulated) {
        while (state->at < track->end)
            if (!do_op(s, index, state))
                return;
        s->segment_ends[state->segment] = fmax(s->segment_ends[state->segment], s->now);
        state->segment++;
        state->at = track->begin;
    }
    end_track(s, index, state);
}

static void end_part(struct simulation *s, int32_t index, int32_t slowest)
{
    if (--s->tracks[index].pending == 0) {
        end_move(s, index, slowest);
        run_track(s, index);
    }
}

static void end_flow(struct simulation *s, int32_t flow)
{
    int32_t number = s->wire_of_flow[flow], slowest = s->programs->share.flows[flow].slowest;
    const struct wire *wire = &s->programs->wires[number];
    struct wire_state *state = &s->wires[number];

    share_stop(&s->programs->share, flow);
    if (wire->direct) {
        end_part(s, state->owner, slowest);
        return;
    }
    state->last = record_add(s, (struct record){.begin = state->began,
                                                .end = s->now,
                                                .before = state->cause,
                                                .track = -1,
                                                .what = slowest,
                                                .rank = wire->from,
                                                .to = wire->to,
                                                .kind = RECORD_FLOW});
    arrive(s, number, state->last);
    depart(s, number, state->last);
}

static void tell_rate(void *who, int32_t number)
{
    struct simulation *s = who;
    const struct share_flow *flow = &s->programs->share.flows[number];

    if (flow->rate > 0)
        post(s, flow->since + flow->left / flow->rate, EVENT_FLOW, number, flow->version);
}

static void handle(struct simulation *s, const struct event *event)
{
    s->now = event->time;
    s->result->events++;
    switch ((enum event_kind)(event->number & 3)) {
    case EVENT_RESUME:
        run_track(s, event->index);
        return;
    case EVENT_TIMER:
        end_part(s, event->index, -1);
        return;
    default:
        end_flow(s, event->index);
    }
}

static rondo_result run_events(struct simulation *s)
{
    struct share *share = &s->programs->share;

    for (int32_t i = 0; i < (int32_t)s->programs->track_count; i++)
        run_track(s, i);
    while (s->left && !s->out_of_memory && !share->out_of_memory) {
        if (share_changed(share) && (!s->queue.count || s->queue.events[0].time > s->now)) {
            share_settle(share, s->now, tell_rate, s);
            continue;
        }
        if (!s->queue.count)
            return explain_standstill(s);
        struct event event = queue_pop(&s->queue);

        if ((event.number & 3) == EVENT_FLOW && share->flows[event.index].version != event.version)
            continue;
        handle(s, &event);
    }
    if (s->left)
        return rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the events of %d ranks.",
                          s->programs->fold.ranks);
    return RONDO_OK;
}

rondo_result simulate_run(struct programs *programs, const struct simulate_call *call,
                          struct simulate_result *ret_result)
{
    struct simulate_call bounded = *call;
    struct simulate_result result = {.records_complete = call->records};
    struct simulation simulation = {.programs = programs, .call = &bounded, .result = &result};
    rondo_result end;

    if (bounded.segments_most < 0)
        bounded.segments_most = state_segments(programs);
    if (bounded.segments_most > 0 && bounded.segments_most < 8)
        bounded.segments_most = 8; /* its quarters are more than nothing */
    end = state_cut(&simulation);
    if (!end && !state_open(&simulation))
        end = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory to simulate %d ranks.",
                         programs->fold.ranks);
    if (!end) {
        state_begin(&simulation);
        end = run_events(&simulation);
    }
    if (!end) {
        state_extrapolate(&simulation);
        result.cut = programs->share.cut;
        for (uint32_t i = 0; i < programs->share.link_count; i++)
            result.link_bytes[i] = programs->share.links[i].bytes;
    }
    free(simulation.queue.events);
    free(simulation.tracks);
    free(simulation.wires);
    free(simulation.messages);
    free(simulation.ranks);
    free(simulation.wire_of_flow);
    free(simulation.segment_ends);
    if (end)
        simulate_close(&result);
    else
        *ret_result = result;
    return end;
}

void simulate_close(struct simulate_result *result)
{
    free(result->link_bytes);
    free(result->records);
    free(result->rank_ends);
    memset(result, 0, sizeof(*result));
}
