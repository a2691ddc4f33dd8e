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

/* True if tags are balanced and attributes quoted: enough of XML for what svg.c writes. */
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

enum { TEXT_ROOM = 4 << 20 };

static char *draw(const struct topology *topology, int ranks)
{
    char file[] = "/tmp/rondo_svg_XXXXXX";
    int fd = mkstemp(file);
    char *text = calloc(1, TEXT_ROOM);
    FILE *from;

    cr_assert_geq(fd, 0);
    close(fd);
    cr_assert_eq(topology_write_svg(topology, file, ranks), RONDO_OK, "%s", fail_sentence());
    from = fopen(file, "r");
    cr_assert_gt(fread(text, 1, TEXT_ROOM - 1, from), 0);
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

static const char *const machines[] = {"two_sockets",     "four_sockets",     "eight_numa",
                                       "gpu4_one_socket", "gpu8_two_sockets", "plain"};
enum { MACHINES = sizeof(machines) / sizeof(machines[0]) };

Test(svg, is_well_formed_for_every_recorded_machine)
{
    for (size_t i = 0; i < MACHINES; i++) {
        struct topology *topology = recorded_open(machines[i]);
        char *text = draw(topology, topology_cores(topology));

        cr_expect(well_formed(text), "%s", machines[i]);
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

/* ---- Words ----------------------------------------------------------------------------------- */

/* The widths are those in which librsvg draws these texts in DejaVu Sans. */
Test(svg, the_width_of_a_text_is_that_of_its_letters)
{
    cr_expect_float_eq(boxes_text_width("package 0: One socket without shared caches", 13, true),
                       336, 2);
    cr_expect_float_eq(boxes_text_width("same NUMA node or host bridge", 11, false), 178, 2);
}

/* Every name is as long as a name can be. */
static void lengthen_names(struct topology *topology)
{
    for (int i = 0; i < topology->devices; i++)
        snprintf(topology->device[i].name, sizeof(topology->device[i].name),
                 "enp161s0f0np%u_MMMMMMMM", (unsigned)i % 1000);
}

static double width_of_words(const struct box *box)
{
    double detail = boxes_text_width(box->detail, BOXES_SMALL_PIXELS, false);
    double label;

    if (box->kind == BOX_PACKAGE)
        return boxes_text_width(box->label, BOXES_HEADING_PIXELS, true) + BOXES_INDENT;
    if (box->kind == BOX_CORE)
        return boxes_text_width(box->label, BOXES_SMALL_PIXELS, false);
    if (box->kind == BOX_DEVICE) {
        label = boxes_text_width(box->label, BOXES_DEVICE_PIXELS, true);
        return label > detail ? label : detail;
    }
    return boxes_text_width(box->label, BOXES_TITLE_PIXELS, false) + BOXES_INDENT;
}

Test(svg, no_label_leaves_its_box)
{
    for (size_t i = 0; i < MACHINES; i++) {
        struct topology *topology = recorded_open(machines[i]);
        struct boxes boxes;

        lengthen_names(topology);
        cr_assert_eq(boxes_open(topology, &boxes), RONDO_OK);
        for (int b = 0; b < boxes.count; b++)
            cr_expect(width_of_words(&boxes.box[b]) <= boxes.box[b].w,
                      "%s: '%s' is %.0f wide in %.0f", machines[i], boxes.box[b].label,
                      width_of_words(&boxes.box[b]), boxes.box[b].w);
        boxes_close(&boxes);
        topology_close(topology);
    }
}

/* Returns the width of the widest text of a class, whose font has `pixels` unless a text says
 * otherwise. */
static double widest(const char *picture, const char *class, int pixels)
{
    double most = 0;

    while ((picture = strstr(picture, class))) {
        const char *end = strchr(picture += strlen(class), '>');
        const char *size = strstr(picture, "font-size:");
        double font = size && size < end ? strtod(size + 10, NULL) : pixels;
        char text[32];

        snprintf(text, sizeof(text), "%.*s", (int)strcspn(end + 1, "<"), end + 1);
        if (boxes_text_width(text, 1000, true) * font / 1000 > most)
            most = boxes_text_width(text, 1000, true) * font / 1000;
    }
    return most;
}

Test(svg, numbers_of_many_ranks_stay_on_their_cores_and_nodes)
{
    struct topology *topology = recorded_open("plain");

    for (int ranks = 4; ranks <= 1100; ranks *= 4) {
        char *text = draw(topology, ranks == 1024 ? 1100 : ranks);

        cr_expect_leq(widest(text, "class=\"rank\"", 14), 46, "%d ranks", ranks);
        cr_expect_leq(widest(text, "class=\"inner\"", 11), 26, "%d ranks", ranks);
        cr_expect_leq(widest(text, "class=\"leaf\"", 11), 26, "%d ranks", ranks);
        free(text);
    }
    topology_close(topology);
}

/* ---- Legend ---------------------------------------------------------------------------------- */

/* A legend's entry is a line of its own, drawn with its colour. */
static bool explains(const char *picture, int distance, const char *words)
{
    char entry[128];
    const char *at;

    snprintf(entry, sizeof(entry), "h24\" stroke=\"%s\"", svg_colour(distance));
    at = strstr(picture, entry);
    if (!at)
        return !words;
    at = strchr(strstr(at, "<text"), '>') + 1;
    return words && !strncmp(at, words, strlen(words)) && at[strlen(words)] == '<';
}

Test(svg, the_legend_names_what_is_there_and_nothing_else)
{
    struct topology *topology = recorded_open("plain");
    char *text = draw(topology, 4);

    cr_expect(explains(text, TOPOLOGY_NUMA, "same NUMA node"));
    cr_expect_eq(count(text, "h24\" stroke="), 1, "%s", text);
    free(text);
    text = draw(topology, 9);
    cr_expect(explains(text, TOPOLOGY_SAME, "same core"));
    cr_expect_eq(count(text, "h24\" stroke="), 2);
    free(text);
    text = draw(topology, 1);
    cr_expect_eq(count(text, "h24\" stroke="), 0);
    free(text);
    topology_close(topology);
}

Test(svg, the_legend_tells_distances_of_gpus_from_those_of_cores)
{
    struct topology *topology = recorded_open("gpu8_two_sockets");
    char *text = draw(topology, 64);

    cr_expect(explains(text, TOPOLOGY_CLOSE, "shared cache; GPUs: same PCI switch"));
    cr_expect(explains(text, TOPOLOGY_NUMA, "same NUMA node; GPUs: same host bridge or NUMA node"));
    cr_expect(explains(text, TOPOLOGY_MACHINE, "other package"));
    cr_expect(explains(text, TOPOLOGY_LINKED, NULL));
    cr_expect(explains(text, TOPOLOGY_PACKAGE, NULL));
    free(text);
    text = draw(topology, 1);
    cr_expect(explains(text, TOPOLOGY_CLOSE, "same PCI switch"));
    free(text);
    topology_close(topology);
}

/* Every colour of an arrow or edge is in the legend. */
Test(svg, every_arrow_is_explained)
{
    for (size_t i = 0; i < MACHINES; i++) {
        struct topology *topology = recorded_open(machines[i]);
        char *text = draw(topology, 2 * topology_cores(topology) + 1);

        for (int d = TOPOLOGY_SAME; d <= TOPOLOGY_MACHINE; d++) {
            char stroke[64];
            int used;

            snprintf(stroke, sizeof(stroke), "fill=\"none\" stroke=\"%s\"", svg_colour(d));
            used = count(text, stroke);
            cr_expect_eq(used > 0, !explains(text, d, NULL), "%s, distance %d", machines[i], d);
        }
        free(text);
        topology_close(topology);
    }
}
