/* SPDX-License-Identifier: BSD-3-Clause */
/* test_exec.c - the executor on small hand-made plans:
 * segments, pieces, relays, fallbacks, mismatches. */
#include "base/fail.h"
#include "exec_world.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* ---- Segments and counts --------------------------------------------------------------------- */

Test(exec, relays_are_right_for_counts_around_every_boundary)
{
    enum { PARTS = 7, SLOT = 1024 };
    const size_t segment =
        SLOT / 4 / PARTS / 16 * 16 * PARTS; /* elements; atoms are whole cache lines */

    for (size_t count = 0; count < 20; count++) {
        const char *wrong = trial_check_relay(count, PARTS, SLOT, 0);

        cr_assert(!wrong, "%zu elements: %s", count, wrong);
    }
    for (size_t segments = 1; segments < 4; segments++)
        for (int off = -PARTS; off <= PARTS; off++) {
            size_t count = (size_t)((long)(segments * segment) + off);
            const char *wrong = trial_check_relay(count, PARTS, SLOT, 0);

            cr_assert(!wrong, "%zu elements: %s", count, wrong);
        }
}

Test(exec, relays_are_right_whatever_the_number_of_parts)
{
    for (unsigned parts = 2; parts < 40; parts += 3) {
        const char *wrong = trial_check_relay(1001, parts, 320, 0);

        cr_assert(!wrong, "%u parts: %s", parts, wrong);
    }
}

Test(exec, several_programs_walk_through_the_segments_on_their_own)
{
    static const size_t counts[] = {0, 1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 1000, 5000};

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        const char *wrong = trial_check_two_programs(counts[i], 256, 0);

        cr_assert(!wrong, "%zu elements: %s", counts[i], wrong);
    }
}

Test(exec, counters_and_slot_numbers_may_wrap_around)
{
    for (uint32_t before = 0; before < 12; before++) {
        const char *wrong = trial_check_relay(2000, 5, 256, UINT32_MAX - before);

        cr_assert(!wrong, "%u messages before: %s", before, wrong);
        wrong = trial_check_two_programs(1000, 256, UINT32_MAX - before);
        cr_assert(!wrong, "%u messages before: %s", before, wrong);
    }
}

Test(exec, flags_of_short_messages_are_cleared_before_their_numbers_come_again)
{
    const int lines = sizeof(struct link_ll) / sizeof(struct link_line);

    cr_expect(trial_count_stale(1) == lines, "cleared without need");
    for (uint32_t round = 1; round <= 4; round++) {
        int left = trial_count_stale(round * LINK_SWEEP - 5);

        cr_expect(left == 0, "%d old flags are left after %u sweeps' worth of messages", left,
                  round);
    }
}

Test(exec, messages_under_way_survive_a_sweep)
{
    for (uint32_t before = 0; before < 12; before++) {
        const size_t counts[] = {10, 200, 2000}; /* inlined, packets, slots */

        for (int i = 0; i < 3; i++) {
            const char *wrong = trial_check_relay(counts[i], 5, 256, LINK_SWEEP - before);

            cr_expect(!wrong, "%zu elements, %u messages before: %s", counts[i], before, wrong);
        }
    }
}

Test(exec, short_messages_go_in_parts_of_slots)
{
    const size_t longest = 2 * LINK_PART;

    for (uint32_t before = 0; before < 12; before++)
        for (size_t count = 150; count <= longest / 4; count += 379) {
            const char *wrong = trial_check_relay(count, 5, longest, LINK_SWEEP - before);

            cr_assert(!wrong, "%zu elements, %u messages before: %s", count, before, wrong);
            wrong = trial_check_two_programs(count, longest, UINT32_MAX - before);
            cr_assert(!wrong, "%zu elements, %u messages before: %s", count, before, wrong);
        }
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static struct plan *empty_plan(unsigned parts, unsigned message_atoms, unsigned scratch)
{
    struct plan *plan = NULL;

    cr_assert(plan_open(RONDO_BROADCAST, "trial", 2, 0, 0, &plan) == RONDO_OK);
    plan_shape(plan, parts, message_atoms, scratch);
    return plan;
}

Test(exec, a_message_takes_as_many_lines_as_its_bytes_need_up_to_ten)
{
    struct plan *plan = empty_plan(1, 1, 0);
    struct exec_shape shape;

    cr_assert(exec_shape_plan(plan, 56, 1, 1024, &shape) == RONDO_OK);
    cr_expect(shape.lines == 1 && shape.segment == 56);
    cr_assert(exec_shape_plan(plan, 57, 1, 1024, &shape) == RONDO_OK);
    cr_expect(shape.lines == 2);
    cr_assert(exec_shape_plan(plan, 560, 1, 1024, &shape) == RONDO_OK);
    cr_expect(shape.lines == 10);
    cr_assert(exec_shape_plan(plan, 561, 1, 1024, &shape) == RONDO_OK);
    cr_expect(shape.lines == 0);
    cr_assert(exec_shape_plan(plan, 7, 8, 1024, &shape) == RONDO_OK);
    cr_expect(shape.lines == 1);
    cr_assert(exec_shape_plan(plan, 0, 8, 1024, &shape) == RONDO_OK);
    cr_expect(shape.lines == 1 && shape.segment == 0);
    plan_close(plan);
}

Test(exec, a_message_that_is_read_where_it_is_is_read_in_pieces)
{
    const size_t most = (64 << 20) / 8;
    struct plan *plan = NULL;
    struct exec_shape shape;

    cr_assert(plan_open(RONDO_RECV, "trial", 2, 0, 1, &plan) == RONDO_OK);
    plan_shape(plan, 1, 0, 0);
    cr_assert(exec_shape_plan(plan, most, 8, 1024, &shape) == RONDO_OK && shape.segment == most);
    cr_assert(exec_shape_plan(plan, most + 1, 8, 1024, &shape) == RONDO_OK);
    cr_expect(shape.segment == most);
    plan_close(plan);
}

Test(exec, messages_are_parted_if_they_fit_into_parts_and_parts_into_slots)
{
    struct plan *plan = empty_plan(1, 1, 0);
    const struct {
        size_t bytes, slot;
        uint32_t parts;
        bool parted;
    } cases[] = {{560, 4 * LINK_PART, 4, false},      {561, 4 * LINK_PART, 4, true},
                 {LINK_PART, 4 * LINK_PART, 4, true}, {LINK_PART + 1, 4 * LINK_PART, 4, false},
                 {561, 4 * LINK_PART - 1, 4, false},  {561, 4 * LINK_PART, 1, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct exec_shape shape;

        cr_assert(exec_shape_plan(plan, cases[i].bytes, 1, cases[i].slot, &shape) == RONDO_OK);
        exec_shape_in_parts(&shape, cases[i].slot, cases[i].parts);
        cr_expect(shape.parted == cases[i].parted, "case %zu", i);
        cr_expect(!shape.parted || (shape.lines == 1 && shape.last_place == cases[i].parts - 1 &&
                                    shape.place == LINK_PART));
    }
    plan_close(plan);
}

Test(exec, no_message_is_longer_than_a_slot_and_segments_cover_the_count)
{
    static const size_t elements[] = {1, 2, 4, 8};

    for (unsigned parts = 1; parts < 20; parts++)
        for (unsigned atoms = 1; atoms <= parts; atoms++)
            for (int e = 0; e < 4; e++)
                for (size_t slot = 64; slot < 2000; slot += 331) {
                    struct plan *plan = empty_plan(parts, atoms, 2);
                    size_t count = slot * parts / 3 + parts;
                    struct exec_shape shape;
                    rondo_result result = exec_shape_plan(plan, count, elements[e], slot, &shape);
                    size_t grains;

                    plan_close(plan);
                    if (result) {
                        cr_expect(result == RONDO_ERROR_UNSUPPORTED && slot / elements[e] < atoms);
                        continue;
                    }
                    grains = (shape.segment + shape.grain - 1) / shape.grain;
                    cr_assert((grains + parts - 1) / parts * shape.grain * atoms * elements[e] <=
                              slot);
                    cr_assert(shape.segment && shape.segment <= count);
                }
}

Test(exec, slots_too_small_for_one_element_are_refused_with_the_size_that_is_needed)
{
    struct plan *plan = empty_plan(64, 64, 0);
    struct exec_shape shape = {.count = 5};

    cr_expect(exec_shape_plan(plan, 10, 8, 511, &shape) == RONDO_ERROR_UNSUPPORTED);
    cr_expect(strstr(fail_sentence(), "512 bytes") && strstr(fail_sentence(), "RONDO_SLOT_BYTES"),
              "%s", fail_sentence());
    cr_expect(shape.count == 5, "outputs are written on success only");
    cr_expect(exec_shape_plan(plan, 10, 8, 512, &shape) == RONDO_OK);
    plan_close(plan);
}

Test(exec, huge_counts_do_not_overflow)
{
    struct plan *plan = empty_plan(3, 1, 1);
    struct exec_shape shape;

    cr_assert(exec_shape_plan(plan, SIZE_MAX / 16, 8, 1024, &shape) == RONDO_OK);
    cr_expect(shape.segment == 384 && !shape.lines);
    cr_expect(exec_scratch_bytes(plan, &shape) == 384 * 8);
    plan_close(plan);
    plan = empty_plan(3, 0, 0);
    cr_assert(exec_shape_plan(plan, SIZE_MAX / 16, 8, 1024, &shape) == RONDO_OK);
    cr_expect(shape.segment == SIZE_MAX / 16, "without payload messages one segment does");
    plan_close(plan);
}

/* ---- Pieces, scratch, averages --------------------------------------------------------------- */

/* Rank 0 sends its atoms in the order 4, 2, 0 in one message;
 * rank 1 puts them where they belong, by way of scratch. */
static void plan_pieces(struct trial *trial)
{
    struct plan *from = trial->plans[0], *to = trial->plans[1];

    plan_shape(from, 5, 3, 1);
    plan_shape(to, 5, 3, 1);
    plan_acquire(from, 1, 2);
    for (int atom = 4; atom >= 0; atom -= 2)
        plan_move(from, 1, 0, PLAN_LIST(plan_input(from, 0, atom)), PLAN_LIST(plan_slot(1, 2)));
    plan_signal(from, 1, 2, 0);
    plan_wait(to, 0, 2, 0);
    for (int atom = 4; atom >= 0; atom -= 2)
        plan_move(to, 1, 0, PLAN_LIST(plan_slot(0, 2)), PLAN_LIST(plan_scratch(to, 0, atom)));
    plan_release(to, 0, 2);
    for (int atom = 0; atom < 5; atom += 2)
        plan_move(to, 1, PLAN_FINISH, PLAN_LIST(plan_scratch(to, 0, atom), plan_input(to, 0, atom)),
                  PLAN_LIST(plan_output(to, 0, atom), plan_scratch(to, 0, atom)));
}

static void check_pieces(size_t count)
{
    const struct kernel_op average = {.type = RONDO_FLOAT64, .function = KERNEL_SUM, .divisor = 2};
    double *one = calloc(count + 1, 8), *other = calloc(count + 1, 8), *sum = calloc(count + 1, 8);
    size_t each = (count + 7) / 8 / 5, rest = (count + 7) / 8 % 5;
    struct trial trial;

    cr_assert(trial_open(&trial, RONDO_ALL_REDUCE, 2));
    plan_pieces(&trial);
    trial.count = count;
    trial.element = 8;
    trial.slot_bytes = 2048;
    trial.op = &average;
    for (size_t i = 0; i < count; i++) {
        one[i] = (double)(4 * i);
        other[i] = (double)(2 * i);
    }
    trial.input[0] = one;
    trial.input[1] = other;
    trial.output[0] = trial.output[1] = sum;
    cr_assert(trial_run(&trial));
    cr_assert(trial.state[0] == EXEC_DONE && trial.state[1] == EXEC_DONE);
    for (size_t atom = 0, at = 0; atom < 5; atom++)
        for (size_t n = 8 * (each + (atom < rest)); n && at < count; n--, at++)
            cr_assert(sum[at] == (atom % 2 ? 0.0 : (double)(3 * at)), "element %zu of %zu is %g",
                      at, count, sum[at]);
    trial_close(&trial);
    free(one);
    free(other);
    free(sum);
}

Test(exec, messages_of_several_pieces_are_taken_in_order_and_averages_divided_once)
{
    for (size_t count = 0; count < 200; count += 7)
        check_pieces(count);
}

/* ---- Memory of peers ------------------------------------------------------------------------- */

static char *told[TRIAL_RANKS]; /* by rank: its input as resolve() makes it */
static bool mapped, readable, reads_fail;

static void resolve(struct exec_world *world, int peer, const struct link_addresses *said,
                    const size_t bytes[2], struct exec_peer *ret_peer)
{
    *ret_peer = (struct exec_peer){0};
    if ((int)said->input != peer || said->output != 77 || !bytes[0])
        return;
    if (mapped)
        ret_peer->input = told[peer];
    else if (readable)
        ret_peer->remote_input = (uint64_t)(uintptr_t)told[peer];
}

static rondo_result read_peer(struct exec_world *world, int peer, void *to, uint64_t from,
                              size_t bytes)
{
    if (reads_fail)
        return rondo_fail(RONDO_ERROR_PEER, "rank %d can't be read", peer);
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return RONDO_OK;
}

static const struct exec_world_ops peer_ops = {.resolve = resolve, .read = read_peer};

/* Every rank tells every other, reads the left one's input,
 * says so and waits until nobody needs its own. */
static void plan_peer_reads(struct trial *trial)
{
    for (int r = 0; r < trial->size; r++) {
        struct plan *plan = trial->plans[r];
        int left = (r + trial->size - 1) % trial->size, right = (r + 1) % trial->size;

        plan_shape(plan, 1, 0, 1);
        for (int peer = 0; peer < trial->size; peer++)
            if (peer != r)
                plan_notify(plan, peer, 0, PLAN_ADDRESSES);
        for (int peer = 0; peer < trial->size; peer++)
            if (peer != r)
                plan_await(plan, peer, 0, PLAN_ADDRESSES);
        plan_move(plan, 1, 0, PLAN_LIST(plan_peer_input(left, 0, 0)),
                  PLAN_LIST(plan_output(plan, r, 0), plan_scratch(plan, 0, 0)));
        plan_notify(plan, left, 0, 0);
        plan_await(plan, right, 0, 0);
    }
}

enum { GATHERED = 100 };

static void run_peer_reads(struct trial *trial, int hidden)
{
    static int32_t input[3][GATHERED], output[3][3 * GATHERED];

    cr_assert(trial_open(trial, RONDO_ALL_GATHER, 3));
    plan_peer_reads(trial);
    memset(output, 0, sizeof(output));
    for (int r = 0; r < 3; r++) {
        for (int i = 0; i < GATHERED; i++)
            input[r][i] = 1000 * r + i;
        told[r] = (char *)input[r];
        trial->input[r] = input[r];
        trial->output[r] = output[r];
        trial->unreachable[r] = r == hidden;
    }
    if (hidden >= 0)
        told[hidden] = NULL;
    trial->count = GATHERED;
    trial->ops = &peer_ops;
    cr_assert(trial_run(trial));
    for (int r = 0; r < 3; r++)
        for (int i = 0; i < GATHERED && trial->state[r] == EXEC_DONE; i++)
            cr_assert(output[r][r * GATHERED + i] == 1000 * ((r + 2) % 3) + i);
    trial_close(trial);
}

Test(exec, memory_of_peers_is_read_where_it_is_mapped)
{
    struct trial trial;

    mapped = true;
    run_peer_reads(&trial, -1);
    for (int r = 0; r < 3; r++)
        cr_expect(trial.state[r] == EXEC_DONE);
}

Test(exec, memory_of_peers_is_read_across_where_it_is_not_mapped)
{
    struct trial trial;

    readable = true;
    run_peer_reads(&trial, -1);
    for (int r = 0; r < 3; r++)
        cr_expect(trial.state[r] == EXEC_DONE);
}

Test(exec, one_rank_that_can_not_be_reached_sends_every_rank_back_before_data_moved)
{
    struct trial trial;

    mapped = true;
    for (int hidden = 0; hidden < 3; hidden++) {
        run_peer_reads(&trial, hidden);
        for (int r = 0; r < 3; r++)
            cr_expect(trial.state[r] == EXEC_FALLBACK, "rank %d of hidden %d: %d", r, hidden,
                      trial.state[r]);
    }
}

Test(exec, a_read_that_fails_blames_the_peer)
{
    struct trial trial;

    readable = reads_fail = true;
    run_peer_reads(&trial, -1);
    for (int r = 0; r < 3; r++) {
        cr_expect(trial.state[r] == EXEC_FAILED);
        cr_expect(trial.blamed[r] == (r + 2) % 3);
    }
}

/* ---- What comes from another call ------------------------------------------------------------ */

Test(exec, a_message_of_another_call_is_noticed_and_its_sender_blamed)
{
    struct trial trial;
    int32_t values[2][10] = {{0}};

    cr_assert(trial_open(&trial, RONDO_BROADCAST, 2));
    trial_plan_relay(&trial, 2);
    trial.count = 10;
    trial.fingerprint[0] = 0xfeed;
    for (int r = 0; r < 2; r++)
        trial.input[r] = trial.output[r] = values[r];
    cr_assert(trial_run(&trial));
    cr_expect(trial.state[0] == EXEC_DONE, "two slots hold all that it sends");
    cr_expect(trial.state[1] == EXEC_MISMATCH);
    cr_expect(trial.blamed[1] == 0 && trial.foreign[1] == 0xfeed);
    trial_close(&trial);
}

/* ---- In words -------------------------------------------------------------------------------- */

Test(exec, says_at_which_step_it_is_and_when_there_is_none)
{
    struct plan *plan = empty_plan(1, 1, 0);
    struct execution x = {.plan = plan, .shape = {.count = 1, .segment = 1, .grain = 1}};
    char text[200], little[12];

    plan_await(plan, 1, 3, 0);
    exec_start(&x);
    exec_describe(&x, text, sizeof(text));
    cr_expect_str_eq(text,
                     "step 1 of 2 of trial broadcast: wait for a message from rank 1 on lane 3");
    exec_describe(&x, little, sizeof(little));
    cr_expect_str_eq(little, "step 1 of 2");
    x.programs[0].done = true;
    exec_describe(&x, text, sizeof(text));
    cr_expect_str_eq(text, "the end of trial broadcast");
    plan_close(plan);
}
