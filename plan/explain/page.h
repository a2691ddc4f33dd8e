/* SPDX-License-Identifier: BSD-3-Clause */
/* page.h - what the parts of explain.c share. */
#ifndef RONDO_PLAN_EXPLAIN_PAGE_H
#define RONDO_PLAN_EXPLAIN_PAGE_H

#include "plan/explain/explain.h"
#include "plan/explain/record.h"

enum { EXPLAIN_CELL = 160 };

struct explain_page {
    const struct explain_style *style;
    const struct explain_record *record;
    const struct verify_machine *machine;
    FILE *to;
    uint32_t items;      /* sums: positions, else leaves */
    verify_value *holds; /* [rank][item] */
};

/* Names a part of a rank's input: "c1", "b2", "b2.c1"; "": there is but one. */
void explain_name_position(const struct explain_page *page, uint32_t position, char *text,
                           size_t size);
/*
 * The column a value belongs to, and its name: that of its position, with "r0." before it where
 * data only moves.
 */
uint32_t explain_item(const struct explain_page *page, verify_value value);
void explain_name_item(const struct explain_page *page, uint32_t item, char *text, size_t size);
/* A sum: "{0,2-4}*" */
void explain_value(const struct explain_page *page, verify_value value, char *text, size_t size);

/* explain/table.c: what each rank has. All of a level enter before the table is printed. */
void explain_hold_inputs(const struct explain_page *page);
/* True if that is news. */
bool explain_hold_round(const struct explain_page *page, int level);
void explain_print_holdings(const struct explain_page *page);

#endif
