/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explain.c - prints what explain/record.c has seen: rounds of messages, each with a table of what
 * the ranks then have (explain/table.c). Nothing here knows an algorithm.
 */
#include "plan/explain/explain.h"
#include "plan/explain/page.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN_WHEN_MANY = 4 }; /* messages of a round */

static const char *arrow(const struct explain_page *page)
{
    return page->style->utf8 ? "\xe2\x86\x92" : "->";
}

static void heading(const struct explain_page *page, const char *text)
{
    fprintf(page->to, page->style->bold ? "\n\033[1m%s\033[0m\n" : "\n%s\n", text);
}

uint32_t explain_item(const struct explain_page *page, verify_value value)
{
    struct value_node node;

    if (!page->machine->reduces)
        return value_expression(value) - 1;
    value_describe(&page->machine->values, value, &node);
    return node.position;
}

void explain_name_position(const struct explain_page *page, uint32_t position, char *text,
                           size_t size)
{
    uint32_t positions = page->machine->values.positions, parts = page->machine->parts;

    text[0] = 0;
    if (positions > parts && parts > 1)
        snprintf(text, size, "b%u.c%u", position / parts, position % parts);
    else if (positions > 1)
        snprintf(text, size, "%c%u", parts > 1 ? 'c' : 'b', position);
}

void explain_name_item(const struct explain_page *page, uint32_t item, char *text, size_t size)
{
    uint32_t positions = page->machine->values.positions;
    char place[40], of[24] = "";

    explain_name_position(page, item % positions, place, sizeof(place));
    if (!page->machine->reduces)
        snprintf(of, sizeof(of), "r%u", item / positions);
    if (!of[0] && !place[0])
        snprintf(place, sizeof(place), "all");
    snprintf(text, size, "%s%s%s", of, of[0] && place[0] ? "." : "", place);
}

/* "{0,2-4}" */
static void name_ranks(const struct explain_page *page, verify_value value, char *text, size_t size)
{
    const struct value_table *values = &page->machine->values;
    size_t length = (size_t)snprintf(text, size, "{");
    const char *comma = "";

    for (int r = 0; r < page->machine->ranks && length + 24 < size; r++) {
        int last = r;

        if (!value_has_rank(values, value, r))
            continue;
        while (last + 1 < page->machine->ranks && value_has_rank(values, value, last + 1))
            last++;
        if (last < r + 2)
            last = r;
        length += (size_t)snprintf(text + length, size - length, last > r ? "%s%d-%d" : "%s%d",
                                   comma, r, last);
        comma = ",";
        r = last;
    }
    snprintf(text + length, size - length, length + 24 < size ? "}" : "..}");
}

/* Write the ranks of a value, which follow its name in a table's cell or in a message. */
void explain_value(const struct explain_page *page, verify_value value, char *text, size_t size)
{
    char ranks[EXPLAIN_CELL - 1];

    name_ranks(page, value, ranks, sizeof(ranks));
    snprintf(text, size, "%s%s", ranks, value & VALUE_FINISHED ? "*" : "");
}

/* ---- Messages -------------------------------------------------------------------------------- */

static bool alike(const struct explain_page *page, verify_value a, verify_value b)
{
    char one[EXPLAIN_CELL], other[EXPLAIN_CELL];

    if (explain_item(page, b) != explain_item(page, a) + 1)
        return false;
    if (!page->machine->reduces)
        return explain_item(page, a) / page->machine->values.positions ==
               explain_item(page, b) / page->machine->values.positions;
    explain_value(page, a, one, sizeof(one));
    explain_value(page, b, other, sizeof(other));
    return !strcmp(one, other);
}

/* "c0..c2 = {0,1}, c5 = {1}" */
static void print_values(const struct explain_page *page, const verify_value *values,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t last = i;
        char name[64], set[EXPLAIN_CELL];

        while (last + 1 < count && alike(page, values[last], values[last + 1]))
            last++;
        explain_name_item(page, explain_item(page, values[i]), name, sizeof(name));
        fprintf(page->to, "%s%s", i ? ", " : "", name);
        if (last > i) {
            explain_name_item(page, explain_item(page, values[last]), name, sizeof(name));
            fprintf(page->to, "..%s", name);
        }
        if (page->machine->reduces) {
            explain_value(page, values[i], set, sizeof(set));
            fprintf(page->to, " = %s", set);
        }
        i = last;
    }
}

static void print_message(const struct explain_page *page, const struct explain_message *message)
{
    const verify_value *values = page->record->values.items;
    static const char *const uses[] = {"",
                                       "added",
                                       "kept",
                                       "added, kept",
                                       "passed on",
                                       "added, passed on",
                                       "kept, passed on",
                                       "added, kept, passed on"};

    fprintf(page->to, "  rank %d %s rank %d   ", message->from, arrow(page), message->to);
    if (message->flags & PLAN_ADDRESSES)
        fprintf(page->to, "where its buffers are");
    else if (!message->count)
        fprintf(page->to, "a flag without data");
    else
        print_values(page, values + message->first, message->count);
    if (message->use)
        fprintf(page->to, "   (%s)", uses[message->use]);
    fputc('\n', page->to);
}

static void print_access(const struct explain_page *page, const struct explain_access *access)
{
    const struct plan *plan = page->machine->plans[page->machine->member_of[access->rank]];
    char text[400];

    plan_describe_step(plan, &plan->steps[access->step], text, sizeof(text));
    fprintf(page->to, "  rank %d: %s\n", access->rank, text);
}

/* Everything of one round; over many ranks only the first few of each kind. */
static void print_round(const struct explain_page *page, int level)
{
    const struct explain_message *messages = page->record->messages.items;
    const struct explain_access *accesses = page->record->accesses.items;
    bool many = page->machine->ranks > EXPLAIN_FULL;
    unsigned long sent = 0, touched = 0;

    for (size_t i = 0; i < page->record->messages.count; i++)
        if (messages[i].level == level && (sent++ < SHOWN_WHEN_MANY || !many))
            print_message(page, &messages[i]);
    if (many && sent > SHOWN_WHEN_MANY)
        fprintf(page->to, "  ... %lu messages in this round\n", sent);
    for (size_t i = 0; i < page->record->accesses.count; i++)
        if (accesses[i].level == level && (touched++ < SHOWN_WHEN_MANY || !many))
            print_access(page, &accesses[i]);
    if (many && touched > SHOWN_WHEN_MANY)
        fprintf(page->to, "  ... %lu steps on memory of peers\n", touched);
}

/* ---- The page -------------------------------------------------------------------------------- */

static void print_legend(const struct explain_page *page)
{
    const struct verify_machine *machine = page->machine;
    uint32_t parts = machine->parts, blocks = machine->values.positions / parts;

    if (machine->collective == RONDO_BARRIER) {
        fprintf(page->to, "r0 came: this rank knows that rank 0 has entered the barrier.\n");
        return;
    }
    if (!machine->reduces && blocks == 1 && parts == 1)
        fprintf(page->to, "r0: the input of rank 0, and so on.");
    else if (!machine->reduces)
        fprintf(page->to, "r0: the input of rank 0, and so on; ");
    if (blocks > 1)
        fprintf(page->to, "b0 .. b%u: its %u blocks, one per rank%s", blocks - 1, blocks,
                parts > 1 || machine->reduces ? "; " : ".");
    if (parts > 1)
        fprintf(page->to, "c0 .. c%u: %s cut into %u chunks%s", parts - 1,
                blocks > 1 ? "a block" : "the vector", parts, machine->reduces ? "; " : ".");
    if (machine->reduces)
        fprintf(page->to, "{0,1}: a sum with the shares of ranks 0 and 1; *: finished.");
    fputc('\n', page->to);
}

static void count_totals(const struct explain_record *record, struct explain_totals *ret_totals)
{
    const struct explain_message *messages = record->messages.items;
    struct explain_totals totals = {.rounds = record->levels,
                                    .messages = record->messages.count,
                                    .parts = record->machine.parts};

    for (int rank = 0; rank < record->machine.ranks; rank++) {
        unsigned long sent = 0;

        for (size_t i = 0; i < record->messages.count; i++)
            if (messages[i].from == rank)
                sent += messages[i].count;
        totals.most_sent = sent > totals.most_sent ? sent : totals.most_sent;
    }
    for (size_t i = 0; i < record->messages.count; i++)
        totals.data_messages += messages[i].count > 0;
    *ret_totals = totals;
}

static void print_rounds(const struct explain_page *page)
{
    char title[64];

    print_legend(page);
    heading(page, "Start");
    print_round(page, 0);
    explain_hold_inputs(page);
    explain_hold_round(page, 0);
    explain_print_holdings(page);
    for (int level = 1; level <= page->record->levels; level++) {
        snprintf(title, sizeof(title), "Round %d of %d", level, page->record->levels);
        heading(page, title);
        print_round(page, level);
        if (explain_hold_round(page, level))
            explain_print_holdings(page);
    }
}

rondo_result explain_plans(struct plan *const *plans, int size, const struct explain_style *style,
                           FILE *to, struct explain_totals *ret_totals)
{
    struct explain_record record;
    rondo_result result = explain_record_open(&record, plans, size);
    struct explain_page page = {
        .style = style, .record = &record, .machine = &record.machine, .to = to};

    if (!result && to) {
        page.items =
            record.machine.reduces ? record.machine.values.positions : record.machine.values.leaves;
        page.holds = calloc((size_t)record.machine.ranks * page.items + 1, sizeof(*page.holds));
        if (page.holds)
            print_rounds(&page);
        else
            result = RONDO_ERROR_MEMORY;
        free(page.holds);
    }
    if (!result)
        count_totals(&record, ret_totals);
    explain_record_close(&record);
    return result;
}
