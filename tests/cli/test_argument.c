/* SPDX-License-Identifier: BSD-3-Clause */
/* test_argument.c - a table of options: what each row sets, and what is refused with status 2. */
#include "cli/common/argument.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORDS_MAX = 16 };

struct options {
    bool loud;
    const char *file;
    int count;
    double seconds;
    char word[16], operand[16];
    bool finished;
};

static void take_word(struct argp_state *state, void *input, char *text)
{
    struct options *options = input;

    if (strcmp(text, "yes") && strcmp(text, "no"))
        argp_error(state, "--word is yes or no, not '%s'", text);
    snprintf(options->word, sizeof(options->word), "%s", text);
}

static void take_operand(struct argp_state *state, void *input, char *text)
{
    snprintf(((struct options *)input)->operand, sizeof(((struct options *)input)->operand), "%s",
             text);
}

static void finish(struct argp_state *state, void *input)
{
    ((struct options *)input)->finished = true;
}

static const struct argument table[] = {
    {"loud", 0, NULL, 1, ARGUMENT_SETS(struct options, loud), "say more"},
    {"file", 'f', "FILE", 1, ARGUMENT_SETS(struct options, file), "where it goes"},
    {"count", 'n', "N", 1, ARGUMENT_NUMBER(struct options, count, 1, 9), "how many"},
    {"seconds", 0, "S", 1, ARGUMENT_NUMBER(struct options, seconds, 0.5, 0), "how long"},
    {"word", 0, "WORD", 1, ARGUMENT_CALLS(take_word), "yes or no"},
    {"secret", 0, NULL, 1, ARGUMENT_SETS(struct options, loud), NULL},
    {0},
};

static const struct argument_command with_operand = {.name = "rondo test",
                                                     .operands = "WHAT",
                                                     .doc = "Tests.",
                                                     .table = table,
                                                     .operand = take_operand,
                                                     .finish = finish};
static const struct argument_command without = {.name = "rondo test", .table = table};

/* Members may point into the last line that was read. */
static struct options read_line(const struct argument_command *command, const char *line)
{
    static char name[] = "test", copy[128];
    struct options options = {.count = 3};
    char *words[WORDS_MAX + 1] = {name};
    char *rest = copy, *word;
    int count = 1;

    snprintf(copy, sizeof(copy), "%s", line);
    while (count < WORDS_MAX && (word = strsep(&rest, " ")))
        if (*word)
            words[count++] = word;
    argument_parse(command, count, words, &options);
    return options;
}

Test(argument, every_row_sets_its_member_by_the_type_of_it)
{
    struct options options =
        read_line(&with_operand, "--loud -f a.csv --count 7 all --seconds=2.5 --word yes");

    cr_expect(options.loud);
    cr_expect_str_eq(options.file, "a.csv");
    cr_expect_eq(options.count, 7);
    cr_expect_eq(options.seconds, 2.5);
    cr_expect_str_eq(options.word, "yes");
    cr_expect_str_eq(options.operand, "all");
    cr_expect(options.finished);
}

Test(argument, what_is_not_given_stays_as_it_was)
{
    struct options options = read_line(&without, "");

    cr_expect(!options.loud && !options.file && options.count == 3 && !options.finished);
}

/* The exit status of a program that reads this line; what it says goes to `out`. */
static int status_of(const char *line, FILE *out)
{
    int status = -1;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        dup2(fileno(out), STDOUT_FILENO);
        dup2(fileno(out), STDERR_FILENO);
        read_line(line[0] == '-' ? &without : &with_operand, line);
        _exit(99);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

Test(argument, what_is_wrong_ends_the_program_with_status_2_and_a_sentence)
{
    static const char *const refused[][2] = {
        {"-n 0", "-n is '0': accepted is a whole number from 1 to 9"},
        {"--count 10", "-n is '10'"},
        {"-n 1x", "-n is '1x'"},
        {"-n 99999999999999999999", "-n is '99999999999999999999'"},
        {"--seconds 0.4", "--seconds is '0.4': accepted is a number of at least 0.5"},
        {"--seconds nan", "--seconds is 'nan'"},
        {"--word so", "--word is yes or no, not 'so'"},
        {"--none", "unrecognized option"},
        {"-f", "requires an argument"},
        {"--loud operand", "Too many arguments"},
    };

    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        FILE *out = tmpfile();
        char text[1024] = "";

        cr_expect_eq(status_of(refused[i][0], out), 2, "%s", refused[i][0]);
        cr_expect_gt(pread(fileno(out), text, sizeof(text) - 1, 0), 0);
        cr_expect(strstr(text, refused[i][1]), "%s: %s", refused[i][0], text);
        fclose(out);
    }
}

Test(argument, help_shows_the_options_that_have_a_sentence_and_no_other)
{
    FILE *out = tmpfile();
    char text[2048] = "";

    cr_expect_eq(status_of("all --help", out), 0);
    cr_expect_gt(pread(fileno(out), text, sizeof(text) - 1, 0), 0);
    fclose(out);
    cr_expect(strstr(text, "Usage: rondo test [OPTION...] WHAT"), "%s", text);
    cr_expect(strstr(text, "-n, --count=N"), "%s", text);
    cr_expect_null(strstr(text, "--secret"), "%s", text);
}
