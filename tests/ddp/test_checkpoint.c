/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_checkpoint.c - what was written is read, on every rank; what is damaged is refused,
 * whichever byte it is; who is killed while writing leaves the old file.
 */
#include "../world.h"

#include <rondo/train.h>

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SMALL = 33, PATH = 128 };

static struct world_report report;
static char folder[64], path[PATH];

static void begin(void)
{
    strcpy(folder, "/tmp/rondo-checkpoint-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/model", folder);
}

static void end(void)
{
    char part[PATH + 8];

    snprintf(part, sizeof(part), "%s.part", path);
    unlink(part);
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "something is left in %s", folder);
}

TestSuite(checkpoint, .init = begin, .fini = end);

/* ---- A checkpoint of version `step` ---------------------------------------------------------- */

static rondo_result write_version(const char *to, rondo_comm *comm, int64_t step, size_t count)
{
    rondo_checkpoint *checkpoint = NULL;
    float *weights = malloc((count + 1) * sizeof(*weights));
    double rate = 0.25;
    rondo_result result = rondo_checkpoint_create(to, comm, &checkpoint);

    for (size_t i = 0; i < count; i++)
        weights[i] = (float)step + (float)(i % 100);
    if (!result && !(result = rondo_checkpoint_write(checkpoint, "step", RONDO_INT64, 1, &step)) &&
        !(result = rondo_checkpoint_write(checkpoint, "rate", RONDO_FLOAT64, 1, &rate)) &&
        !(result = rondo_checkpoint_write(checkpoint, "nothing", RONDO_INT8, 0, NULL)) &&
        !(result = rondo_checkpoint_write(checkpoint, "weights", RONDO_FLOAT32, count, weights)))
        result = rondo_checkpoint_commit(checkpoint);
    rondo_checkpoint_close(checkpoint);
    free(weights);
    return result;
}

/* The step, or -1 with a sentence. */
static int64_t read_version(const char *from, rondo_comm *comm, size_t count, char *sentence)
{
    rondo_checkpoint *checkpoint = NULL;
    float *weights = calloc(count + 1, sizeof(*weights));
    int64_t step = -1;
    double rate = 0;
    rondo_result result = rondo_checkpoint_open(from, comm, &checkpoint);

    if (!result && !(result = rondo_checkpoint_read(checkpoint, "step", RONDO_INT64, 1, &step)) &&
        !(result = rondo_checkpoint_read(checkpoint, "weights", RONDO_FLOAT32, count, weights)) &&
        !(result = rondo_checkpoint_read(checkpoint, "nothing", RONDO_INT8, 0, NULL)))
        result = rondo_checkpoint_read(checkpoint, "rate", RONDO_FLOAT64, 1, &rate);
    snprintf(sentence, WORLD_SENTENCE, "%s", result ? rondo_ddp_last_error() : "wrong content");
    if (result || rate != 0.25)
        step = -1;
    for (size_t i = 0; i < count && step >= 0; i++)
        if (weights[i] != (float)step + (float)(i % 100))
            step = -1;
    rondo_checkpoint_close(checkpoint);
    free(weights);
    return step;
}

static rondo_result write_and_read(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_result result = RONDO_OK;

    for (int64_t step = 1; step <= 3; step++) {
        result = write_version(path, comm, step, 5000);
        if (result)
            return world_say(sentence, result, "%s", rondo_ddp_last_error());
        if (read_version(path, comm, 5000, sentence) != step)
            return RONDO_ERROR_INTERNAL;
    }
    return result;
}

Test(checkpoint, what_rank_0_wrote_all_threads_read)
{
    for (int size = 1; size <= 4; size++)
        cr_assert_eq(world_run_threads(size, write_and_read, NULL, &report), 0, "%s",
                     report.summary);
}

Test(checkpoint, what_rank_0_wrote_all_processes_read)
{
    cr_assert_eq(world_run_processes(3, write_and_read, NULL, &report), 0, "%s", report.summary);
}

Test(checkpoint, says_what_is_in_it)
{
    static const char *const names[] = {"step", "rate", "nothing", "weights"};
    static const size_t counts[] = {1, 1, 0, SMALL};
    rondo_checkpoint *checkpoint = NULL;
    const char *name;
    rondo_type type;
    size_t count;

    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK, "%s", rondo_ddp_last_error());
    cr_assert_eq(rondo_checkpoint_open(path, NULL, &checkpoint), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_count(checkpoint), 4);
    for (size_t i = 0; i < 4; i++) {
        cr_assert_eq(rondo_checkpoint_at(checkpoint, i, &name, &type, &count), RONDO_OK);
        cr_assert_str_eq(name, names[i]);
        cr_assert_eq(count, counts[i]);
    }
    cr_assert_eq(type, RONDO_FLOAT32);
    cr_assert_eq(rondo_checkpoint_at(checkpoint, 4, &name, &type, &count), RONDO_ERROR_INVALID);
    rondo_checkpoint_close(checkpoint);
}

Test(checkpoint, the_same_content_gives_the_same_file)
{
    char other[PATH + 8], command[3 * PATH];

    snprintf(other, sizeof(other), "%s.2", path);
    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK);
    cr_assert_eq(write_version(other, NULL, 9, SMALL), RONDO_OK);
    snprintf(command, sizeof(command), "cmp %s %s", path, other);
    cr_assert_eq(system(command), 0);
    unlink(other);
}

/* ---- Damage ---------------------------------------------------------------------------------- */

static size_t load(char *bytes, size_t room)
{
    int file = open(path, O_RDONLY);
    ssize_t length = read(file, bytes, room);

    close(file);
    cr_assert(length > 0);
    return (size_t)length;
}

static void store(const char *bytes, size_t length)
{
    int file = open(path, O_WRONLY | O_CREAT, 0600);

    /* Not O_TRUNC: file systems then write through to the disk, a thousand times here. */
    cr_assert_eq(write(file, bytes, length), (ssize_t)length);
    cr_assert_eq(ftruncate(file, (off_t)length), 0);
    close(file);
}

static void expect_refusal(const char *what, size_t at)
{
    rondo_checkpoint *checkpoint = NULL;

    cr_assert(rondo_checkpoint_open(path, NULL, &checkpoint) != RONDO_OK, "%s at %zu is not seen",
              what, at);
    cr_assert(strstr(rondo_ddp_last_error(), path), "%s", rondo_ddp_last_error());
}

Test(checkpoint, any_flipped_bit_is_found)
{
    char bytes[4096];
    size_t length;

    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK);
    length = load(bytes, sizeof(bytes));
    for (size_t i = 0; i < length; i++)
        for (int bit = 0; bit < 8; bit += 7) {
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
            store(bytes, length);
            expect_refusal("a flipped bit", i);
            bytes[i] = (char)(bytes[i] ^ 1 << bit);
        }
}

Test(checkpoint, any_missing_end_is_found)
{
    char bytes[4096];
    size_t length;

    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK);
    length = load(bytes, sizeof(bytes));
    for (size_t i = 0; i < length; i++) {
        store(bytes, i);
        expect_refusal("an end", i);
    }
    bytes[length] = 0;
    store(bytes, length + 1);
    expect_refusal("a byte too many", length);
}

/* Many wrong bytes at once, most of them in table and tail, where they may lead a reader astray. */
Test(checkpoint, any_damage_is_found)
{
    char bytes[4096], worse[4096];
    size_t length;

    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK);
    length = load(bytes, sizeof(bytes));
    for (uint64_t round = 0; round < 3000; round++) {
        uint64_t damages = 1 + world_hash(round, 0) % 6;

        memcpy(worse, bytes, length);
        for (uint64_t i = 1; i <= damages; i++) {
            size_t from_end = 1 + world_hash(round, 3 * i) % (i % 3 ? 330 : length);

            worse[length - from_end] = (char)(world_hash(round, 3 * i + 1) % (i % 2 ? 3 : 256));
        }
        if (memcmp(worse, bytes, length) == 0)
            continue;
        store(worse, length);
        expect_refusal("damage", (size_t)round);
    }
}

Test(checkpoint, a_foreign_file_is_told_from_a_damaged_one)
{
    rondo_checkpoint *checkpoint = NULL;

    store("It was a dark and stormy night; the rain fell in torrents.", 50);
    cr_assert_eq(rondo_checkpoint_open(path, NULL, &checkpoint), RONDO_ERROR_INVALID);
    cr_assert(strstr(rondo_ddp_last_error(), "is not a checkpoint"), "%s", rondo_ddp_last_error());
}

Test(checkpoint, the_damaged_array_is_named)
{
    char bytes[4096];
    size_t length;

    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK);
    length = load(bytes, sizeof(bytes));
    bytes[16 + 8 + 8 + 2] ^= 1;
    store(bytes, length);
    expect_refusal("a weight", 34);
    cr_assert(strstr(rondo_ddp_last_error(), "\"weights\""), "%s", rondo_ddp_last_error());
}

/* Rank 0 overwrites a weight between the check of the whole file and its use. */
static rondo_result change_what_is_open(rondo_comm *comm, void *argument, char *sentence)
{
    enum { WEIGHT = 16 + 8 + 8 + 4 * 7 }; /* head, step, rate, seven weights */
    rondo_checkpoint *checkpoint = NULL;
    float weights[SMALL], wrong = 777;
    int64_t step = 0;
    rondo_result result = write_version(path, comm, 9, SMALL);

    if (!result)
        result = rondo_checkpoint_open(path, comm, &checkpoint);
    if (!result && rondo_comm_rank(comm) == 0) {
        int file = open(path, O_WRONLY);

        if (pwrite(file, &wrong, sizeof(wrong), WEIGHT) != sizeof(wrong))
            result = world_say(sentence, RONDO_ERROR_SYSTEM, "cannot write");
        close(file);
    }
    if (!result)
        result = rondo_checkpoint_read(checkpoint, "step", RONDO_INT64, 1, &step);
    if (result || step != 9)
        return world_say(sentence, RONDO_ERROR_INTERNAL, "before: %s", rondo_ddp_last_error());
    result = rondo_checkpoint_read(checkpoint, "weights", RONDO_FLOAT32, SMALL, weights);
    rondo_checkpoint_close(checkpoint);
    if (result != RONDO_ERROR_INVALID || !strstr(rondo_ddp_last_error(), "\"weights\"") ||
        !strstr(rondo_ddp_last_error(), "was changed while it was open"))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "read: %d, %s", (int)result,
                         rondo_ddp_last_error());
    return RONDO_OK;
}

Test(checkpoint, what_changes_after_the_check_is_refused_on_every_rank)
{
    cr_assert_eq(world_run_threads(3, change_what_is_open, NULL, &report), 0, "%s", report.summary);
}

static rondo_result open_what_is_not_there(rondo_comm *comm, void *argument, char *sentence)
{
    rondo_checkpoint *checkpoint = NULL;
    rondo_result result = rondo_checkpoint_open(argument, comm, &checkpoint);

    if (result != RONDO_ERROR_SYSTEM || !strstr(rondo_ddp_last_error(), "No such file"))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "open: %s", rondo_ddp_last_error());
    result = rondo_checkpoint_create("/nowhere/at/all", comm, &checkpoint);
    if (result != RONDO_ERROR_SYSTEM || !strstr(rondo_ddp_last_error(), "/nowhere/at/all"))
        return world_say(sentence, RONDO_ERROR_INTERNAL, "create: %s", rondo_ddp_last_error());
    return RONDO_OK;
}

Test(checkpoint, all_ranks_hear_why_rank_0_failed)
{
    cr_assert_eq(world_run_threads(3, open_what_is_not_there, path, &report), 0, "%s",
                 report.summary);
}

Test(checkpoint, another_models_arrays_are_refused)
{
    rondo_checkpoint *checkpoint = NULL;
    float weights[SMALL + 1];

    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_open(path, NULL, &checkpoint), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_read(checkpoint, "weights", RONDO_FLOAT32, SMALL + 1, weights),
                 RONDO_ERROR_INVALID);
    cr_assert(strstr(rondo_ddp_last_error(), "33 of float32, but 34"), "%s",
              rondo_ddp_last_error());
    cr_assert_eq(rondo_checkpoint_read(checkpoint, "bias", RONDO_FLOAT32, 1, weights),
                 RONDO_ERROR_INVALID);
    cr_assert(strstr(rondo_ddp_last_error(), "no array \"bias\""), "%s", rondo_ddp_last_error());
    rondo_checkpoint_close(checkpoint);
}

/* ---- Writers that end early ------------------------------------------------------------------ */

Test(checkpoint, who_gives_up_leaves_the_old_file_and_no_other)
{
    rondo_checkpoint *checkpoint = NULL;
    char sentence[WORLD_SENTENCE];
    int64_t step = 8;

    cr_assert_eq(write_version(path, NULL, 7, SMALL), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_create(path, NULL, &checkpoint), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_write(checkpoint, "step", RONDO_INT64, 1, &step), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_write(checkpoint, "step", RONDO_INT64, 1, &step),
                 RONDO_ERROR_INVALID);
    cr_assert_eq(rondo_checkpoint_commit(checkpoint), RONDO_ERROR_INVALID);
    cr_assert(strstr(rondo_ddp_last_error(), "two arrays"), "%s", rondo_ddp_last_error());
    rondo_checkpoint_close(checkpoint);
    cr_assert_eq(read_version(path, NULL, SMALL, sentence), 7, "%s", sentence);
}

Test(checkpoint, two_writers_of_one_file_do_not_mix)
{
    rondo_checkpoint *first = NULL, *second = NULL;
    char sentence[WORLD_SENTENCE];

    cr_assert_eq(write_version(path, NULL, 7, SMALL), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_create(path, NULL, &first), RONDO_OK);
    cr_assert_eq(rondo_checkpoint_create(path, NULL, &second), RONDO_ERROR_SYSTEM);
    cr_assert(strstr(rondo_ddp_last_error(), "another process"), "%s", rondo_ddp_last_error());
    rondo_checkpoint_close(first);
    cr_assert_eq(read_version(path, NULL, SMALL, sentence), 7, "%s", sentence);
}

/* A limit on the size of files is like a full disk. In a child, because it stays. */
static int write_beyond_the_limit(void)
{
    struct rlimit limit = {100000, 100000};
    rondo_checkpoint *checkpoint = NULL;
    static float much[1 << 16];

    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) || rondo_checkpoint_create(path, NULL, &checkpoint))
        return 1;
    if (rondo_checkpoint_write(checkpoint, "much", RONDO_FLOAT32, 1 << 16, much) !=
        RONDO_ERROR_SYSTEM)
        return 2;
    if (rondo_checkpoint_write(checkpoint, "more", RONDO_FLOAT32, 1, much) != RONDO_ERROR_SYSTEM)
        return 3;
    if (rondo_checkpoint_commit(checkpoint) != RONDO_ERROR_SYSTEM ||
        !strstr(rondo_ddp_last_error(), "File too large"))
        return 4;
    rondo_checkpoint_close(checkpoint);
    return 0;
}

Test(checkpoint, when_the_disk_is_full_the_old_file_stays)
{
    char sentence[WORLD_SENTENCE];
    int status;
    pid_t child;

    cr_assert_eq(write_version(path, NULL, 7, SMALL), RONDO_OK);
    child = fork();
    if (child == 0)
        _exit(write_beyond_the_limit());
    waitpid(child, &status, 0);
    cr_assert(WIFEXITED(status));
    cr_assert_eq(WEXITSTATUS(status), 0);
    cr_assert_eq(read_version(path, NULL, SMALL, sentence), 7, "%s", sentence);
}

/* The child stops for ever in the middle of writing version 8; the file must still be version 7,
 * and version 9 can be written although a part is left. */
Test(checkpoint, who_is_killed_between_two_writes_leaves_the_old_file)
{
    rondo_checkpoint *checkpoint = NULL;
    char sentence[WORLD_SENTENCE];
    int64_t step = 8;
    int status;
    pid_t child;

    cr_assert_eq(write_version(path, NULL, 7, SMALL), RONDO_OK);
    child = fork();
    if (child == 0) {
        if (rondo_checkpoint_create(path, NULL, &checkpoint) ||
            rondo_checkpoint_write(checkpoint, "step", RONDO_INT64, 1, &step))
            _exit(1);
        raise(SIGKILL);
    }
    waitpid(child, &status, 0);
    cr_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    cr_assert_eq(read_version(path, NULL, SMALL, sentence), 7, "%s", sentence);
    cr_assert_eq(write_version(path, NULL, 9, SMALL), RONDO_OK, "%s", rondo_ddp_last_error());
    cr_assert_eq(read_version(path, NULL, SMALL, sentence), 9, "%s", sentence);
}

/* A child writes version after version and is killed at some moment, again and again. */
Test(checkpoint, who_is_killed_at_any_moment_leaves_a_complete_file)
{
    enum { KILLS = 25, COUNT = 300000 };
    char sentence[WORLD_SENTENCE];
    int64_t step = 1, later;

    cr_assert_eq(write_version(path, NULL, step, COUNT), RONDO_OK);
    for (unsigned kill_number = 0; kill_number < KILLS; kill_number++) {
        pid_t child = fork();

        if (child == 0) {
            for (int64_t next = step + 1;; next++)
                if (write_version(path, NULL, next, COUNT))
                    _exit(1);
        }
        while (read_version(path, NULL, COUNT, sentence) == step && !waitpid(child, NULL, WNOHANG))
            usleep(100);
        usleep(500 + 1700 * kill_number % 20000);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        later = read_version(path, NULL, COUNT, sentence);
        cr_assert(later > step, "after version %d: %s", (int)step, sentence);
        step = later;
    }
}
