/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_tcp_tap.c - ranks that are connected through somebody who changes what they say: what comes
 * out is right, or an error. meson runs it once for each kind of security.
 */
#include "tests/patience.h"
#include "tests/transport/tcp/tcp_tap.h"

#include "base/clock.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum {
    CONTROL = 0,
    LINE = 1,         /* connections, in the order of coming: of the first data line */
    HELLO = 96,       /* bytes that a dialer says before its first record */
    ANSWER = 64 + 20, /* ... and an acceptor, with its first record */
    MESSAGES = 9,     /* one way; all of them have 400 000 bytes and more */
    TRIES = 150,
    QUIET_LOOKS = 500, /* in a row, in which nothing moved */
};
/* Seconds after which nothing is expected any more, if there were as many looks as well. */
static const double silence = 0.25;
static double patience; /* ... also if ranks still ask each other how they are */

static void begin(void)
{
    patience = world_patience(5);
    cr_assert_eq(proof_init(), RONDO_OK);
}

TestSuite(tap, .init = begin);

static unsigned draw(unsigned below)
{
    static uint64_t state = 11;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % below;
}

/* ---- A small job ----------------------------------------------------------------------------- */

struct outcome {
    int right, wrong, notes; /* messages that came, and notes */
    bool wrong_note;
    rondo_result result; /* the first error of any rank */
    char sentence[FAIL_SENTENCE_MAX];
};

static const char note[] = "what RDMA adapters tell each other, such as keys of memory";

/* Notes go over the control line, messages over the first data line. Rank 0 dials. */
static void say_all(bool *noted)
{
    for (int rank = 0; rank < 2; rank++) {
        if (rank == 1 && node_tcp(1)->peers[0]->state != TCP_UP)
            break;
        if (!noted[rank])
            nodes[rank].network->ops->note(nodes[rank].network, 1 - rank, note, sizeof(note));
        noted[rank] = true;
        if (nodes[rank].out[1 - rank].sent < MESSAGES)
            node_send(rank, 1 - rank, 0);
        nodes[rank].network->ops->watch(nodes[rank].network, 1 - rank);
    }
}

static void hear_all(struct outcome *outcome)
{
    for (int rank = 0; rank < 2; rank++) {
        int got = node_receive(rank, 1 - rank, 0);

        outcome->right += got > 0;
        outcome->wrong += got < 0;
    }
}

static void judge_notes(struct outcome *outcome)
{
    for (int rank = 0; rank < 2; rank++) {
        outcome->notes += nodes[rank].notes != 0;
        outcome->wrong_note |=
            nodes[rank].notes && (nodes[rank].note_bytes != sizeof(note) ||
                                  memcmp(nodes[rank].note, note, sizeof(note)) != 0);
    }
}

static bool all_came(const struct outcome *outcome)
{
    return outcome->right + outcome->wrong == 2 * MESSAGES && nodes[0].notes && nodes[1].notes;
}

/* A flipped bit is noticed where records are sealed; it may be on its way when all have come. */
static bool is_awaited(const struct tap_plan *plan)
{
    return plan->deed == TAP_FLIP && tap_done() &&
           (plan->connection == CONTROL || nodes_security() != SEAL_NONE);
}

/* Ranks 0 and 1 exchange messages, and the tap does what is planned. Nodes and tap stay open. */
static struct outcome job(const struct tap_plan *plan)
{
    struct outcome outcome = {.right = 0};
    bool noted[2] = {false, false};
    double last, until = clock_seconds() + patience;
    int came = -1, quiet = 0;

    cr_assert_eq(nodes_open(), RONDO_OK, "%s", fail_sentence());
    tap_open(plan);
    last = clock_seconds();
    while ((!all_came(&outcome) || is_awaited(plan)) && !outcome.result &&
           (quiet < QUIET_LOOKS || clock_seconds() - last < silence) && clock_seconds() < until) {
        say_all(noted);
        outcome.result = nodes_progress();
        snprintf(outcome.sentence, sizeof(outcome.sentence), "%s", fail_sentence());
        hear_all(&outcome);
        quiet++;
        if (tap_work() || outcome.right != came) {
            last = clock_seconds();
            quiet = 0;
        }
        came = outcome.right;
    }
    judge_notes(&outcome);
    return outcome;
}

static void end_job(void)
{
    for (int rank = 0; rank < NODES; rank++) /* or closing would wait for what never arrives */
        node_tcp(rank)->broken = true;
    nodes_close();
    tap_close();
}

/* So many bytes go which way if nothing happens to them. Of several jobs the least counts: in one
 * that takes long the ranks ask each other how they are, and later jobs would not come so far. */
static size_t lengths[2][2];

static void measure_once(void)
{
    struct outcome outcome = job(&(struct tap_plan){.deed = TAP_NOTHING});

    cr_assert(all_came(&outcome) && !outcome.wrong && !outcome.wrong_note && !outcome.result, "%s",
              outcome.sentence);
    for (int connection = 0; connection < 2; connection++)
        for (int back = 0; back < 2; back++)
            if (tap_carried(connection, back) < lengths[connection][back])
                lengths[connection][back] = tap_carried(connection, back);
    end_job();
}

static void measure(void)
{
    enum { JOBS = 5 };

    memset(lengths, 0xff, sizeof(lengths));
    for (int i = 0; i < JOBS; i++)
        measure_once();
}

/* Somewhere in that connection, behind the handshake or in it, too. */
static struct tap_plan draw_plan(enum tap_deed deed, int connection, bool in_records)
{
    struct tap_plan plan = {.deed = deed, .connection = connection, .back = draw(2)};
    size_t least = !in_records ? 0 : plan.back ? ANSWER : HELLO;
    size_t most = lengths[connection][plan.back];

    if (draw(3) == 0 && most > least + 400)
        most = least + 400; /* the first messages are short: half of their bytes are frames */
    plan.length = deed == TAP_FLIP ? draw(8) : 1 + draw(draw(2) ? 8 : 300);
    cr_assert_gt(most, least);
    plan.at = least + draw((unsigned)(most - least));
    return plan;
}

static const char *words(const struct tap_plan *plan)
{
    static char text[160];

    snprintf(text, sizeof(text), "deed %d, connection %d, %s, behind %zu bytes, length %u",
             plan->deed, plan->connection, plan->back ? "back" : "there", plan->at, plan->length);
    return text;
}

/* ---- What is promised ------------------------------------------------------------------------ */

/* Whatever happens to them: never a wrong message or note, and if all came there was no harm. */
Test(tap, that_changes_bytes_anywhere_makes_no_result_wrong)
{
    int errors = 0, done = 0;
    bool sealed = nodes_security() != SEAL_NONE;

    measure();
    patience = world_patience(0.5); /* a job that ends too early has nothing wrong */
    for (int i = 0; i < TRIES; i++) {
        /* Without security for data, control is all that can be promised. */
        int connection = sealed ? (int)draw(2) : CONTROL;
        struct tap_plan plan = draw_plan(1 + draw(TAP_DEEDS - 1), connection, draw(4) != 0);
        struct outcome outcome = job(&plan);

        cr_expect_eq(outcome.wrong, 0, "%s", words(&plan));
        cr_expect_not(outcome.wrong_note, "%s", words(&plan));
        errors += outcome.result != RONDO_OK;
        done += tap_done();
        end_job();
    }
    cr_expect_gt(done, TRIES / 4); /* on a slow machine many jobs end before the deed */
    cr_expect_gt(errors, TRIES / 8);
}

/* The error names whom it comes from, by which address, and what to look at. */
static void expect_blame(const struct outcome *outcome, const struct tap_plan *plan)
{
    int from = plan->back ? 1 : 0;
    char who[64];

    cr_expect_eq(outcome->result, RONDO_ERROR_AUTH, "%s: %d", words(plan), outcome->result);
    snprintf(who, sizeof(who), "came to rank %d from rank %d (tcp, 127.0.0.1:", 1 - from, from);
    cr_expect(strstr(outcome->sentence, who), "'%s', %s", outcome->sentence, words(plan));
    cr_expect(strstr(outcome->sentence, "what lies between"), "%s", outcome->sentence);
    cr_expect_eq(nodes[1 - from].network->culprit, from);
}

static void expect_flips_are_noticed(int connection)
{
    int done = 0;

    for (int i = 0; i < TRIES / 3; i++) {
        struct tap_plan plan = draw_plan(TAP_FLIP, connection, true);
        struct outcome outcome = job(&plan);

        if (tap_done()) /* before the last message came */
            expect_blame(&outcome, &plan);
        done += tap_done();
        end_job();
    }
    cr_expect_gt(done, TRIES / 6);
}

Test(tap, that_flips_a_bit_of_control_is_noticed_under_any_security)
{
    measure();
    expect_flips_are_noticed(CONTROL);
}

Test(tap, that_flips_a_bit_of_data_is_noticed_if_that_was_asked_for)
{
    int wrong = 0;

    measure();
    if (nodes_security() != SEAL_NONE) {
        expect_flips_are_noticed(LINE);
        return;
    }
    for (int i = 0; i < TRIES / 3; i++) { /* what "none" means, and that the tap works */
        struct tap_plan plan = draw_plan(TAP_FLIP, LINE, true);

        wrong += job(&plan).wrong;
        end_job();
    }
    cr_expect_gt(wrong, TRIES / 6);
}

/* Every one of them is right by itself, and so is its tag. */
Test(tap, that_drops_or_repeats_whole_records_is_noticed)
{
    const unsigned whole = sizeof(struct tcp_frame) + SEAL_TAG + sizeof(note) + SEAL_TAG;
    const enum tap_deed deeds[] = {TAP_DROP, TAP_REPEAT};

    for (int i = 0; i < 2; i++) {
        const struct tap_plan plan = {
            .deed = deeds[i], .connection = CONTROL, .at = HELLO, .length = whole};
        struct outcome outcome = job(&plan);

        cr_assert(tap_done());
        expect_blame(&outcome, &plan);
        end_job();
    }
}

/* The other rank hears of it, though that is not where it was seen. */
Test(tap, that_is_noticed_by_one_rank_is_told_to_the_other)
{
    struct tap_plan plan = {.deed = TAP_FLIP, .connection = CONTROL};
    struct network_failure failure = {.culprit = 0};
    struct outcome outcome;
    double until = clock_seconds() + world_patience(30);

    plan.at = HELLO + 20;
    outcome = job(&plan);
    cr_assert_eq(outcome.result, RONDO_ERROR_AUTH, "%d", outcome.result);
    failure.result = outcome.result;
    failure.sentence = outcome.sentence;
    nodes[1].network->ops->tell(nodes[1].network, &failure);
    while (nodes[0].failed_from < 0 && clock_seconds() < until) {
        tap_work();
        nodes_progress();
    }
    cr_expect_eq(nodes[0].failed_from, 1);
    cr_expect_eq(nodes[0].failure.result, RONDO_ERROR_AUTH);
    cr_expect_str_eq(nodes[0].sentence, outcome.sentence);
    end_job();
}

/* Messages carry a pattern without end: see byte_of() in traffic.c. */
Test(tap, that_only_listens_learns_payloads_and_frames_unless_they_are_secret)
{
    const struct link_out *out;
    struct outcome outcome = job(&(struct tap_plan){.deed = TAP_NOTHING});
    bool secret = nodes_security() == SEAL_SECRET;
    int seen = 0, looked = 0;

    cr_assert(all_came(&outcome), "%s", outcome.sentence);
    out = &nodes[0].out[1];
    for (uint32_t slot = 0; slot < out->slot_count; slot++) {
        const char *payload = out->slots + slot * out->stride + offsetof(struct link_slot, payload);

        for (size_t at = 0; at + 16 <= 3000; at += 251, looked++)
            seen += tap_saw((const unsigned char *)payload + at);
    }
    cr_expect_gt(looked, 20);
    if (secret)
        cr_expect_eq(seen, 0);
    else
        cr_expect_gt(seen, looked / 2);
    cr_expect_eq(tap_saw((const unsigned char *)traffic_calls[0].header), !secret, "of frames");
    cr_expect_eq(tap_saw((const unsigned char *)note), !secret);
    end_job();
}

/* Whoever makes ranks believe different things finds no keys that fit: rank 1 welcomes rank 0 and
 * sends to it, but rank 0 cannot open what it hears, and hangs up. */
Test(tap, cannot_talk_two_ranks_into_different_security)
{
    struct tap_plan nothing = {.deed = TAP_NOTHING};
    struct outcome outcome = {.right = 0};
    bool noted[2] = {false, false};

    cr_assert_eq(nodes_open(), RONDO_OK);
    tap_open(&nothing);
    node_tcp(0)->security = nodes_security() == SEAL_SECRET ? SEAL_AUTHENTIC : SEAL_SECRET;
    while (!all_came(&outcome) && !outcome.result) {
        say_all(noted);
        outcome.result = nodes_progress();
        hear_all(&outcome);
        tap_work();
    }
    judge_notes(&outcome);
    cr_expect(noted[0] && noted[1], "both have spoken");
    cr_expect_eq(outcome.right + outcome.wrong + outcome.notes, 0);
    cr_expect_eq(outcome.result, RONDO_ERROR_PEER, "rank 1 has lost rank 0: %d", outcome.result);
    end_job();
}
