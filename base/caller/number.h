/* SPDX-License-Identifier: BSD-3-Clause */
/* number.h - numbers as text have a point, whatever the program's locale has. */
#ifndef RONDO_BASE_CALLER_NUMBER_H
#define RONDO_BASE_CALLER_NUMBER_H

#include <locale.h>
#include <stdlib.h>

/* strtod() as in a program that has not called setlocale(). */
static inline double number_read(const char *text, char **ret_end)
{
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    double value = plain ? strtod_l(text, ret_end, plain) : strtod(text, ret_end);

    if (plain)
        freelocale(plain);
    return value;
}

#endif
