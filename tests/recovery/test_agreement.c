/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_agreement.c - agreements among ranks that are simulated: any order of looks, ranks that end
 * between any two of them or before they show what they did, votes that are seen late, suspicions
 * that are wrong, and ranks of different hosts, who see what they are told, while some pairs of
 * them can.
 */
#include "comm/recovery/agreement.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 17, NUMBERS = 4, STEPS = 400000 };

/* Sanitizers make a trial eight times as long, and see in few what is wrong in memory or
 * arithmetic; the build without them makes all. */
#ifdef __SANITIZE_ADDRESS__
enum { TRIALS = 1000 };
#else
enum { TRIALS = 30000 };
#endif

struct trial {
    int size, deaths_left, wrong_left;
    uint64_t random;
    struct agreement ranks[RANKS];
    struct vote seen[RANKS][RANKS]; /* [by][of] */
    struct vote shown[RANKS];
    bool far;                       /* ranks see only what they are told */
    struct vote told[RANKS][RANKS]; /* [to][by] */
    bool answered[RANKS][RANKS];    /* [by][to], in the agreement that `by` is in */
    bool cut[RANKS][RANKS];
    int cuts_left, hit; /* who is cut off; -1: pairs of ranks are */
    uint64_t cut_from;
    bool dead[RANKS], out[RANKS];
    uint64_t flags[NUMBERS + 1][RANKS];
    bool decided[NUMBERS + 1][RANKS];
    struct verdict verdicts[NUMBERS + 1][RANKS];
};

static unsigned draw(struct trial *trial, unsigned below)
{
    trial->random = trial->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(trial->random >> 33) % below;
}

static void begin(struct trial *trial, int rank)
{
    uint64_t number = trial->ranks[rank].own.number + 1;

    trial->flags[number][rank] = ~(1ull << draw(trial, 64)) & ~(1ull << draw(trial, 64));
    agreement_begin(&trial->ranks[rank], 1, trial->flags[number][rank]);
    memset(trial->answered[rank], 0, sizeof(trial->answered[rank]));
}

/* ---- Ranks of different hosts ---------------------------------------------------------------- */

/* Ranks tell others of their votes as in comm/recovery/agree.c. */
static bool is_told(const struct trial *trial, int rank, int other)
{
    const struct agreement *agreement = &trial->ranks[rank];

    return agreement_leads(agreement) || agreement_lowest(agreement) == other ||
           agreement_asks(agreement, other) ||
           agreement->others[other].number == agreement->own.number ||
           (agreement->own.promised - 1) % (uint64_t)trial->size == (uint64_t)other ||
           agreement->own.decided == agreement->own.number;
}

static void tell(struct trial *trial, int rank, bool all)
{
    const struct agreement *agreement = &trial->ranks[rank];

    for (int other = 0; other < trial->size; other++) {
        bool fresh = agreement->others[other].number == agreement->own.number &&
                     !trial->answered[rank][other];

        if (other == rank || trial->cut[rank][other] || !(all || fresh) ||
            !is_told(trial, rank, other))
            continue;
        trial->told[other][rank] = agreement->own;
        trial->answered[rank][other] = true;
    }
}

static void cut(struct trial *trial, int one, int other)
{
    trial->cut[one][other] = trial->cut[other][one] = one != other;
}

/* A rank is cut off from some others at once, or a pair of ranks from each other. */
static void strike(struct trial *trial)
{
    if (!trial->cuts_left || draw(trial, 40))
        return;
    trial->cuts_left--;
    if (trial->hit < 0)
        cut(trial, (int)draw(trial, (unsigned)trial->size),
            (int)draw(trial, (unsigned)trial->size));
    for (int other = 0; trial->hit >= 0 && other < trial->size; other++)
        if (trial->cut_from >> other & 1)
            cut(trial, trial->hit, other);
}

/* ---- A trial --------------------------------------------------------------------------------- */

static void start(struct trial *trial, int size, int deaths, int wrong, uint64_t seed)
{
    memset(trial, 0, sizeof(*trial));
    trial->size = size;
    trial->deaths_left = deaths;
    trial->wrong_left = wrong;
    trial->random = seed * 2654435761u + 17;
    for (int rank = 0; rank < size; rank++) {
        trial->ranks[rank] =
            (struct agreement){.size = size, .rank = rank, .others = trial->seen[rank]};
        begin(trial, rank);
    }
}

static void see(struct trial *trial, int rank, int other)
{
    trial->seen[rank][other] = trial->far ? trial->told[rank][other] : trial->shown[other];
}

/* A host knows whose process has ended; others only know that the connection has. */
static void lose(struct trial *trial, int rank, int other)
{
    if (trial->far)
        agreement_lose(&trial->ranks[rank], other);
    else
        agreement_suspect(&trial->ranks[rank], other);
}

/* The rank looks at some votes, and suspects some of those whom it waits for. */
static void look(struct trial *trial, int rank)
{
    struct agreement *agreement = &trial->ranks[rank];
    bool notices = !draw(trial, 4); /* those that it has lost, all of them */

    for (int other = 0; other < trial->size; other++) {
        bool gone = trial->dead[other] || trial->out[other];

        if (other == rank)
            continue;
        if (draw(trial, 3))
            see(trial, rank, other);
        if (!agreement_awaits(agreement, other))
            continue;
        if (gone && !draw(trial, 4)) {
            see(trial, rank, other); /* its last vote comes first */
            lose(trial, rank, other);
        } else if (!gone && trial->cut[rank][other] && notices) {
            see(trial, rank, other);
            agreement_lose(agreement, other);
        } else if (!gone && trial->wrong_left && !draw(trial, 12)) {
            trial->wrong_left--;
            agreement_suspect(agreement, other);
        }
    }
}

static bool dies(struct trial *trial, int rank)
{
    if (!trial->deaths_left || draw(trial, 60))
        return false;
    trial->deaths_left--;
    trial->dead[rank] = true;
    return true;
}

static void step(struct trial *trial, int rank)
{
    struct agreement *agreement = &trial->ranks[rank];
    uint64_t number = agreement->own.number;
    enum agreement_state state;

    look(trial, rank);
    state = agreement_step(agreement);
    if (dies(trial, rank))
        return; /* nobody has seen it */
    tell(trial, rank, agreement->changed);
    if (agreement->changed)
        trial->shown[rank] = agreement->own;
    agreement->changed = false;
    trial->out[rank] = state == AGREEMENT_OUT;
    if (state != AGREEMENT_DECIDED || dies(trial, rank))
        return;
    trial->decided[number][rank] = true;
    trial->verdicts[number][rank] = agreement->own.verdict;
    if (number < NUMBERS)
        begin(trial, rank);
}

static bool is_at_work(const struct trial *trial, int rank)
{
    return !trial->dead[rank] && !trial->out[rank] && !trial->decided[NUMBERS][rank];
}

/* Runs until every rank has ended; false: some never do. */
static bool run(struct trial *trial)
{
    for (int i = 0; i < STEPS; i++) {
        int first = (int)draw(trial, (unsigned)trial->size), rank = -1;

        for (int k = 0; k < trial->size && rank < 0; k++)
            if (is_at_work(trial, (first + k) % trial->size))
                rank = (first + k) % trial->size;
        if (rank < 0)
            return true;
        strike(trial);
        step(trial, rank);
    }
    return false;
}

/* True if the two do not go on with each other, in the end. */
static bool have_parted(const struct trial *trial, int a, int b)
{
    return trial->dead[a] || trial->dead[b] || trial->out[a] || trial->out[b] ||
           set_has(trial->verdicts[NUMBERS][a].failed, b) ||
           set_has(trial->verdicts[NUMBERS][b].failed, a);
}

/* Two that differ hold each other's for failed: at once, or in the agreement that is next, if the
 * suspicion came when one had a proposal already and not the other. */
static const char *differ(const struct trial *trial, int number, int a, int b, bool exact)
{
    const struct verdict *one = &trial->verdicts[number][a], *other = &trial->verdicts[number][b];

    if (!trial->decided[number][a] || !trial->decided[number][b] ||
        memcmp(one, other, sizeof(*one)) == 0 || set_has(one->failed, b) ||
        set_has(other->failed, a))
        return NULL;
    return exact || !have_parted(trial, a, b) ? "two verdicts differ" : NULL;
}

/* True if there is a rank that this one cannot talk to. */
static bool is_cut(const struct trial *trial, int rank)
{
    bool any = false;

    for (int other = 0; other < trial->size; other++)
        any |= trial->cut[rank][other];
    return any;
}

/* Every rank that is left had its say, and nobody else; a rank that lives is left. */
static const char *judge(const struct trial *trial, int number, int rank, bool exact)
{
    const struct verdict *verdict = &trial->verdicts[number][rank];
    uint64_t flags = UINT64_MAX;

    for (int other = 0; other < trial->size; other++) {
        if (!set_has(verdict->failed, other))
            flags &= trial->flags[number][other];
        else if (exact && !trial->dead[other] && !is_cut(trial, other))
            return "a rank that lives is named";
    }
    return flags == verdict->flags ? NULL : "the flags are not those of the ranks that are left";
}

/* `exact`: nobody is suspected wrongly. */
static const char *check(const struct trial *trial, bool exact)
{
    const char *wrong = NULL;
    bool all_hear = true;

    for (int rank = 0; rank < trial->size; rank++)
        all_hear &= !is_cut(trial, rank);

    for (int number = 1; number <= NUMBERS; number++)
        for (int a = 0; a < trial->size && !wrong; a++) {
            if (trial->decided[number][a])
                wrong = judge(trial, number, a, exact);
            for (int b = 0; b < a && !wrong; b++)
                wrong = differ(trial, number, a, b, exact && all_hear);
        }
    for (int rank = 0; rank < trial->size && !wrong; rank++)
        if (exact && trial->out[rank] && !is_cut(trial, rank))
            wrong = "a rank that lives is left out";
    return wrong;
}

static void try_all(int trials, unsigned deaths, unsigned wrong)
{
    struct trial *trial = calloc(1, sizeof(*trial));

    for (uint64_t seed = 1; seed <= (uint64_t)trials; seed++) {
        int size = 2 + (int)(seed % (seed % 10 ? 5 : RANKS - 1));
        const char *fault = "it does not end";

        start(trial, size, (int)(deaths ? seed % (deaths + 1) : 0), (int)wrong, seed);
        trial->far = seed % 2;
        if (run(trial))
            fault = check(trial, !wrong);
        cr_assert(!fault, "seed %llu, %d ranks: %s", (unsigned long long)seed, size, fault);
    }
    free(trial);
}

Test(agreement, all_agree_where_nobody_fails)
{
    try_all(300, 0, 0);
}

Test(agreement, those_who_are_left_agree_whoever_ends_and_when)
{
    try_all(4000, 4, 0);
}

Test(agreement, wrong_suspicions_never_split_those_who_hold_each_other_for_alive)
{
    try_all(TRIALS, 2, 3);
}

Test(agreement, pairs_that_are_cut_never_split_the_others)
{
    struct trial *trial = calloc(1, sizeof(*trial));

    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        int size = 2 + (int)(seed % (seed % 10 ? 5 : RANKS - 1));
        const char *fault = "it does not end";

        start(trial, size, (int)(seed % 3), 0, seed);
        trial->far = true;
        trial->hit = -1;
        trial->cuts_left = 1 + (int)(seed % 4);
        if (run(trial))
            fault = check(trial, true);
        cr_assert(!fault, "seed %llu, %d ranks: %s", (unsigned long long)seed, size, fault);
    }
    free(trial);
}

/* One rank is cut off from two or more others at once, but not from all: it alone is out. */
Test(agreement, a_rank_that_was_cut_off_from_most_is_out_alone)
{
    struct trial *trial = calloc(1, sizeof(*trial));

    for (uint64_t seed = 1; seed <= TRIALS; seed++) {
        int size = 4 + (int)(seed % (seed % 10 ? 5 : RANKS - 3)), others = 0, gone = 0;
        const char *fault = "it does not end";

        start(trial, size, 0, 0, seed);
        trial->far = true;
        trial->cuts_left = 1;
        trial->hit = (int)draw(trial, (unsigned)size);
        while (others < 2) {
            trial->cut_from = draw(trial, 1u << size) & ~(1u << trial->hit);
            others = __builtin_popcountll(trial->cut_from);
        }
        if (run(trial))
            fault = check(trial, true);
        for (int rank = 0; rank < size; rank++)
            gone += rank != trial->hit && trial->out[rank];
        if (!fault && gone)
            fault = "others than the one that was cut off are out";
        cr_assert(!fault, "seed %llu, %d ranks: %s", (unsigned long long)seed, size, fault);
    }
    free(trial);
}

Test(agreement, nobody_but_this_rank_is_left)
{
    struct agreement alone = {.size = 2, .rank = 1, .others = calloc(2, sizeof(struct vote))};

    agreement_begin(&alone, 1, 6);
    cr_expect(agreement_step(&alone) == AGREEMENT_WAITS && agreement_awaits(&alone, 0));
    agreement_suspect(&alone, 0);
    cr_expect(agreement_step(&alone) == AGREEMENT_DECIDED);
    cr_expect(alone.own.verdict.flags == 6 && alone.own.verdict.failed[0] == 1);
    free(alone.others);
}

Test(agreement, different_purposes_are_seen_by_all)
{
    struct trial *trial = calloc(1, sizeof(*trial));

    start(trial, 3, 0, 0, 5);
    agreement_begin(&trial->ranks[1], 2, 0);
    trial->ranks[1].own.number = 1;
    for (int rank = 0; rank < 3; rank++)
        trial->shown[rank] = trial->ranks[rank].own;
    for (int i = 0; i < 100; i++)
        if (!trial->decided[1][i % 3])
            step(trial, i % 3);
    for (int rank = 0; rank < 3; rank++)
        cr_expect(trial->verdicts[1][rank].purposes == 3, "rank %d", rank);
    free(trial);
}

Test(agreement, votes_travel_whole)
{
    enum { SIZE = 1000 };
    struct vote vote, got = {0};
    struct vote_page *mirror = calloc(1, sizeof(*mirror));
    uint64_t seen = 0;

    memset(&vote, 0xa5, sizeof(vote));
    for (int i = 0; i < vote_notes(SIZE); i++) {
        struct vote_note note = vote_note(&vote, SIZE, i);

        cr_expect(!vote_read(mirror, &seen, &got), "a part is no vote");
        cr_expect(vote_hear(mirror, SIZE, &note, sizeof(note)));
    }
    cr_expect(vote_read(mirror, &seen, &got) && got.promised == vote.promised);
    for (int rank = 0; rank < SIZE; rank++)
        cr_expect(set_has(got.suspects, rank) == set_has(vote.suspects, rank));
    cr_expect(!set_has(got.suspects, SIZE + 1), "there is no such rank");
    cr_expect(!vote_read(mirror, &seen, &got), "nothing new");
    cr_expect(!vote_hear(mirror, SIZE, "rondo at", 8), "another note");
    free(mirror);
}
