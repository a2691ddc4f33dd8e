/* SPDX-License-Identifier: BSD-3-Clause */
/* test_checkpoint_place.c - what has the name of a checkpoint: a file, a link, a pipe, a device. */
#include <rondo/train.h>

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static void begin(void)
{
    strcpy(folder, "/tmp/rondo-checkpoint-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
}

static void end(void)
{
    char command[96];

    snprintf(command, sizeof(command), "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(checkpoint_place, .init = begin, .fini = end);

static rondo_result write_to(const char *path)
{
    rondo_checkpoint *checkpoint = NULL;
    rondo_result result = rondo_checkpoint_create(path, NULL, &checkpoint);

    if (!result)
        result = rondo_checkpoint_commit(checkpoint);
    rondo_checkpoint_close(checkpoint);
    return result;
}

static mode_t mode_of(const char *path)
{
    struct stat status = {0};

    return lstat(path, &status) ? 0 : status.st_mode;
}

Test(checkpoint_place, a_pipe_or_a_device_is_refused_and_stays)
{
    rondo_checkpoint *checkpoint;

    cr_assert_eq(mkfifo("pipe", 0600), 0);
    cr_expect_eq(write_to("pipe"), RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_ddp_last_error(), "no file"), "%s", rondo_ddp_last_error());
    cr_expect(S_ISFIFO(mode_of("pipe")));
    cr_expect_eq(rename("pipe", "file.part"), 0);
    cr_expect_eq(write_to("file"), RONDO_ERROR_SYSTEM, "nobody reads it");
    cr_assert_eq(rename("file.part", "pipe"), 0);
    cr_expect_eq(rondo_checkpoint_open("pipe", NULL, &checkpoint), RONDO_ERROR_INVALID);
    cr_expect(strstr(rondo_ddp_last_error(), "no file"), "%s", rondo_ddp_last_error());
    if (mknod("null", S_IFCHR | 0666, 0x103))
        return; /* for root only */
    cr_expect_eq(write_to("null"), RONDO_ERROR_INVALID);
    cr_expect(S_ISCHR(mode_of("null")));
}

Test(checkpoint_place, a_private_file_stays_private)
{
    FILE *file = fopen("private", "w");

    cr_assert_not_null(file);
    fclose(file);
    cr_assert_eq(chmod("private", 0600), 0);
    cr_expect_eq(write_to("private"), RONDO_OK, "%s", rondo_ddp_last_error());
    cr_expect_eq(mode_of("private") & 07777, 0600);
}

/* A job that was killed leaves such a part behind. */
Test(checkpoint_place, a_part_can_be_written_again_where_the_file_cannot)
{
    rondo_checkpoint *checkpoint;

    cr_assert_eq(write_to("sealed"), RONDO_OK);
    cr_assert_eq(chmod("sealed", 0400), 0);
    cr_assert_eq(rondo_checkpoint_create("sealed", NULL, &checkpoint), RONDO_OK);
    cr_expect_eq(mode_of("sealed.part") & 07777, 0600);
    cr_expect_eq(rondo_checkpoint_commit(checkpoint), RONDO_OK, "%s", rondo_ddp_last_error());
    rondo_checkpoint_close(checkpoint);
    cr_expect_eq(mode_of("sealed") & 07777, 0400);
}

Test(checkpoint_place, a_link_stays_a_link)
{
    cr_assert_eq(write_to("file"), RONDO_OK);
    cr_assert_eq(symlink("file", "link"), 0);
    cr_assert_eq(symlink("nowhere", "loose"), 0);
    cr_assert_eq(truncate("file", 0), 0);
    cr_expect_eq(write_to("link"), RONDO_OK, "%s", rondo_ddp_last_error());
    cr_expect(S_ISLNK(mode_of("link")));
    cr_expect_eq(write_to("loose"), RONDO_ERROR_SYSTEM);
    cr_expect(S_ISLNK(mode_of("loose")));
}
