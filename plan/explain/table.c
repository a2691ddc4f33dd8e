/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.c - what each rank has after a round.
 *
 * A row per rank. Sums: a column per chunk, which shows whose shares the most complete sum in this
 * rank's hands has; a finished one is marked. Collectives that move data: a column per rank whose
 * input travels, which shows the pieces of it that have come. Barrier: who is known to have come.
 */
#include "plan/explain/page.h"

#include <stdlib.h>
#include <string.h>

static bool is_barrier(const struct explain_page *page)
{
    return page->machine->collective == RONDO_BARRIER;
}

/* Atoms of the input of `rank`; in a barrier its arrival counts as one. */
static uint32_t pieces_of(const struct explain_page *page, int rank)
{
    int member = page->machine->member_of[rank];

    if (member == VERIFY_NOBODY)
        return 0;
    if (is_barrier(page))
        return 1;
    return page->machine->members[member].input_blocks * page->machine->parts;
}

static verify_value *hold_at(const struct explain_page *page, int rank, uint32_t item)
{
    return &page->holds[(size_t)rank * page->items + item];
}

/* True if that is news. */
static bool set_hold(const struct explain_page *page, int rank, verify_value value)
{
    verify_value *at = hold_at(page, rank, explain_item(page, value));
    struct value_node old = {.count = 0}, new;

    value_describe(&page->machine->values, value, &new);
    if (*at)
        value_describe(&page->machine->values, *at, &old);
    if (new.count < old.count ||
        (new.count == old.count && (*at & VALUE_FINISHED) == (value & VALUE_FINISHED)))
        return false;
    *at = value;
    return true;
}

/* At the start every rank has its own input. */
void explain_hold_inputs(const struct explain_page *page)
{
    for (int rank = 0; rank < page->machine->ranks; rank++)
        for (uint32_t p = 0; p < pieces_of(page, rank); p++)
            set_hold(page, rank, value_leaf(&page->machine->values, rank, p));
}

bool explain_hold_round(const struct explain_page *page, int level)
{
    bool news = false;
    const struct explain_hold *holds = page->record->holds.items;

    for (size_t i = 0; i < page->record->holds.count; i++)
        if (holds[i].level == level && holds[i].value)
            news |= set_hold(page, holds[i].rank, holds[i].value);
    return news;
}

/* Moved data: which pieces of rank `source`'s input rank `rank` has. */
static void describe_pieces(const struct explain_page *page, int rank, int source, char *text,
                            size_t size)
{
    uint32_t positions = page->machine->values.positions, found = 0, whole;
    char name[40];
    size_t length = 0;

    whole = pieces_of(page, source);
    text[0] = 0;
    for (uint32_t p = 0; p < positions; p++)
        if (*hold_at(page, rank, (uint32_t)source * positions + p)) {
            explain_name_position(page, p, name, sizeof(name));
            if (length + strlen(name) + 1 < size)
                length +=
                    (size_t)snprintf(text + length, size - length, "%s%s", found ? "," : "", name);
            found++;
        }
    if (found == whole)
        snprintf(text, size, is_barrier(page) ? "yes" : "all");
    else if (!found)
        snprintf(text, size, page->style->utf8 ? "\xc2\xb7" : ".");
}

static uint32_t columns_of(const struct explain_page *page)
{
    return page->machine->reduces ? page->items : (uint32_t)page->machine->ranks;
}

/* The text of one cell, or of its heading (rank -1). False: the column says nothing. */
static bool cell_text(const struct explain_page *page, int rank, uint32_t column, char *text,
                      size_t size)
{
    const struct verify_machine *machine = page->machine;

    if (machine->reduces) {
        if (rank < 0)
            explain_name_item(page, column, text, size);
        else if (*hold_at(page, rank, column))
            explain_value(page, *hold_at(page, rank, column), text, size);
        else
            snprintf(text, size, ".");
        return true;
    }
    if (!pieces_of(page, (int)column))
        return false;
    if (rank < 0)
        snprintf(text, size, is_barrier(page) ? "r%u came" : "from r%u", column);
    else
        describe_pieces(page, rank, (int)column, text, size);
    return true;
}

/* Width on the terminal: bytes that do not continue a character. */
static int width_of(const char *text)
{
    int width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static int column_width(const struct explain_page *page, uint32_t column)
{
    char text[EXPLAIN_CELL];
    int width = 0;

    for (int rank = -1; rank < page->machine->ranks; rank++)
        if (cell_text(page, rank, column, text, sizeof(text)) && width_of(text) > width)
            width = width_of(text);
    return width;
}

static void print_row(const struct explain_page *page, int rank, const int *widths)
{
    char text[EXPLAIN_CELL];
    int gap = 0; /* blanks before the next cell */

    if (rank < 0)
        fprintf(page->to, "  %-9s", "has now");
    else
        fprintf(page->to, "  rank %-4d", rank);
    for (uint32_t c = 0; c < columns_of(page); c++)
        if (widths[c] && cell_text(page, rank, c, text, sizeof(text))) {
            fprintf(page->to, "%*s%s", gap, "", text);
            gap = widths[c] + 2 - width_of(text);
        }
    fputc('\n', page->to);
}

static void print_table(const struct explain_page *page)
{
    uint32_t columns = columns_of(page);
    int *widths = calloc(columns ? columns : 1, sizeof(*widths));

    for (uint32_t c = 0; widths && c < columns; c++)
        widths[c] = column_width(page, c);
    for (int rank = -1; widths && rank < page->machine->ranks; rank++)
        if (rank < 0 || page->machine->member_of[rank] != VERIFY_NOBODY)
            print_row(page, rank, widths);
    free(widths);
}

/* Over many ranks: how far the slowest and the fastest rank are. */
static void print_summary(const struct explain_page *page)
{
    unsigned long least = page->items, most = 0;

    for (int rank = 0; rank < page->machine->ranks; rank++) {
        unsigned long has = 0;

        for (uint32_t i = 0; i < page->items; i++)
            has += page->machine->reduces ? !!(*hold_at(page, rank, i) & VALUE_FINISHED)
                                          : !!*hold_at(page, rank, i);
        least = has < least ? has : least;
        most = has > most ? has : most;
    }
    fprintf(page->to, "  has now: %lu to %lu of %u pieces%s per rank\n", least, most, page->items,
            page->machine->reduces ? " complete" : "");
}

void explain_print_holdings(const struct explain_page *page)
{
    if (page->machine->ranks > EXPLAIN_FULL)
        print_summary(page);
    else
        print_table(page);
}
