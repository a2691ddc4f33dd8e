/* SPDX-License-Identifier: BSD-3-Clause */
/* segments.c - how a simulation begins, which segments it runs, and what the others would take. */
#include "plan/simulate/state.h"

#include "base/fail.h"

#include <limits.h>
#include <math.h>

enum { STEPS_OF_SEGMENTS = 1000000, SEGMENTS_LEAST = 16, SEGMENTS_MOST = 256 };

rondo_result state_cut(struct simulation *s)
{
    const struct programs *programs = s->programs;
    double block = s->call->block_bytes, slot = programs->machine.slot_bytes, atom = HUGE_VAL;
    double parts = programs->parts ? programs->parts : 1, segments;

    if (programs->message_atoms) {
        atom = floor(slot / programs->message_atoms);
        atom -= atom >= 64 ? fmod(atom, 64) : fmod(atom, 4);
    }
    if (atom < 4)
        return rondo_fail(
            RONDO_ERROR_UNSUPPORTED,
            "Slots of %d bytes are too small for messages of %u parts: set slot_bytes "
            "to %u at least.",
            programs->machine.slot_bytes, programs->message_atoms, 4 * programs->message_atoms);
    s->result->segments = 1;
    s->atom = s->last_atom = block / parts;
    segments = ceil(block / (atom * parts));
    if (segments > INT_MAX)
        return rondo_fail(
            RONDO_ERROR_UNSUPPORTED,
            "Slots of %d bytes cut blocks of %.0f bytes into %.0f segments, which are "
            "too many: set slot_bytes higher.",
            programs->machine.slot_bytes, block, segments);
    if (segments > 1) {
        s->atom = atom;
        s->result->segments = (int)segments;
        s->last_atom = (block - (s->result->segments - 1) * atom * parts) / parts;
    }
    s->result->simulated = s->result->segments;
    if (s->call->segments_most > 0 && s->result->segments > s->call->segments_most)
        s->result->simulated = s->call->segments_most;
    return RONDO_OK;
}

int state_segments(const struct programs *programs)
{
    uint32_t many = STEPS_OF_SEGMENTS / (programs->op_count + 1);

    return many < SEGMENTS_LEAST  ? SEGMENTS_LEAST
           : many > SEGMENTS_MOST ? SEGMENTS_MOST
                                  : (int)many;
}

void state_begin(struct simulation *s)
{
    struct programs *programs = s->programs;

    for (uint32_t i = 0; i < programs->wire_count; i++) {
        s->wires[i].owner = s->wires[i].sender = s->wires[i].receiver = -1;
        if (programs->wires[i].flow >= 0)
            s->wire_of_flow[programs->wires[i].flow] = (int32_t)i;
    }
    for (int i = 0; i < programs->fold.period; i++)
        s->ranks[i].slow = 1;
    for (uint32_t i = 0; i < programs->track_count; i++) {
        struct rank_state *rank = &s->ranks[programs->tracks[i].rank];

        s->tracks[i].at = programs->tracks[i].begin;
        if (!rank->tracks++)
            rank->first = (int32_t)i;
    }
    for (int i = 0; i < s->call->slow_count; i++)
        if (s->call->slow[i].rank < programs->fold.period)
            s->ranks[s->call->slow[i].rank].slow = s->call->slow[i].factor;
    for (uint32_t i = 0; i < programs->share.link_count; i++)
        programs->share.links[i].bytes = 0;
    share_reset(&programs->share);
    programs->share.cut = 0;
    s->left = programs->track_count;
}

bool state_open(struct simulation *s)
{
    const struct programs *programs = s->programs;
    size_t wires = programs->wire_count + 1, slots = (size_t)programs->machine.slots;

    s->tracks = calloc(programs->track_count + 1, sizeof(*s->tracks));
    s->wires = calloc(wires, sizeof(*s->wires));
    s->messages = calloc(wires * slots, sizeof(*s->messages));
    s->ranks = calloc((size_t)programs->fold.period, sizeof(*s->ranks));
    s->wire_of_flow = calloc(programs->share.flow_count + 1, sizeof(*s->wire_of_flow));
    s->segment_ends = calloc((size_t)s->result->simulated, sizeof(*s->segment_ends));
    s->result->rank_ends = calloc((size_t)programs->fold.period, sizeof(double));
    s->result->link_bytes = calloc(programs->share.link_count + 1, sizeof(double));
    return s->tracks && s->wires && s->messages && s->ranks && s->wire_of_flow && s->segment_ends &&
           s->result->rank_ends && s->result->link_bytes;
}

/* Adds the segments that were not run. Those in the middle tell how long one takes: before them the
 * ways fill, after them they run empty. */
void state_extrapolate(struct simulation *s)
{
    struct simulate_result *result = s->result;
    int run = result->simulated, first = run / 4, middle = run / 2, last = run - run / 4;
    const double *ends = s->segment_ends;
    double each, late, early;

    result->seconds = result->end;
    if (run == result->segments)
        return;
    each = (ends[last - 1] - ends[first - 1]) / (last - first);
    late = (ends[last - 1] - ends[middle - 1]) / (last - middle);
    early = (ends[middle - 1] - ends[first - 1]) / (middle - first);
    result->doubt = each > 0 ? fabs(late - early) / each : 0;
    /* The last one is shorter. */
    result->seconds += each * (result->segments - run - 1 + s->last_atom / s->atom);
}

double state_chance(uint64_t seed, uint64_t rank, uint64_t move)
{
    uint64_t mixed = seed + rank * 0x9e3779b97f4a7c15u + move * 0xbf58476d1ce4e5b9u;

    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return ((double)((mixed ^ mixed >> 31) >> 11) + 0.5) / 9007199254740992.0;
}
