/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * algo.c - reads the elements algo, gpu, tb and step, which have attributes and no text.
 *
 * That is all of XML that algorithms of MSCCL use, with comments and a declaration around them.
 */
#include "plan/msccl/algo.h"

#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ATTRIBUTES = 24, WORD = 40, DEPTH = 4 };

struct attribute {
    char name[WORD], value[WORD];
};

struct reader {
    const char *path, *at, *end;
    uint32_t line;
    char tag[1 + WORD]; /* with a slash before it if it closes */
    struct attribute attributes[ATTRIBUTES];
    int count;
    bool is_empty; /* the element ends with its tag */
    char open[DEPTH][WORD];
    int depth;
    struct msccl_algo *algo;
};

static bool __attribute__((format(printf, 2, 3)))
refuse(const struct reader *reader, const char *format, ...)
{
    char why[300];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(why, sizeof(why), format, arguments);
    va_end(arguments);
    rondo_fail(RONDO_ERROR_INVALID, "The algorithm in %s is wrong: line %u: %s.", reader->path,
               reader->line, why);
    return false;
}

/* ---- XML ------------------------------------------------------------------------------------- */

static int next(struct reader *reader)
{
    if (reader->at == reader->end)
        return 0;
    reader->line += *reader->at == '\n';
    return (unsigned char)*reader->at++;
}

static int look(const struct reader *reader)
{
    return reader->at < reader->end ? (unsigned char)*reader->at : 0;
}

static bool is_blank(int character)
{
    return character == ' ' || character == '\n' || character == '\t' || character == '\r';
}

static void skip_blanks(struct reader *reader)
{
    while (is_blank(look(reader)))
        next(reader);
}

/* Goes behind the text `end`. */
static bool skip_to(struct reader *reader, const char *end)
{
    size_t length = strlen(end);

    while ((size_t)(reader->end - reader->at) >= length) {
        if (!memcmp(reader->at, end, length)) {
            reader->at += length;
            return true;
        }
        next(reader);
    }
    return refuse(reader, "\"%s\" is missing", end);
}

/* Letters up to one of `ends`. */
static bool read_word(struct reader *reader, const char *ends, char word[WORD])
{
    size_t length = 0;

    while (look(reader) && !strchr(ends, look(reader))) {
        if (length == WORD - 1)
            return refuse(reader, "a name or value is too long");
        word[length++] = (char)next(reader);
    }
    word[length] = 0;
    return true;
}

static bool read_attribute(struct reader *reader)
{
    struct attribute *attribute = &reader->attributes[reader->count];
    const char *quotes;

    if (reader->count++ == ATTRIBUTES)
        return refuse(reader, "an element has too many attributes");
    if (!read_word(reader, "= \n\t\r/>\"'<", attribute->name))
        return false;
    skip_blanks(reader);
    if (!attribute->name[0] || next(reader) != '=')
        return refuse(reader, "an attribute is NAME=\"VALUE\"");
    skip_blanks(reader);
    quotes = look(reader) == '\'' ? "'" : "\"";
    if (next(reader) != quotes[0])
        return refuse(reader, "the value of %s is not in quotes", attribute->name);
    return read_word(reader, quotes, attribute->value) &&
           (next(reader) == quotes[0] || refuse(reader, "a quote is missing"));
}

/* Reads the next element's tag and attributes; an empty tag is the end. */
static bool read_tag(struct reader *reader)
{
    reader->tag[0] = 0;
    reader->count = 0;
    for (;;) {
        skip_blanks(reader);
        if (reader->at == reader->end)
            return true;
        if (next(reader) != '<')
            return refuse(reader, "there is text between the elements");
        if (look(reader) == '?' ? !skip_to(reader, "?>")
                                : look(reader) == '!' && !skip_to(reader, "-->"))
            return false;
        if (reader->at[-1] == '<')
            break;
    }
    if (look(reader) == '/')
        reader->tag[0] = (char)next(reader);
    if (!read_word(reader, " \n\t\r/>", reader->tag + (reader->tag[0] == '/')))
        return false;
    if (!reader->tag[0])
        return refuse(reader, "an element has no name");
    for (skip_blanks(reader); look(reader) && look(reader) != '/' && look(reader) != '>';
         skip_blanks(reader))
        if (!read_attribute(reader))
            return false;
    reader->is_empty = look(reader) == '/';
    if (reader->is_empty)
        next(reader);
    return next(reader) == '>' || refuse(reader, "the element %s has no end", reader->tag);
}

/* ---- Elements -------------------------------------------------------------------------------- */

static const char *value_of(const struct reader *reader, const char *name)
{
    for (int i = 0; i < reader->count; i++)
        if (!strcmp(reader->attributes[i].name, name))
            return reader->attributes[i].value;
    return NULL;
}

static bool read_whole(const struct reader *reader, const char *name, int least, int most,
                       int *ret_whole)
{
    const char *text = value_of(reader, name);
    char *end = NULL;
    long whole = text ? strtol(text, &end, 10) : 0;

    if (!text)
        return refuse(reader, "%s lacks the attribute %s", reader->tag, name);
    if (!*text || *end || whole < least || whole > most)
        return refuse(reader, "%s is %s; it may be %d to %d", name, text, least, most);
    *ret_whole = (int)whole;
    return true;
}

/* Room for one more; false: no memory. */
static bool grow(const struct reader *reader, void **list, size_t count, size_t *room, size_t size)
{
    size_t wanted = *room ? 2 * *room : 64;
    void *moved;

    if (count < *room)
        return true;
    moved = realloc(*list, wanted * size);
    if (!moved)
        return refuse(reader, "out of memory");
    *list = moved;
    *room = wanted;
    return true;
}

static bool read_algo(struct reader *reader)
{
    static const struct {
        const char *name;
        rondo_collective collective;
    } names[] = {{"allreduce", RONDO_ALL_REDUCE},
                 {"allgather", RONDO_ALL_GATHER},
                 {"reduce_scatter", RONDO_REDUCE_SCATTER},
                 {"alltoall", RONDO_ALL_TO_ALL}};
    const char *coll = value_of(reader, "coll"), *name = value_of(reader, "name");
    size_t i = 0;

    if (reader->algo->ranks)
        return refuse(reader, "there is more than one algorithm");
    while (coll && i < sizeof(names) / sizeof(names[0]) && strcmp(coll, names[i].name) != 0)
        i++;
    if (!coll || i == sizeof(names) / sizeof(names[0]))
        return refuse(reader,
                      "coll is %s; it may be allreduce, allgather, reduce_scatter or "
                      "alltoall",
                      coll ? coll : "missing");
    reader->algo->collective = names[i].collective;
    snprintf(reader->algo->name, MSCCL_NAME, "%s", name && *name ? name : "msccl");
    for (char *at = reader->algo->name; *at; at++) /* a name of ours has fewer letters */
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", *at))
            *at = '_';
    return read_whole(reader, "ngpus", 1, MSCCL_RANKS, &reader->algo->ranks);
}

static bool read_gpu(struct reader *reader, int *ret_rank)
{
    static const char *const names[] = {"i_chunks", "o_chunks", "s_chunks"};
    int rank;

    if (!read_whole(reader, "id", 0, reader->algo->ranks - 1, &rank))
        return false;
    if (reader->algo->seen[rank])
        return refuse(reader, "GPU %d was there before", rank);
    reader->algo->seen[rank] = true;
    for (int i = 0; i < 3; i++)
        if (!read_whole(reader, names[i], 0, MSCCL_CHUNKS, &reader->algo->chunks[rank][i]))
            return false;
    *ret_rank = rank;
    return true;
}

static bool read_block(struct reader *reader, int rank)
{
    struct msccl_algo *algo = reader->algo;
    struct msccl_block block = {.rank = rank, .first = algo->step_count};
    int most = algo->ranks - 1;

    if (!read_whole(reader, "id", 0, 4096, &block.id) ||
        !read_whole(reader, "send", -1, most, &block.send) ||
        !read_whole(reader, "recv", -1, most, &block.receive) ||
        !read_whole(reader, "chan", 0, MSCCL_CHANNELS - 1, &block.channel) ||
        !grow(reader, (void **)&algo->blocks, algo->block_count, &algo->block_room, sizeof(block)))
        return false;
    for (size_t i = 0; i < algo->block_count; i++) {
        const struct msccl_block *other = &algo->blocks[i];

        if (other->rank != rank || (other->id != block.id && other->channel != block.channel))
            continue;
        if (other->id == block.id || (block.send >= 0 && other->send == block.send) ||
            (block.receive >= 0 && other->receive == block.receive))
            return refuse(reader, "GPU %d has two blocks %d, or two with the same peer and channel",
                          rank, block.id);
    }
    algo->blocks[algo->block_count++] = block;
    return true;
}

static bool read_buffer(const struct reader *reader, const char *name, const char *at_name,
                        char *ret_buffer, int *ret_at)
{
    const char *buffer = value_of(reader, name);

    if (!buffer || strlen(buffer) != 1 || !strchr("ios", buffer[0]))
        return refuse(reader, "%s is i, o or s", name);
    *ret_buffer = buffer[0];
    return read_whole(reader, at_name, -1, MSCCL_CHUNKS - 1, ret_at);
}

static bool read_step(struct reader *reader)
{
    static const struct {
        const char *name;
        unsigned does;
    } types[] = {{"s", MSCCL_SENDS},
                 {"r", MSCCL_RECEIVES | MSCCL_STORES},
                 {"rcs", MSCCL_RECEIVES | MSCCL_STORES | MSCCL_SENDS},
                 {"rrc", MSCCL_RECEIVES | MSCCL_ADDS | MSCCL_STORES},
                 {"rrs", MSCCL_RECEIVES | MSCCL_ADDS | MSCCL_SENDS},
                 {"rrcs", MSCCL_RECEIVES | MSCCL_ADDS | MSCCL_STORES | MSCCL_SENDS},
                 {"cpy", MSCCL_STORES},
                 {"re", MSCCL_ADDS | MSCCL_STORES},
                 {"nop", 0}};
    enum { TYPES = sizeof(types) / sizeof(types[0]) };
    struct msccl_algo *algo = reader->algo;
    struct msccl_block *block;
    struct msccl_step step = {.line = reader->line};
    const char *type = value_of(reader, "type");
    size_t i = 0;
    int number;

    while (type && i < TYPES && strcmp(types[i].name, type) != 0)
        i++;
    if (!type || i == TYPES)
        return refuse(reader, "no step has the type %s", type ? type : "\"\"");
    step.does = types[i].does;
    block = &algo->blocks[algo->block_count - 1];
    if (!read_whole(reader, "s", 0, 1 << 20, &number) ||
        !read_buffer(reader, "srcbuf", "srcoff", &step.from, &step.from_at) ||
        !read_buffer(reader, "dstbuf", "dstoff", &step.to, &step.to_at) ||
        !read_whole(reader, "cnt", 0, MSCCL_CHUNKS, &step.count) ||
        !read_whole(reader, "depid", -1, 4096, &step.block) ||
        !read_whole(reader, "deps", -1, 1 << 20, &step.behind) ||
        !grow(reader, (void **)&algo->steps, algo->step_count, &algo->step_room, sizeof(step)))
        return false;
    if ((size_t)number != block->count)
        return refuse(reader, "step %d stands where step %zu is due", number, block->count);
    if (((step.does & MSCCL_SENDS) && block->send < 0) ||
        ((step.does & MSCCL_RECEIVES) && block->receive < 0))
        return refuse(reader, "GPU %d, block %d, step %d: the block has no such peer", block->rank,
                      block->id, number);
    block->count++;
    algo->steps[algo->step_count++] = step;
    return true;
}

/* True if the element that was read stands directly in one of that name. */
static bool is_inside(const struct reader *reader, const char *parent)
{
    int depth = reader->depth - !reader->is_empty;

    return (depth > 0 && !strcmp(reader->open[depth - 1], parent)) ||
           refuse(reader, "%s is not inside of %s", reader->tag, parent);
}

/* Elements end in the order in which they stand in each other, so a file that was cut off, or put
 * together wrongly, is not taken for a smaller algorithm. */
static bool nest(struct reader *reader)
{
    const char *inner = reader->depth ? reader->open[reader->depth - 1] : "";

    if (!reader->tag[0] && reader->depth)
        return refuse(reader, "%s is not closed: is the end of the file missing?", inner);
    if (reader->tag[0] == '/') {
        if (!reader->depth || strcmp(reader->tag + 1, inner) != 0)
            return refuse(reader, "</%s> stands where %s is open", reader->tag + 1,
                          reader->depth ? inner : "nothing");
        reader->depth--;
    } else if (reader->tag[0] && !reader->is_empty) {
        if (reader->depth == DEPTH)
            return refuse(reader, "%s stands in too many others", reader->tag);
        strcpy(reader->open[reader->depth++], reader->tag);
    }
    return true;
}

static bool read_all(struct reader *reader)
{
    int rank = -1;

    while (read_tag(reader) && nest(reader)) {
        bool good = true;

        if (!reader->tag[0])
            return reader->algo->ranks > 0 || refuse(reader, "there is no algorithm");
        if (!strcmp(reader->tag, "algo"))
            good = read_algo(reader);
        else if (!strcmp(reader->tag, "gpu"))
            good = is_inside(reader, "algo") && read_gpu(reader, &rank);
        else if (!strcmp(reader->tag, "tb"))
            good = is_inside(reader, "gpu") && read_block(reader, rank);
        else if (!strcmp(reader->tag, "step"))
            good = is_inside(reader, "tb") && read_step(reader);
        else if (reader->tag[0] != '/')
            good = refuse(reader, "there is no element %s", reader->tag);
        if (!good)
            return false;
    }
    return false;
}

rondo_result msccl_algo_open(const char *path, const char *text, size_t length,
                             struct msccl_algo *algo)
{
    struct reader reader = {
        .path = path, .at = text, .end = text + length, .line = 1, .algo = algo};

    memset(algo, 0, sizeof(*algo));
    if (!read_all(&reader))
        return RONDO_ERROR_INVALID;
    for (int r = 0; r < algo->ranks; r++)
        if (!algo->seen[r])
            return rondo_fail(RONDO_ERROR_INVALID,
                              "The algorithm in %s is wrong: GPU %d is missing.", path, r);
    return RONDO_OK;
}

void msccl_algo_close(struct msccl_algo *algo)
{
    free(algo->blocks);
    free(algo->steps);
}
