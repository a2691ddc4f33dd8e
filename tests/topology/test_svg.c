/* SPDX-License-Identifier: BSD-3-Clause */
/* test_svg.c - the picture: well-formed, everything in it, nothing outside the page. */
#include "recorded.h"

#include "base/fail.h"
#include "topology/boxes.h"
#include "topology/svg.h"

#include <criterion/criterion.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Are tags balanced and attributes quoted? Enough of XML for what svg.c writes. */
static bool well_formed(const char *text)
{
    char open[16][32];
    int depth = 0, roots = 0;

    while ((text = strchr(text, '<'))) {
        bool closing = *++text == '/';
        size_t name = strcspn(text += closing, " />");
        const char *end = text + name;

        for (bool quoted = false; *end && (*end != '>' || quoted); end++) {
            quoted ^= *end == '"';
            if (*end == '<')
                return false;
        }
        if (!*end || name == 0 || name > 31)
            return false;
        if (closing) {
            if (!depth || strlen(open[depth - 1]) != name || strncmp(open[--depth], text, name))
                return false;
        } else if (end[-1] != '/') {
            if (depth == 16 || (!depth && roots++))
                return false;
            snprintf(open[depth++], sizeof(open[0]), "%.*s", (int)name, text);
        }
        text = end;
    }
    return depth == 0 && roots == 1;
}

static char *draw(const struct topology *topology, int ranks)
{
    char file[] = "/tmp/rondo_svg_XXXXXX";
    int fd = mkstemp(file);
    char *text = calloc(1, 1 << 20);
    FILE *from;

    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(topology_write_svg(topology, file, ranks), RONDO_OK, "%s", fail_sentence());
    from = fopen(file, "r");
    cr_assert_gt(fread(text, 1, (1 << 20) - 1, from), 0);
    fclose(from);
    unlink(file);
    return text;
}

static int count(const char *text, const char *what)
{
    int found = 0;

    for (; (text = strstr(text, what)); text += strlen(what))
        found++;
    return found;
}

Test(svg, is_well_formed_for_every_recorded_machine)
{
    static const char *const names[] = {"two_sockets",     "four_sockets",     "eight_numa",
                                        "gpu4_one_socket", "gpu8_two_sockets", "plain"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct topology *topology = recorded_open(names[i]);
        char *text = draw(topology, topology_cores(topology));

        cr_expect(well_formed(text), "%s", names[i]);
        free(text);
        topology_close(topology);
    }
    cr_expect_not(well_formed("<svg><rect></svg>"));
    cr_expect_not(well_formed("<svg a=\"<\"/>"));
}

Test(svg, shows_every_core_device_and_arrow)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");
    char *text = draw(topology, 64);

    cr_expect_eq(count(text, "class=\"rank\""), 64);
    cr_expect_eq(count(text, "class=\"device\""), 16);
    cr_expect_eq(count(text, "marker-end"), 64 + 8);
    cr_expect_eq(count(text, "marker-end=\"url(#head5)\""),
                 2 + 2); /* sockets are crossed twice each */
    cr_expect_eq(count(text, "<circle"), 64 + 8);
    cr_expect_not_null(strstr(text, "mlx5_3"));
    free(text);
    topology_close(topology);
}

Test(svg, shows_ranks_that_share_a_core)
{
    struct topology *topology = recorded_open("plain");
    char *text = draw(topology, 9);

    cr_expect_not_null(strstr(text, ">0,4..<"));
    cr_expect_not_null(strstr(text, ">1,5<"));
    cr_expect_not_null(strstr(text, "9 ranks on 4 usable cores"));
    free(text);
    topology_close(topology);
}

Test(svg, writes_the_special_characters_of_xml_as_numbers)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    svg_text(to, "A&B <c> \"d\"\n");
    fclose(to);
    cr_expect_str_eq(text, "A&#38;B &#60;c&#62; &#34;d&#34;");
    free(text);
}

Test(svg, no_box_leaves_the_box_around_it_or_overlaps_its_neighbour)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");
    struct boxes boxes;

    cr_assert_eq(boxes_open(topology, &boxes), RONDO_OK);
    for (int i = 1; i < boxes.count; i++) {
        const struct box *a = &boxes.box[i], *around = &boxes.box[a->parent];

        cr_expect(a->x >= around->x && a->y >= around->y && a->x + a->w <= around->x + around->w &&
                      a->y + a->h <= around->y + around->h,
                  "%s leaves %s", a->label, around->label);
        for (int j = i + 1; j < boxes.count; j++) {
            const struct box *b = &boxes.box[j];

            cr_expect(b->parent != a->parent || a->x + a->w <= b->x || b->x + b->w <= a->x ||
                          a->y + a->h <= b->y || b->y + b->h <= a->y,
                      "%s overlaps %s", a->label, b->label);
        }
    }
    boxes_close(&boxes);
    topology_close(topology);
}

Test(svg, a_picture_of_no_ranks_or_into_no_folder_is_refused)
{
    struct topology *topology = recorded_open("plain");

    cr_expect_eq(topology_write_svg(topology, "x.svg", 0), RONDO_ERROR_INVALID);
    cr_expect_eq(topology_write_svg(topology, "no/such/folder/x.svg", 4), RONDO_ERROR_SYSTEM);
    cr_expect_not_null(strstr(fail_sentence(), "no/such/folder/x.svg"));
    topology_close(topology);
}
