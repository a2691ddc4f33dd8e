/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boxes.c - builds the nested boxes of a machine and lays them out.
 *
 * Boxes are made in one walk over all cores: where the package, NUMA node or cache differs from
 * that of the core before, a new box begins. Sizes grow from the inside out (children stand after
 * their parents in the array, so a walk from its end sees children first), then positions are
 * handed down from the outside in.
 */
#include "topology/boxes.h"

#include "base/fail.h"

#include <stdlib.h>
#include <string.h>

enum {
    GAP = 10,
    TITLE = 22,
    CORE_W = 46,
    CORE_H = 38,
    DEVICE_W = 128,
    DEVICE_H = 40,
    MACHINE_MARGIN = 16
};

/* Advance widths of the printable characters of ASCII, in hundredths of the font's size. */
static const unsigned char dejavu_sans[] = {
    32, 40, 46, 84, 64, 95, 78, 27, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 77, 75, 29, 29, 66, 56, 86, 75, 79,
    60, 79, 69, 63, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 63, 55, 63, 62, 35, 63,
    63, 28, 28, 58, 28, 97, 63, 61, 63,  63, 41, 52, 39, 63, 59, 82, 59, 59, 52, 64, 34, 64, 84};
static const unsigned char dejavu_sans_bold[] = {
    35, 46,  52, 84, 70, 100, 87, 31,  46, 46, 52, 84, 38, 42,  38, 37, 70, 70,  70,
    70, 70,  70, 70, 70, 70,  70, 40,  40, 84, 84, 84, 58, 100, 77, 76, 73, 83,  68,
    68, 82,  84, 37, 37, 77,  64, 100, 84, 85, 73, 85, 77, 72,  68, 81, 77, 110, 77,
    72, 73,  46, 37, 46, 84,  50, 50,  67, 72, 59, 72, 68, 44,  72, 71, 34, 34,  67,
    34, 104, 71, 69, 72, 72,  49, 60,  48, 71, 65, 92, 65, 65,  58, 71, 37, 71,  84};

double boxes_text_width(const char *text, int pixels, bool bold)
{
    const unsigned char *widths = bold ? dejavu_sans_bold : dejavu_sans;
    int sum = 0;

    for (; *text; text++)
        if (*text >= ' ' && *text <= '~') /* others are not drawn */
            sum += widths[*text - ' '];
    return sum * pixels / 100.0;
}

/* Index of the new box, -1 when memory is out. */
static int box_new(struct boxes *boxes, enum box_kind kind, int parent, int item)
{
    struct box *box;

    if (boxes->count == boxes->room) {
        int room = boxes->room ? 2 * boxes->room : 256;

        box = realloc(boxes->box, (size_t)room * sizeof(*box));
        if (!box)
            return -1;
        boxes->box = box;
        boxes->room = room;
    }
    box = &boxes->box[boxes->count];
    *box = (struct box){.kind = kind, .parent = parent, .item = item};
    return boxes->count++;
}

static int children_of(const struct boxes *boxes, int parent)
{
    int count = 0;

    for (int i = parent + 1; i < boxes->count; i++)
        count += boxes->box[i].parent == parent;
    return count;
}

/* ---- Building -------------------------------------------------------------------------------- */

/*
 * The box of this kind and number in `parent`, made if it is not there yet. A number of -1 needs no
 * box of its own.
 */
static int box_within(struct boxes *boxes, int parent, enum box_kind kind, int number,
                      const char *title)
{
    int box;

    if (number < 0 || parent < 0)
        return parent;
    for (int i = parent + 1; i < boxes->count; i++)
        if (boxes->box[i].parent == parent && boxes->box[i].kind == kind &&
            boxes->box[i].item == number)
            return i;
    box = box_new(boxes, kind, parent, number);
    if (box >= 0)
        snprintf(boxes->box[box].label, sizeof(boxes->box[box].label), "%s %d", title, number);
    return box;
}

static void describe_package(const struct topology *topology, struct box *box)
{
    hwloc_obj_t package =
        hwloc_get_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE, (unsigned)box->item);
    const char *model = package ? hwloc_obj_get_info_by_name(package, "CPUModel") : NULL;

    if (model && model[strspn(model, " ")])
        snprintf(box->label, sizeof(box->label), "package %d: %.44s", box->item, model);
}

static int add_cores(const struct topology *topology, struct boxes *boxes)
{
    int depth = hwloc_get_type_or_below_depth(topology->hwloc, HWLOC_OBJ_CORE);
    int usable = 0;
    hwloc_obj_t core = NULL;

    while ((core = hwloc_get_next_obj_by_depth(topology->hwloc, depth, core))) {
        bool mine = usable < topology->cores && topology->core[usable] == core;
        int number = (int)core->logical_index;
        int package = box_within(boxes, 0, BOX_PACKAGE,
                                 topology_index_of(topology, core, HWLOC_OBJ_PACKAGE), "package");
        int numa = box_within(boxes, package, BOX_NUMA,
                              topology_index_of(topology, core, HWLOC_OBJ_NUMANODE), "NUMA node");
        int cache = box_within(boxes, numa, BOX_CACHE,
                               topology_index_of(topology, core, HWLOC_OBJ_L3CACHE), "cache");

        if (cache < 0 || box_new(boxes, BOX_CORE, cache, mine ? number : -1) < 0)
            return -1;
        usable += mine;
        snprintf(boxes->box[boxes->count - 1].label, sizeof(boxes->box->label), "core %d", number);
    }
    for (int i = 1; i < boxes->count; i++)
        if (boxes->box[i].kind == BOX_PACKAGE)
            describe_package(topology, &boxes->box[i]);
    return 0;
}

/* The package to which all of `object` is wired, by box; the machine's box when it is several. */
static int home_of(const struct topology *topology, const struct boxes *boxes, hwloc_obj_t object)
{
    hwloc_obj_t around = hwloc_get_non_io_ancestor_obj(topology->hwloc, object);
    hwloc_obj_t package = NULL;

    if (around->cpuset && hwloc_get_nbobjs_inside_cpuset_by_type(topology->hwloc, around->cpuset,
                                                                 HWLOC_OBJ_PACKAGE) == 1)
        package = hwloc_get_obj_inside_cpuset_by_type(topology->hwloc, around->cpuset,
                                                      HWLOC_OBJ_PACKAGE, 0);
    else if (around->type != HWLOC_OBJ_PACKAGE)
        package = hwloc_get_ancestor_obj_by_type(topology->hwloc, HWLOC_OBJ_PACKAGE, around);
    for (int i = 1; package && i < boxes->count; i++)
        if (boxes->box[i].kind == BOX_PACKAGE && boxes->box[i].item == (int)package->logical_index)
            return i;
    return 0;
}

static void describe_device(const struct topology_device *device, struct box *box)
{
    bool gpu = device->kind == TOPOLOGY_GPU;

    if (gpu)
        snprintf(box->label, sizeof(box->label), "GPU %d", box->item);
    else
        snprintf(box->label, sizeof(box->label), "%s %s", topology_device_kind_name(device->kind),
                 device->name);
    if (device->link_GBps > 0)
        snprintf(box->detail, sizeof(box->detail), "%s, %.0f GB/s",
                 gpu ? device->name : device->pci + 5, device->link_GBps);
    else
        snprintf(box->detail, sizeof(box->detail), "%s", device->pci[0] ? device->pci : "virtual");
}

/* Devices under one switch share a box; its number is that of its first device. */
static int add_devices(const struct topology *topology, struct boxes *boxes)
{
    for (int i = 0; i < topology->devices; i++) {
        const struct topology_device *device = &topology->device[i];
        int first = 0;
        int home;
        int box;

        while (topology_device_distance(topology, i, first) > TOPOLOGY_CLOSE)
            first++;
        home = home_of(topology, boxes, topology->device_object[i]);
        home = box_within(boxes, home, BOX_SWITCH, first, "");
        box = home < 0 ? -1 : box_new(boxes, BOX_DEVICE, home, i);
        if (box < 0)
            return -1;
        describe_device(device, &boxes->box[box]);
        snprintf(boxes->box[home].label, sizeof(boxes->box[home].label), "%s",
                 device->pci[0] ? "PCI" : "virtual");
    }
    return 0;
}

/* ---- Layout ---------------------------------------------------------------------------------- */

static int columns_for(const struct box *box, int children, enum box_kind inside)
{
    if (inside == BOX_CORE) {
        if (children <= 4)
            return children;
        return children <= 16 ? 4 : 8;
    }
    if (box->kind == BOX_SWITCH)
        return 1;
    return children <= 1 ? 1 : 2;
}

/*
 * Devices of a package stand in a row of their own under its cores: two grids, one below the other.
 */
static bool in_grid(const struct box *box, bool devices)
{
    return (box->kind == BOX_SWITCH || box->kind == BOX_DEVICE) == devices;
}

struct grid {
    double w, h; /* of a cell: that of the largest child */
    int columns, count;
};

static struct grid grid_of(const struct boxes *boxes, int parent, bool devices)
{
    struct grid grid = {0};
    enum box_kind inside = BOX_DEVICE;

    for (int i = parent + 1; i < boxes->count; i++) {
        const struct box *box = &boxes->box[i];

        if (box->parent != parent || !in_grid(box, devices))
            continue;
        grid.count++;
        inside = box->kind;
        grid.w = box->w > grid.w ? box->w : grid.w;
        grid.h = box->h > grid.h ? box->h : grid.h;
    }
    grid.columns = columns_for(&boxes->box[parent], grid.count, inside);
    if (inside == BOX_SWITCH)
        grid.columns = grid.count < 4 ? grid.count : 4;
    return grid;
}

static double grid_width(struct grid grid)
{
    return grid.count ? grid.columns * (grid.w + GAP) - GAP : 0;
}

static double grid_height(struct grid grid)
{
    int rows = grid.count ? (grid.count + grid.columns - 1) / grid.columns : 0;

    return rows * (grid.h + GAP);
}

static double margin_of(const struct box *box)
{
    return box->kind == BOX_MACHINE ? MACHINE_MARGIN : GAP;
}

/* The width that the words in a box need, with some room on either side. */
static double words_width(const struct box *box)
{
    double label, detail;

    switch (box->kind) {
    case BOX_CORE:
        return boxes_text_width(box->label, BOXES_SMALL_PIXELS, false) + 4;
    case BOX_DEVICE:
        label = boxes_text_width(box->label, BOXES_DEVICE_PIXELS, true);
        detail = boxes_text_width(box->detail, BOXES_SMALL_PIXELS, false);
        return (label > detail ? label : detail) + 8;
    case BOX_PACKAGE:
        return boxes_text_width(box->label, BOXES_HEADING_PIXELS, true) + 2 * BOXES_INDENT;
    default:
        return boxes_text_width(box->label, BOXES_TITLE_PIXELS, false) + 2 * BOXES_INDENT;
    }
}

static double at_least(double width, const struct box *box)
{
    return width > words_width(box) ? width : words_width(box);
}

static void measure(struct boxes *boxes, int index)
{
    struct box *box = &boxes->box[index];
    struct grid inner = grid_of(boxes, index, false);
    struct grid devices = grid_of(boxes, index, true);
    double wider =
        grid_width(inner) > grid_width(devices) ? grid_width(inner) : grid_width(devices);

    if (box->kind == BOX_CORE || box->kind == BOX_DEVICE) {
        box->w = at_least(box->kind == BOX_CORE ? CORE_W : DEVICE_W, box);
        box->h = box->kind == BOX_CORE ? CORE_H : DEVICE_H;
        return;
    }
    box->w = at_least(wider + 2 * margin_of(box), box);
    box->h = TITLE + grid_height(inner) + grid_height(devices) + margin_of(box) - GAP;
}

static void place_grid(struct boxes *boxes, int parent, bool devices, double top)
{
    const struct box *around = &boxes->box[parent];
    struct grid grid = grid_of(boxes, parent, devices);
    int index = 0;

    for (int i = parent + 1; i < boxes->count; i++) {
        struct box *box = &boxes->box[i];
        int row;
        int column;

        if (box->parent != parent || !in_grid(box, devices))
            continue;
        row = index / grid.columns;
        column = index % grid.columns;
        if (row % 2 && grid.columns > 1 && !devices) /* every second row runs backwards */
            column = grid.columns - 1 - column;
        box->x = around->x + margin_of(around) + column * (grid.w + GAP);
        box->y = top + row * (grid.h + GAP);
        if (box->kind == BOX_CORE || box->kind == BOX_DEVICE)
            box->w = grid.w; /* those of a grid are alike */
        else
            box->h = grid.h;
        index++;
    }
}

static void lay_out(struct boxes *boxes)
{
    for (int i = boxes->count - 1; i >= 0; i--)
        measure(boxes, i);
    for (int i = 0; i < boxes->count; i++) {
        const struct box *box = &boxes->box[i];

        if (children_of(boxes, i) == 0)
            continue;
        place_grid(boxes, i, false, box->y + TITLE);
        place_grid(boxes, i, true, box->y + TITLE + grid_height(grid_of(boxes, i, false)));
    }
}

rondo_result boxes_open(const struct topology *topology, struct boxes *ret_boxes)
{
    struct boxes boxes = {0};

    if (box_new(&boxes, BOX_MACHINE, -1, 0) < 0 || add_cores(topology, &boxes) ||
        add_devices(topology, &boxes)) {
        boxes_close(&boxes);
        return rondo_fail(RONDO_ERROR_MEMORY, "out of memory while drawing the machine");
    }
    lay_out(&boxes);
    *ret_boxes = boxes;
    return RONDO_OK;
}

void boxes_close(struct boxes *boxes)
{
    free(boxes->box);
}

const struct box *boxes_find(const struct boxes *boxes, enum box_kind kind, int item)
{
    for (int i = 0; i < boxes->count; i++)
        if (boxes->box[i].kind == kind && boxes->box[i].item == item)
            return &boxes->box[i];
    return NULL;
}
