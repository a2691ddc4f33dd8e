/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage.c - starts the ranks of a scene, lets the stopped one go on, ends what hangs.
 *
 * Ranks are children of this process, or threads of one child; they say in shared memory how far
 * they are. The watch over their memory ends when each has settled or died, and a moment later.
 */
#include "device.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds: from the last rank that settled to the end of the watch; for starting; for a call beyond
 * its timeout; of a stopped rank beyond the timeout, while others do not settle. */
static const double AFTERWARDS = 0.02, START_MOST = 60, CALL_MOST = 25, STOP_MOST = 3;

struct child {
    pid_t pid;
    bool ended;
    double stopped; /* when; 0: it runs */
};

struct play {
    const struct scene *scene;
    struct stage *stage;
    struct outcome *outcome;
    struct child children[SOAK_RANKS];
    int count;                   /* of children; all ranks may be in one */
    double began, went, settled; /* when; 0: not yet */
};

/* ---- Ranks ----------------------------------------------------------------------------------- */

bool stage_others_reached(struct stage *stage, int size, int rank, enum phase phase)
{
    for (int r = 0; r < size; r++)
        if (r != rank && atomic_load_explicit(&stage->phases[r], memory_order_acquire) < (int)phase)
            return false;
    return true;
}

static rondo_config config_of(const struct scene *scene, const struct soak_device *device)
{
    rondo_config config = RONDO_CONFIG_INIT;

    config.timeout = scene->timeout;
    config.slot_bytes = scene->slot_bytes;
    config.slots = scene->slots;
    config.deterministic = scene->deterministic;
    config.cuda_device = device->number;
    return config;
}

static void set_environment(const struct scene *scene)
{
    setenv("RONDO_LOG", "none", 1);
    setenv("RONDO_CMA", scene->cma, 1);
    setenv("RONDO_STREAM", scene->stream, 1);
    setenv("RONDO_COSTS", "2,5,5,20,1,1", 1);
    setenv("RONDO_TRANSPORT", scene->transport == SOAK_TCP ? "tcp" : "auto", 1);
    setenv("RONDO_CUDA", scene->cuda, 1);
    setenv("RONDO_CUDA_PIECE", scene->cuda_piece, 1);
    if (scene->transport == SOAK_TCP || scene->transport == SOAK_MIXED) {
        setenv("RONDO_INTERFACE", "lo", 1);
        setenv("RONDO_ADDRESS", "127.0.0.1:0", 1);
    }
}

static void fail_early(struct stage *stage, int rank, const char *sentence)
{
    snprintf(stage->reports[rank].early, SOAK_TEXT, "open: %s", sentence);
    atomic_store_explicit(&stage->phases[rank], PHASE_GONE, memory_order_release);
}

/* Rank 0 makes the id, the others take it from the stage. */
static void run_process(const struct scene *scene, struct stage *stage, int rank)
{
    struct soak_device device = {.number = -1};
    rondo_comm *comm = NULL;
    rondo_config config;
    rondo_result result;
    int state;

    if (scene->transport == SOAK_GPU && !soak_device_open(rank, &device)) {
        fail_early(stage, rank, "no CUDA device");
        return;
    }
    config = config_of(scene, &device);
    if (scene->transport == SOAK_MIXED)
        setenv("RONDO_HOST_ID", rank % 2 ? "odd" : "even", 1);
    if (rank == 0) {
        result = rondo_unique_id_create(&stage->id);
        atomic_store_explicit(&stage->id_state, result ? 2 : 1, memory_order_release);
    }
    while (!(state = atomic_load_explicit(&stage->id_state, memory_order_acquire)))
        usleep(200);
    result = state == 2 ? RONDO_ERROR_SYSTEM
                        : rondo_comm_open_id(&stage->id, scene->size, rank, &config, &comm);
    if (result)
        fail_early(stage, rank, rondo_last_error(NULL));
    else
        rank_run(scene, stage, rank, comm, &device);
    soak_device_close(&device);
}

struct threaded {
    const struct scene *scene;
    struct stage *stage;
    int rank;
    rondo_comm *comm;
};

static const struct soak_device on_host = {.number = -1};

static void *thread_main(void *argument)
{
    struct threaded *t = argument;

    rank_run(t->scene, t->stage, t->rank, t->comm, &on_host);
    return NULL;
}

static void run_threads(const struct scene *scene, struct stage *stage)
{
    const rondo_config config = config_of(scene, &on_host);
    rondo_comm *comms[SOAK_RANKS];
    struct threaded arguments[SOAK_RANKS];
    pthread_t threads[SOAK_RANKS];

    if (rondo_comm_open_all(scene->size, &config, comms)) {
        fail_early(stage, 0, rondo_last_error(NULL));
        return;
    }
    for (int r = 0; r < scene->size; r++) {
        arguments[r] = (struct threaded){scene, stage, r, comms[r]};
        if (pthread_create(&threads[r], NULL, thread_main, &arguments[r]))
            _exit(3);
    }
    for (int r = 0; r < scene->size; r++)
        pthread_join(threads[r], NULL);
}

static void start(struct play *play)
{
    set_environment(play->scene);
    fflush(NULL);
    play->count = play->scene->threads ? 1 : play->scene->size;
    play->began = soak_now();
    for (int i = 0; i < play->count; i++) {
        play->children[i].pid = fork();
        if (play->children[i].pid < 0) {
            perror("soak: fork");
            exit(2);
        }
        if (play->children[i].pid)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (play->scene->threads)
            run_threads(play->scene, play->stage);
        else
            run_process(play->scene, play->stage, i);
        _exit(0);
    }
}

/* ---- Watching -------------------------------------------------------------------------------- */

void outcome_add(struct outcome *outcome, enum defect defect, const char *format, ...)
{
    size_t used = strlen(outcome->text);
    va_list arguments;

    outcome->defects |= 1u << defect;
    used += (size_t)snprintf(outcome->text + used, sizeof(outcome->text) - used,
                             "%s%s: ", used ? "; " : "", soak_defects[defect]);
    if (used >= sizeof(outcome->text))
        return;
    va_start(arguments, format);
    vsnprintf(outcome->text + used, sizeof(outcome->text) - used, format, arguments);
    va_end(arguments);
}

static void note_end(struct play *play, int index, int status)
{
    const struct fate *fate = &play->scene->fate;
    bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    int last = play->scene->threads ? play->scene->size - 1 : index;

    play->children[index].ended = true;
    for (int r = index; r <= last; r++)
        atomic_store_explicit(&play->stage->phases[r], PHASE_GONE, memory_order_release);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    if (was_killed && fate->kind == FATE_KILL && fate->victim == index && play->went > 0)
        return;
    outcome_add(play->outcome, DEFECT_CRASHED, "%s %d ended with %s %d",
                play->scene->threads ? "the process of rank" : "rank", index,
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void look_at_children(struct play *play)
{
    for (int i = 0; i < play->count; i++) {
        struct child *child = &play->children[i];
        int status;

        if (child->ended || waitpid(child->pid, &status, WNOHANG | WUNTRACED) != child->pid)
            continue;
        if (WIFSTOPPED(status))
            child->stopped = soak_now();
        else
            note_end(play, i, status);
    }
}

/* Lets the stopped rank go on if it is time. */
static void wake(struct play *play)
{
    const struct scene *scene = play->scene;
    const struct fate *fate = &scene->fate;

    for (int i = 0; i < play->count; i++) {
        struct child *child = &play->children[i];
        double since = soak_now() - child->stopped;
        bool now = fate->in_time
                       ? since > fate->pause * scene->timeout
                       : stage_others_reached(play->stage, scene->size, i, PHASE_SETTLED) ||
                             since > scene->timeout + STOP_MOST;

        if (child->stopped > 0 && now) {
            for (int r = 0; r < scene->size && !fate->in_time; r++)
                if (r != i && play->stage->reports[r].result)
                    play->stage->reports[i].after_errors = true;
            child->stopped = 0;
            kill(child->pid, SIGCONT);
        }
    }
}

static bool all_ended(const struct play *play)
{
    for (int i = 0; i < play->count; i++)
        if (!play->children[i].ended)
            return false;
    return true;
}

static bool any_early(const struct play *play)
{
    for (int r = 0; r < play->scene->size; r++)
        if (atomic_load_explicit(&play->stage->phases[r], memory_order_acquire) == PHASE_GONE)
            return true;
    return false;
}

static void end_all(struct play *play)
{
    for (int i = 0; i < play->count; i++)
        if (!play->children[i].ended) {
            kill(play->children[i].pid, SIGKILL);
            waitpid(play->children[i].pid, NULL, 0);
            play->children[i].ended = true;
        }
}

/* Notes which ranks are where when time is up. */
static void note_hang(struct play *play, double seconds)
{
    static const char *const names[] = {"opening", "in its call", "in closing or reuse", "settled",
                                        "gone"};
    char text[SOAK_TEXT] = "";
    size_t used = 0;

    for (int r = 0; r < play->scene->size && used < sizeof(text); r++)
        used += (size_t)snprintf(
            text + used, sizeof(text) - used, ", rank %d %s", r,
            names[atomic_load_explicit(&play->stage->phases[r], memory_order_acquire)]);
    outcome_add(play->outcome, play->went > 0 ? DEFECT_HUNG : DEFECT_SPOILED, "after %.1f s%s",
                seconds, text);
}

/* One look; true when the run is over. */
static bool look(struct play *play)
{
    const struct scene *scene = play->scene;
    double now = soak_now();

    look_at_children(play);
    wake(play);
    if (!play->went) {
        if (any_early(play))
            return true;
        if (stage_others_reached(play->stage, scene->size, -1, PHASE_READY)) {
            play->went = play->stage->began = now;
            atomic_store_explicit(&play->stage->go, 1, memory_order_release);
        }
    } else if (!play->settled) {
        play->settled = stage_others_reached(play->stage, scene->size, -1, PHASE_SETTLED) ? now : 0;
    } else if (now - play->settled > AFTERWARDS) {
        atomic_store_explicit(&play->stage->over, 1, memory_order_release);
    }
    if (all_ended(play))
        return true;
    if (play->went ? now - play->went > 2 * scene->timeout + CALL_MOST
                   : now - play->began > START_MOST) {
        note_hang(play, now - (play->went > 0 ? play->went : play->began));
        return true;
    }
    return false;
}

static void show(const struct play *play)
{
    for (int r = 0; r < play->scene->size; r++) {
        const struct rank_report *report = &play->stage->reports[r];
        const struct part *part = &play->scene->parts[r];

        printf("rank %d: %s%s after %.3f s \"%s\"%s%s%s%s; memory %s/%s, %s, %s\n", r,
               report->called ? rondo_result_string(report->result) : "no call",
               report->after_errors ? " (after errors elsewhere)" : "", report->ended,
               report->sentence, report->where[0] ? "; struck in " : "", report->where,
               report->wrong[0] ? "; WRONG: " : "", report->wrong, soak_memories[part->input],
               soak_memories[part->output], part->renews ? "renews it" : "keeps it",
               soak_endings[part->ending]);
        if (report->where[0])
            printf("        step %u of %u, %u of them with data, %u/%d of it\n", report->moment,
                   report->steps.all, report->steps.data, play->scene->fate.parts, FATE_PARTS);
        if (report->changed)
            printf("        CHANGED: %s\n", report->touched);
        if (report->early[0])
            printf("        EARLY: %s\n", report->early);
    }
}

void stage_run(const struct scene *scene, bool verbose, struct outcome *ret_outcome)
{
    struct stage *stage = world_share(sizeof(*stage));
    struct play play = {.scene = scene, .stage = stage, .outcome = ret_outcome};

    *ret_outcome = (struct outcome){.seed = scene->seed};
    start(&play);
    while (!look(&play))
        usleep(1000);
    end_all(&play);
    judge_run(scene, stage, ret_outcome);
    ret_outcome->seconds = soak_now() - play.began;
    ret_outcome->ran = true;
    if (verbose)
        show(&play);
    world_unshare(stage, sizeof(*stage));
}
