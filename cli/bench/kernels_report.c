/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels_report.c - what `rondo bench kernels` found: a table, CSV, JSON. */
#include "cli/bench/kernels.h"

#include "bench/pattern.h"
#include "cli/bench/report.h"
#include "cli/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

double kernels_percent(const struct kernels_figure *figure)
{
    return figure->copy > 0 ? 100 * figure->kernel / figure->copy : 0;
}

void kernels_print_head(const struct kernels_options *options, size_t bytes)
{
    printf("# %s of %zu bytes each to one result, GB/s read and written; copy: memcpy in as much "
           "memory\n#%7s %12s",
           pattern_op_name(options->bench.call.op), bytes, "level", "type");
    for (int i = 0; i < KERNELS_SOURCES; i++)
        printf(" | %d sources %7s %9s", kernels_sources[i], "copy", "% of copy");
    printf("\n");
}

void kernels_print_row(const struct kernels_row *row)
{
    printf("%8s %12s", row->level, pattern_type_name(row->type));
    for (int i = 0; i < KERNELS_SOURCES; i++)
        printf(" | %9.1f %7.1f %9.1f", row->figures[i].kernel / 1e9, row->figures[i].copy / 1e9,
               kernels_percent(&row->figures[i]));
    printf("\n");
    fflush(stdout);
}

static void print_csv(const struct kernels_result *result, FILE *to)
{
    fprintf(to, "level,dtype,op,bytes,sources,GBps,copy_GBps,percent_of_copy\n");
    for (int i = 0; i < result->count; i++)
        for (int k = 0; k < KERNELS_SOURCES; k++) {
            const struct kernels_row *row = &result->rows[i];

            fprintf(to, "%s,%s,%s,%zu,%d,%.4f,%.4f,%.2f\n", row->level,
                    pattern_type_name(row->type), pattern_op_name(result->options->bench.call.op),
                    row->bytes, kernels_sources[k], row->figures[k].kernel / 1e9,
                    row->figures[k].copy / 1e9, kernels_percent(&row->figures[k]));
        }
}

int kernels_csv_write(const struct kernels_result *result, const char *path)
{
    FILE *file = fopen(path, "we");
    bool bad = !file;

    if (file) {
        print_csv(result, file);
        bad = ferror(file) != 0;
        bad |= fclose(file) != 0;
    }
    if (bad)
        fprintf(stderr, "rondo bench kernels: cannot write %s: %s\n", path, strerror(errno));
    return bad ? -1 : 0;
}

int kernels_json_write(const struct kernels_result *result, const char *path)
{
    json_t *rows = json_array();

    for (int i = 0; i < result->count; i++)
        for (int k = 0; k < KERNELS_SOURCES; k++) {
            const struct kernels_row *row = &result->rows[i];

            json_array_append_new(
                rows, json_pack("{s:s, s:s, s:I, s:i, s:f, s:f, s:f}", "level", row->level, "dtype",
                                pattern_type_name(row->type), "bytes", (json_int_t)row->bytes,
                                "sources", kernels_sources[k], "GBps", row->figures[k].kernel / 1e9,
                                "copy_GBps", row->figures[k].copy / 1e9, "percent_of_copy",
                                kernels_percent(&row->figures[k])));
        }
    return json_file_write("rondo bench kernels", path,
                           json_pack("{s:o, s:s, s:o}", "machine", bench_machine_json(), "op",
                                     pattern_op_name(result->options->bench.call.op), "rows", rows))
               ? 0
               : -1;
}
