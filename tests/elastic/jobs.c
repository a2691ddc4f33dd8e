/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jobs.c - a toy training in processes that are killed and that join, by seeds.
 *
 *     jobs [--jobs N] [--seed FIRST] [--newcomers 0|1] [--verbose]
 *
 * Each sample's gradient is a few small whole numbers, and a step adds up those of the samples it
 * takes. So after some epochs each parameter has one right value, in all its bits, if every sample
 * was counted once in every epoch, whoever died when: between two announcements of gradients, in an
 * agreement, while newcomers get their state.
 */
#include <rondo/elastic.h>
#include <rondo/train.h>

#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 6, PEOPLE = 12, PARAMETERS = 3, COUNT = 90, SAMPLES = 331, EPOCHS = 3, BATCH = 4 };
enum { SENTENCE = 1024, SECONDS = 60 };
enum moment { IN_PASS, AFTER_PASS, AFTER_AGREEMENT, SETTLING, AT_ANY_TIME, MOMENTS };

struct fate {
    bool dies;
    enum moment moment;
    unsigned step, microseconds; /* at that step, or after that time in it */
    unsigned
        stumbles; /* who lives: its part of that step fails once, though it had the gradients */
};

struct person {
    pid_t pid;
    struct fate fate;
    _Atomic int steps; /* that it has seen counted */
    bool finished;
    int size, lost, joined; /* at the end; over the time */
    char sentence[SENTENCE];
};

static struct job_seen {
    struct person people[PEOPLE];
} * seen;

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* ---- A rank ---------------------------------------------------------------------------------- */

struct rank {
    struct person *me;
    rondo_elastic *job;
    rondo_ddp *ddp;
    rondo_sampler *sampler;
    float values[PARAMETERS][COUNT], moments[PARAMETERS][COUNT];
    uint64_t place[3]; /* epoch, samples of it that have counted, steps */
    bool has_stumbled;
    size_t step_takes; /* samples of the step in progress, of all ranks */
    rondo_elastic_outcome outcome;
};

static void pass_by(const struct rank *rank, enum moment moment)
{
    const struct fate *fate = &rank->me->fate;

    if (fate->dies && fate->moment == moment && rank->place[2] >= fate->step)
        raise(SIGKILL);
}

static float gradient_of(size_t sample, int parameter, int i)
{
    return (float)((sample * 7 + (size_t)parameter * 3 + (size_t)i) % 5 + 1);
}

static rondo_result divide(struct rank *rank)
{
    rondo_comm *comm = rondo_elastic_comm(rank->job);

    return rondo_sampler_divide(rank->sampler, rondo_comm_rank(comm), rondo_comm_size(comm),
                                rank->place[0], rank->place[1]);
}

/* The piece of work after a change: everybody gets what makes a rank. */
static rondo_result settle(struct rank *rank)
{
    const rondo_ddp_tensor state[] = {
        {.data = rank->moments,
         .count = sizeof(rank->moments) / sizeof(float),
         .type = RONDO_FLOAT32},
        {.data = rank->place, .count = 3, .type = RONDO_UINT64},
    };
    rondo_comm *comm = rondo_elastic_comm(rank->job);
    rondo_ddp_config config = RONDO_DDP_CONFIG_INIT;
    rondo_ddp_tensor tensors[PARAMETERS];
    const rondo_ddp_model model = {.parameters = tensors, .parameter_count = PARAMETERS};
    rondo_result result;

    config.bucket_bytes = config.first_bucket_bytes = 500;
    config.average = RONDO_DDP_SUM;
    for (int p = 0; p < PARAMETERS; p++)
        tensors[p] = (rondo_ddp_tensor){
            .name = "w", .data = rank->values[p], .count = COUNT, .type = RONDO_FLOAT32};
    if (!rondo_elastic_has_state(rank->job)) {
        rondo_ddp_close(rank->ddp);
        rank->ddp = NULL;
    }
    result = rank->ddp ? rondo_ddp_move(rank->ddp, comm)
                       : rondo_ddp_open(comm, &model, &config, &rank->ddp);
    pass_by(rank, SETTLING);
    if (!result && rank->outcome.share)
        result = rondo_ddp_share(rank->ddp, state, 2);
    return result ? result : divide(rank);
}

static rondo_result step(struct rank *rank)
{
    size_t samples[BATCH], left = SAMPLES - rank->place[1];
    size_t all = BATCH * (size_t)rondo_comm_size(rondo_elastic_comm(rank->job));
    size_t mine = rondo_sampler_next(rank->sampler, BATCH, samples);
    rondo_result result = rondo_ddp_begin(rank->ddp, 1);

    rank->step_takes = all < left ? all : left;
    for (int p = PARAMETERS - 1; p >= 0 && !result; p--) {
        float *gradient = rondo_ddp_gradient(rank->ddp, p);

        for (int i = 0; i < COUNT; i++)
            for (size_t s = 0; s < mine; s++)
                gradient[i] += gradient_of(samples[s], p, i);
        if (p == 1)
            pass_by(rank, IN_PASS);
        result = rondo_ddp_gradient_ready(rank->ddp, p);
    }
    if (!result)
        result = rondo_ddp_wait(rank->ddp);
    pass_by(rank, AFTER_PASS);
    if (!result && !rank->has_stumbled && rank->place[2] == rank->me->fate.stumbles) {
        rank->has_stumbled = true;
        return RONDO_ERROR_SYSTEM;
    }
    return result;
}

static void keep_step(struct rank *rank)
{
    for (int p = 0; p < PARAMETERS; p++) {
        const float *gradient = rondo_ddp_gradient(rank->ddp, p);

        for (int i = 0; i < COUNT; i++) {
            rank->values[p][i] += gradient[i];
            rank->moments[p][i] += 2 * gradient[i];
        }
    }
    rondo_ddp_zero_gradients(rank->ddp);
    rank->place[1] += rank->step_takes;
    rank->place[2]++;
    if (rank->place[1] == SAMPLES) {
        rank->place[0]++;
        rank->place[1] = 0;
        divide(rank);
    }
    /* Relaxed: the parent wants to know about when to start a newcomer. */
    atomic_store_explicit(&rank->me->steps, (int)rank->place[2], memory_order_relaxed);
}

/* Pieces of work until all epochs are done. */
static rondo_result train(struct rank *rank)
{
    bool settled = false;

    rank->outcome.share = 1;
    while (rank->place[0] < EPOCHS || !settled) {
        bool settles = !settled;
        rondo_result worked = settles ? settle(rank) : step(rank), result;

        if (worked)
            rondo_ddp_revoke(rank->ddp);
        result = rondo_elastic_agree(rank->job, worked == RONDO_OK, &rank->outcome);
        if (result)
            return result;
        pass_by(rank, AFTER_AGREEMENT);
        if (rank->outcome.counts && settles)
            settled = true;
        else if (rank->outcome.counts)
            keep_step(rank);
        settled = settled && !rank->outcome.changed;
        rank->me->lost += rank->outcome.lost;
        rank->me->joined += rank->outcome.joined;
        if (rank->place[0] == EPOCHS && !rank->outcome.share)
            break; /* nobody is without state, so there is nothing left to do */
    }
    return RONDO_OK;
}

static bool check(struct rank *rank)
{
    for (int p = 0; p < PARAMETERS; p++)
        for (int i = 0; i < COUNT; i++) {
            float wanted = 0;

            for (size_t s = 0; s < SAMPLES; s++)
                wanted += gradient_of(s, p, i);
            wanted *= EPOCHS;
            if (rank->values[p][i] != wanted || rank->moments[p][i] != 2 * wanted) {
                snprintf(rank->me->sentence, SENTENCE,
                         "value %d of %d is %g and its moment %g, not %g", i, p,
                         (double)rank->values[p][i], (double)rank->moments[p][i], (double)wanted);
                return false;
            }
        }
    return true;
}

static void *die_later(void *fate)
{
    usleep(((const struct fate *)fate)->microseconds);
    raise(SIGKILL);
    return NULL;
}

static int live(struct person *me)
{
    const rondo_sampler_config order = {.struct_size = sizeof(order),
                                        .samples = SAMPLES,
                                        .size = 1,
                                        .shuffle = 1,
                                        .seed = 3,
                                        .uneven = 1};
    struct rank rank = {.me = me};
    rondo_result result;
    pthread_t thread;

    alarm(SECONDS);
    result = rondo_elastic_open(NULL, NULL, &rank.job);
    if (me->fate.dies && me->fate.moment == AT_ANY_TIME)
        pthread_create(&thread, NULL, die_later, &me->fate);
    if (!result)
        result = rondo_sampler_open(&order, &rank.sampler);
    if (!result)
        result = train(&rank);
    if (result)
        snprintf(me->sentence, SENTENCE, "%s", rondo_ddp_last_error());
    else
        me->finished = check(&rank);
    if (rank.job)
        me->size = rondo_comm_size(rondo_elastic_comm(rank.job));
    rondo_ddp_close(rank.ddp);
    rondo_sampler_close(rank.sampler);
    rondo_elastic_close(rank.job);
    return me->finished ? 0 : 1;
}

/* ---- A job ----------------------------------------------------------------------------------- */

static void set_number(const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", value);
    setenv(name, text, 1);
}

static void start(int number, int size, const char *door)
{
    char address[64];
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid) {
        seen->people[number].pid = pid;
        return;
    }
    snprintf(address, sizeof(address), "unix:elastic-%d-%s", (int)getppid(),
             strrchr(door, '/') + 1);
    setenv("RONDO_ADDRESS", address, 1);
    setenv("RONDO_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv("RONDO_DOOR", door, 1);
    setenv("RONDO_ELASTIC", "2:5", 1);
    if (number < size) {
        set_number("RONDO_RANK", number);
        set_number("RONDO_SIZE", size);
    } else {
        setenv("RONDO_JOIN", "1", 1);
    }
    _exit(live(&seen->people[number]));
}

static struct fate draw_fate(uint64_t *state, bool dies)
{
    return (struct fate){.dies = dies,
                         .moment = (enum moment)(draw(state) % MOMENTS),
                         .step = (unsigned)(draw(state) % 20),
                         .microseconds = (unsigned)(draw(state) % 30000),
                         .stumbles = (unsigned)(draw(state) % 100)};
}

static int steps_seen(int people)
{
    int most = 0;

    for (int i = 0; i < people; i++) {
        int steps = atomic_load_explicit(&seen->people[i].steps, memory_order_relaxed);

        most = steps > most ? steps : most;
    }
    return most;
}

static bool any_lives(int people)
{
    bool lives = false;

    for (int i = 0; i < people; i++) {
        int status;

        if (seen->people[i].pid && waitpid(seen->people[i].pid, &status, WNOHANG) != 0)
            seen->people[i].pid = 0;
        lives = lives || seen->people[i].pid;
    }
    return lives;
}

/* Those who have no fate must come to the end, with the right sums. */
static int judge(uint64_t seed, int founders, int people, bool verbose)
{
    int wrong = 0, joined = 0;

    for (int i = 0; i < people; i++) {
        const struct person *person = &seen->people[i];
        bool late = i >= founders && strstr(person->sentence, "is over");

        joined += person->finished && i >= founders;
        if (person->fate.dies || person->finished || late)
            continue;
        printf("# seed %llu: %s %d did not end well after %d steps: %s\n", (unsigned long long)seed,
               i < founders ? "rank" : "newcomer", i, person->steps, person->sentence);
        wrong = 1;
    }
    if (verbose)
        for (int i = 0; i < people; i++)
            printf("# seed %llu: %d: %s, steps %d, size %d, lost %d, joined %d %s\n",
                   (unsigned long long)seed, i, seen->people[i].finished ? "well" : "not",
                   seen->people[i].steps, seen->people[i].size, seen->people[i].lost,
                   seen->people[i].joined, seen->people[i].sentence);
    return wrong ? -1 : joined;
}

/* Returns how many newcomers came to the end, or -1. */
static int run(uint64_t seed, bool with_newcomers, bool verbose)
{
    uint64_t state = seed;
    int founders = 3 + (int)(draw(&state) % 3), people = founders;
    int newcomers = with_newcomers ? 1 + (int)(draw(&state) % 4) : 0;
    char door[] = "/tmp/rondo-door-XXXXXX", command[64];
    int result;

    memset(seen, 0, sizeof(*seen));
    if (!mkdtemp(door))
        return -1;
    for (int i = 0; i < founders; i++) /* two are left in any case */
        seen->people[i].fate = draw_fate(&state, i < founders - 2 && draw(&state) % 4 > 0);
    for (int i = founders - 1; i > 0; i--) { /* any of them */
        int other = (int)(draw(&state) % (uint64_t)(i + 1));
        struct fate fate = seen->people[i].fate;

        seen->people[i].fate = seen->people[other].fate;
        seen->people[other].fate = fate;
    }
    for (int i = 0; i < newcomers; i++)
        seen->people[founders + i].fate = draw_fate(&state, draw(&state) % 4 == 0);
    for (int i = 0; i < founders; i++)
        start(i, founders, door);
    while (any_lives(people)) {
        if (people < founders + newcomers && steps_seen(people) >= 6 * (people - founders)) {
            start(people, founders, door);
            people++;
        }
        usleep(500);
    }
    result = judge(seed, founders, people, verbose);
    snprintf(command, sizeof(command), "rm -r %s", door);
    return system(command) ? -1 : result;
}

int main(int argc, char **argv)
{
    static const struct option names[] = {{"jobs", required_argument, NULL, 'j'},
                                          {"seed", required_argument, NULL, 's'},
                                          {"newcomers", required_argument, NULL, 'n'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {0}};
    uint64_t jobs = 20, seed = 1;
    bool newcomers = true, verbose = false;
    int option, joined = 0, wrong = 0;

    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == 'j')
            jobs = strtoull(optarg, NULL, 10);
        else if (option == 's')
            seed = strtoull(optarg, NULL, 10);
        else if (option == 'n')
            newcomers = atoi(optarg) != 0;
        else if (option == 'v')
            verbose = true;
        else
            return 2;
    }
    seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (seen == MAP_FAILED)
        return 1;
    for (uint64_t i = 0; i < jobs; i++) {
        int came = run(seed + i, newcomers, verbose);

        wrong += came < 0;
        joined += came > 0 ? came : 0;
    }
    printf("%llu jobs, %d wrong; %d newcomers came to the end\n", (unsigned long long)jobs, wrong,
           joined);
    return wrong || (newcomers && jobs >= 10 && !joined);
}
