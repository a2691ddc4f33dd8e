/* SPDX-License-Identifier: BSD-3-Clause */
/* simulate.c - `rondo simulate`: what a collective would take on a machine that is not here. */
#include "cli/simulate/simulate.h"

#include "cli/commands.h"
#include "cli/common/output.h"

#include <stdlib.h>
#include <string.h>

static void list_machines(void)
{
    struct machine machine;
    const char *name, *sentence, *key;
    char value[64];

    for (int i = 0; (name = machine_name(i, &sentence)); i++)
        printf("%-11s %s\n", name, sentence);
    printf("\nKeys, and their values in dgx:\n");
    if (machine_find("dgx", &machine))
        return;
    for (int i = 0; (key = machine_key(i, &sentence)); i++) {
        machine_value(&machine, i, value);
        printf("  %-16s %-9s %s\n", key, value, sentence);
    }
}

static bool on_stdout(const char *file)
{
    return file && !strcmp(file, "-");
}

int command_simulate(int argc, char **argv)
{
    struct answers answers = {0};
    struct ask ask;
    int status;

    ask_read(argc, argv, &ask);
    if (ask.list_only) {
        list_machines();
        return 0;
    }
    status = output_begin("rondo simulate", ask.csv, ask.json, ask.svg);
    if (status)
        return status;
    status = answer_all(&ask, &answers);
    if (answers.count) {
        if (!on_stdout(ask.csv) && !on_stdout(ask.json))
            report_table(&ask, &answers);
        if (!report_files(&ask, &answers))
            status = 1;
    }
    free(answers.list);
    return status;
}
