/* SPDX-License-Identifier: BSD-3-Clause */
/* fuzz.c - see fuzz.h. */
#include "tests/fuzz/fuzz.h"

#include <jansson.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

void fuzz_bytes(struct fuzz_input *input, void *to, size_t count)
{
    size_t left = (size_t)(input->end - input->at);
    size_t some = count < left ? count : left;

    if (some)
        memcpy(to, input->at, some);
    memset((char *)to + some, 0, count - some);
    input->at += some;
}

uint64_t fuzz_number(struct fuzz_input *input, int bytes)
{
    uint64_t number = 0;

    for (int i = 0; i < bytes; i++)
        number |= (uint64_t)fuzz_byte(input) << (8 * i);
    return number;
}

void fuzz_expect(bool is_so, const char *sentence)
{
    if (is_so)
        return;
    dprintf(STDERR_FILENO, "fuzz: it is not so that %s\n", sentence);
    abort();
}

void fuzz_expect_json(const char *text, size_t length)
{
    json_error_t error = {.text = ""};
    json_t *json = json_loadb(text, length, JSON_DECODE_INT_AS_REAL, &error);

    if (!json)
        dprintf(STDERR_FILENO, "fuzz: JSON, byte %d: %s\n", error.position, error.text);
    fuzz_expect(json, "what is written as JSON is read as JSON");
    json_decref(json);
}

char *fuzz_text(struct fuzz_input *input, char separator)
{
    size_t left = (size_t)(input->end - input->at);
    const uint8_t *end = left ? memchr(input->at, separator, left) : NULL;
    size_t length = end ? (size_t)(end - input->at) : left;
    char *text = malloc(length + 1);

    fuzz_expect(text, "there is memory for a text");
    if (length)
        memcpy(text, input->at, length);
    text[length] = '\0';
    input->at += length + (end != NULL);
    return text;
}

const char *fuzz_file(const void *bytes, size_t count)
{
    static char name[64];
    static int file = -1;

    if (file < 0) {
        file = memfd_create("fuzz", MFD_CLOEXEC);
        snprintf(name, sizeof(name), "/proc/self/fd/%d", file);
    }
    fuzz_expect(file >= 0 && !ftruncate(file, 0) && pwrite(file, bytes, count, 0) == (ssize_t)count,
                "the input can be written to a file");
    return name;
}

void fuzz_sockets(int ret_ends[2])
{
    fuzz_expect(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ret_ends),
                "there are sockets");
}

void fuzz_drain(int end)
{
    char waste[4096];

    while (recv(end, waste, sizeof(waste), MSG_DONTWAIT) > 0)
        continue;
}

void fuzz_environment(char *lines)
{
    enum { MOST = 64 };
    extern char **environ;
    static char quiet[] = "RONDO_LOG=none";
    static char *list[MOST + 2];
    int count = 0;

    list[count++] = quiet;
    while (lines && count <= MOST) {
        char *line = strsep(&lines, "\n");

        if (strchr(line, '=') && strncmp(line, "RONDO_LOG=", 10) != 0)
            list[count++] = line;
    }
    list[count] = NULL;
    environ = list;
}

/* ---- What is written to stdout --------------------------------------------------------------- */

static struct {
    FILE *before;
    char *text;
    size_t length;
} heard;

void fuzz_listen(void)
{
    FILE *to = open_memstream(&heard.text, &heard.length);

    fuzz_expect(to, "there is memory for a text");
    heard.before = stdout;
    stdout = to;
}

char *fuzz_heard(size_t *ret_length)
{
    fuzz_expect(!fclose(stdout), "a text in memory is written");
    stdout = heard.before;
    *ret_length = heard.length;
    return heard.text;
}

/* ---- Nonces ---------------------------------------------------------------------------------- */

static uint32_t nonce_state;

static const char *nonce_name(void)
{
    return "fixed";
}

static uint32_t nonce_next(void)
{
    return nonce_state = nonce_state * 1664525u + 1013904223u;
}

static void nonce_fill(void *const to, const size_t count)
{
    for (size_t i = 0; i < count; i++)
        ((unsigned char *)to)[i] = (unsigned char)(nonce_next() >> 24);
}

void fuzz_seed_nonces(void)
{
    static struct randombytes_implementation fixed = {
        .implementation_name = nonce_name, .random = nonce_next, .buf = nonce_fill};
    static bool done;

    nonce_state = 1;
    if (done)
        return;
    done = true;
    randombytes_set_implementation(&fixed);
    fuzz_expect(sodium_init() >= 0, "libsodium starts");
}

/* The library logs what it refuses, and programs say it, which would be a line for every input.
 * Sanitizers do not use the stream. */
__attribute__((constructor)) static void be_quiet(void)
{
    FILE *nowhere = fopen("/dev/null", "we");

    setenv("RONDO_LOG", "none", 1);
    if (nowhere)
        stderr = nowhere;
}
