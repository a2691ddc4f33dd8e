/* SPDX-License-Identifier: BSD-3-Clause */
/* program.c - compiles plans as they are written: see program.h. */
#include "plan/simulate/program.h"

#include "base/fail.h"
#include "plan/simulate/list.h"

#include <string.h>

enum {
    OPS_MAX = 160000000, /* 2.5 GB */
    /* Kinds of wires: channels 0 .. 4, then what programs do to memory of peers. */
    READS = PLAN_CHANNELS,
    WRITES = READS + PLAN_PROGRAMS_MAX,
    KINDS = 16
};

struct compiler {
    struct plan_reader reader; /* first: it is what plans know of this */
    struct programs *programs;
    int rank, number; /* the program of it that is being written */
    bool out_of_memory;
};

/* ---- Tables ---------------------------------------------------------------------------------- */

static uint32_t place_of(uint64_t key, uint32_t size)
{
    key *= 0x9e3779b97f4a7c15u;
    return (uint32_t)(key >> 32) & (size - 1);
}

/* Twice as many places; false without memory. `key_of` gives an item's key. */
static bool widen(int32_t **table, uint32_t *size, uint32_t count, const void *items,
                  uint64_t (*key_of)(const void *items, uint32_t i))
{
    uint32_t wider = *size ? *size * 2 : 64;
    int32_t *moved = malloc(wider * sizeof(*moved));

    if (!moved)
        return false;
    memset(moved, -1, wider * sizeof(*moved));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = place_of(key_of(items, i), wider);

        while (moved[at] >= 0)
            at = (at + 1) & (wider - 1);
        moved[at] = (int32_t)i;
    }
    free(*table);
    *table = moved;
    *size = wider;
    return true;
}

static uint64_t wire_key(const void *items, uint32_t i)
{
    return ((const struct wire *)items)[i].key;
}

static uint64_t hop_key(const void *items, uint32_t i)
{
    const struct hop *hop = (const struct hop *)items + i;

    return ((uint64_t)(uint32_t)hop->owner << 24 | (uint64_t)(uint32_t)hop->sub) * HOPS +
           (uint64_t)hop->kind;
}

/* ---- Links ----------------------------------------------------------------------------------- */

/* Returns how many uplinks of a switch, from `sub` on, a link stands for. */
static int ways_of(const struct machine *machine, const struct hop *hop)
{
    bool core = hop->kind == HOP_UPLINK || hop->kind == HOP_DOWNLINK;

    return core && machine->routes == ROUTES_ADAPTIVE ? machine->spines : 1;
}

/* True if a fault is of one of so many parts of a link, from `first` on. */
static bool is_of(const struct hop *fault, const struct hop *hop, int first, int parts)
{
    return fault->kind == hop->kind && fault->owner == hop->owner &&
           (fault->sub < 0 || (fault->sub >= first && fault->sub - first < parts));
}

/* Returns what is left of a link's bandwidth: of uplinks that are used as one, the mean. The last
 * fault of those that name the same one counts. */
static double bandwidth_of(const struct programs *programs, const struct hop *hop)
{
    double bandwidth = route_bandwidth(&programs->machine, hop), sum = 0;
    int ways = ways_of(&programs->machine, hop);

    for (int way = 0; way < ways && programs->fault_count; way++) {
        double factor = 1;

        for (int i = 0; i < programs->fault_count; i++)
            if (is_of(&programs->faults[i].hop, hop, hop->sub + way, 1))
                factor = programs->faults[i].factor;
        sum += factor;
    }
    return programs->fault_count ? bandwidth * sum / ways : bandwidth;
}

bool programs_pass(const struct programs *programs, const struct hop *fault)
{
    bool passed = false;

    for (uint32_t i = 0; i < programs->share.link_count && !passed; i++) {
        const struct hop *hop = &programs->hops[i];

        passed = is_of(fault, hop, hop->sub, ways_of(&programs->machine, hop));
    }
    return passed;
}

/* The link that stands for this one and its images; -1 without memory. */
static int32_t find_link(struct programs *programs, const struct hop *hop)
{
    struct share *share = &programs->share;
    uint64_t key = hop_key(hop, 0);
    uint32_t at;

    if (share->link_count * 2 >= programs->hop_table_size &&
        !widen(&programs->hop_table, &programs->hop_table_size, share->link_count, programs->hops,
               hop_key))
        return -1;
    at = place_of(key, programs->hop_table_size);
    while (programs->hop_table[at] >= 0) {
        if (hop_key(programs->hops, (uint32_t)programs->hop_table[at]) == key)
            return programs->hop_table[at];
        at = (at + 1) & (programs->hop_table_size - 1);
    }
    if (!list_grow((void **)&programs->hops, &programs->hop_room, share->link_count + 1,
                   sizeof(*programs->hops)))
        return -1;
    programs->hops[share->link_count] = *hop;
    programs->hop_table[at] = share_add_link(share, bandwidth_of(programs, hop));
    return programs->hop_table[at];
}

static bool add_hop(struct programs *programs, int32_t flow, struct hop hop)
{
    const struct fold *fold = &programs->fold;
    int unit = route_unit(&programs->machine, hop.kind), period = fold->period;
    double weight = 1;
    int32_t link;

    if (period < fold->ranks) {
        /* Of the images of a link the first one stays. With owners larger than a period each flow
         * stands for as many as its owner has kinds side by side. */
        if (unit >= period) {
            hop.owner = 0;
            weight = (double)(unit < fold->ranks ? unit : fold->ranks) / period;
        } else
            hop.owner %= period / unit;
    }
    link = find_link(programs, &hop);
    return link >= 0 && share_add_hop(&programs->share, flow, link, weight);
}

static bool add_route(struct programs *programs, struct wire *wire)
{
    struct route *route = programs->route;

    route_find(&programs->machine, programs->fold.ranks, wire->from, wire->to, route);
    wire->direct = route->direct || wire->access;
    wire->latency = route->latency;
    wire->flow = -1;
    if (!route->count)
        return true;
    wire->flow = share_add_flow(&programs->share);
    for (int i = 0; wire->flow >= 0 && i < route->count; i++)
        if (!add_hop(programs, wire->flow, route->hops[i]))
            return false;
    return wire->flow >= 0;
}

/* The wire from one rank to another, or the one that stands for it; -1 without memory. `kind` is a
 * channel or more (READS). */
static int32_t find_wire(struct programs *programs, int from, int to, int kind)
{
    const struct fold *fold = &programs->fold;
    int first = fold_kind(fold, from), last = fold_move(fold, to, from);
    uint64_t key =
        ((uint64_t)first * (uint64_t)fold->ranks + (uint64_t)last) * KINDS + (unsigned)kind;
    struct wire *wire;
    uint32_t at;

    if (programs->wire_count * 2 >= programs->table_size &&
        !widen(&programs->table, &programs->table_size, programs->wire_count, programs->wires,
               wire_key))
        return -1;
    at = place_of(key, programs->table_size);
    while (programs->table[at] >= 0) {
        if (programs->wires[programs->table[at]].key == key)
            return programs->table[at];
        at = (at + 1) & (programs->table_size - 1);
    }
    if (!list_grow((void **)&programs->wires, &programs->wire_room, programs->wire_count + 1,
                   sizeof(*programs->wires)))
        return -1;
    wire = &programs->wires[programs->wire_count];
    *wire = (struct wire){.from = first, .to = last, .key = key, .access = kind >= READS};
    if (!add_route(programs, wire))
        return -1;
    programs->table[at] = (int32_t)programs->wire_count;
    return (int32_t)programs->wire_count++;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static void append(struct compiler *compiler, struct op op)
{
    struct programs *programs = compiler->programs;

    if (op.link < 0 || !list_grow((void **)&programs->ops, &programs->op_room,
                                  programs->op_count + 1, sizeof(op))) {
        compiler->out_of_memory = true;
        return;
    }
    programs->ops[programs->op_count++] = op;
}

/* The wire over which a move takes or brings an operand; -2: it is this rank's own memory, or a
 * slot that has come. */
static int32_t wire_of(struct compiler *compiler, const struct plan_operand *operand, bool source)
{
    struct programs *programs = compiler->programs;
    int rank = compiler->rank;

    if (operand->buffer == PLAN_SLOT)
        return source ? -2 : find_wire(programs, rank, operand->rank, operand->channel);
    if (operand->rank == rank)
        return -2;
    return source ? find_wire(programs, operand->rank, rank, READS + compiler->number)
                  : find_wire(programs, rank, operand->rank, WRITES + compiler->number);
}

static void read_move(struct compiler *compiler, const struct plan *plan,
                      const struct plan_step *step)
{
    struct op move = {.kind = OP_MOVE};
    double beyond_first = 0.5 * step->atoms * (step->destinations - 1);

    for (int i = 0; i < step->sources + step->destinations; i++) {
        int32_t wire = wire_of(compiler, &plan_sources(plan, step)[i], i < step->sources);

        if (wire == -2)
            continue;
        append(compiler, (struct op){.kind = OP_FILL, .link = wire, .copied = (float)step->atoms});
        move.link++;
    }
    move.copied = (float)((step->verb == PLAN_COPY ? step->atoms : 0) + beyond_first);
    move.reduced = (float)(step->verb == PLAN_REDUCE ? (double)step->atoms * step->sources : 0);
    append(compiler, move);
}

static void begin_program(struct compiler *compiler, int number)
{
    struct programs *programs = compiler->programs;

    if (!list_grow((void **)&programs->tracks, &programs->track_room, programs->track_count + 1,
                   sizeof(*programs->tracks))) {
        compiler->out_of_memory = true;
        return;
    }
    programs->tracks[programs->track_count++] =
        (struct track){programs->op_count, programs->op_count, compiler->rank, number};
    compiler->number = number;
}

static void read_step(struct plan_reader *reader, const struct plan *plan,
                      const struct plan_step *step)
{
    struct compiler *compiler = (struct compiler *)reader;
    struct programs *programs = compiler->programs;
    bool sends = (step->verb == PLAN_SIGNAL) == (step->event == PLAN_DATA);
    static const uint8_t kinds[2][2] = {{OP_SEND, OP_RELEASE}, {OP_AWAIT, OP_ACQUIRE}};
    uint8_t kind = step->flags & PLAN_SETTLED
                       ? OP_SETTLE
                       : kinds[step->verb == PLAN_WAIT][step->event == PLAN_CREDIT];
    int rank = compiler->rank;

    if (compiler->out_of_memory || programs->op_count > programs->steps_most)
        return;
    if (compiler->number != plan->programs - 1)
        begin_program(compiler, plan->programs - 1);
    if (step->verb == PLAN_COPY || step->verb == PLAN_REDUCE)
        read_move(compiler, plan, step);
    else
        append(compiler, (struct op){.kind = kind,
                                     .link = find_wire(programs, sends ? rank : step->peer,
                                                       sends ? step->peer : rank, step->channel)});
    if (programs->track_count)
        programs->tracks[programs->track_count - 1].end = programs->op_count;
}

static rondo_result compile(const struct simulate_plans *plans, struct programs *programs)
{
    struct compiler compiler = {.reader = {read_step}, .programs = programs};
    rondo_result result = RONDO_OK;

    for (int rank = 0; rank < programs->fold.period && !result; rank++) {
        struct plan *shape = NULL;

        compiler.rank = rank;
        compiler.number = -1;
        result = plans->read(plans, rank, &compiler.reader, &shape);
        if (result)
            return result;
        programs->parts = shape->parts;
        programs->message_atoms = shape->message_atoms;
        plan_close(shape);
        if (compiler.out_of_memory)
            result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for the plans of %d ranks.",
                                plans->ranks);
        else if (programs->op_count > programs->steps_most)
            result = rondo_fail(
                RONDO_ERROR_UNSUPPORTED,
                "The plans of %d ranks have too many steps to simulate each (rank %d is reached "
                "after %u). Take a number of ranks that fills whole hosts and switches, so that "
                "ranks which do the same are simulated once, or an algorithm with fewer steps.",
                plans->ranks, rank, programs->op_count);
    }
    return result;
}

rondo_result programs_open(const struct simulate_plans *plans, const struct simulate_setup *setup,
                           struct programs **ret_programs)
{
    struct programs *programs = calloc(1, sizeof(*programs));
    rondo_result result = machine_check(&setup->machine, plans->ranks);

    if (programs)
        programs->route = malloc(sizeof(*programs->route));
    if (!result && (!programs || !programs->route))
        result = rondo_fail(RONDO_ERROR_MEMORY, "Out of memory for a simulation.");
    if (result)
        goto fail;
    programs->machine = setup->machine;
    programs->faults = setup->faults;
    programs->fault_count = setup->fault_count;
    programs->steps_most = setup->steps_most ? setup->steps_most : OPS_MAX;
    programs->fold = (struct fold){.ranks = plans->ranks, .period = plans->ranks};
    share_open(&programs->share);
    if (setup->folds && !setup->fault_count)
        result = fold_find(plans, &setup->machine, &programs->fold);
    if (!result)
        result = compile(plans, programs);
    if (result)
        goto fail;
    *ret_programs = programs;
    return RONDO_OK;
fail:
    programs_close(programs);
    return result;
}

void programs_close(struct programs *programs)
{
    if (!programs)
        return;
    free(programs->ops);
    free(programs->tracks);
    free(programs->wires);
    free(programs->table);
    free(programs->hops);
    free(programs->hop_table);
    free(programs->route);
    share_close(&programs->share);
    free(programs);
}
