/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * descriptor.h - every descriptor of the library is 3 or above.
 *
 * The system hands out the lowest number that is free. In a program whose standard output is closed
 * (a daemon, `>&-`) that is 1, and the program goes on printing: into the shared heap, a socket, a
 * checkpoint. So whatever makes a descriptor passes it through descriptor_above(), and lint refuses
 * the bare calls. What other libraries open (hwloc, libibverbs, CUDA's driver) is out of reach.
 */
#ifndef RONDO_BASE_CALLER_DESCRIPTOR_H
#define RONDO_BASE_CALLER_DESCRIPTOR_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Owns `fd`. Returns it or, in place of 0, 1 and 2, a copy above them, which exec() closes; -1 with
 * errno if there is none. */
static inline int descriptor_above(int fd)
{
    int copy, number;

    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    number = errno;
    close(fd);
    errno = number;
    return copy;
}

/*
 * This tells a file from others that get the number of its descriptor later: a program may close
 * all descriptors that it does not know, and open files of its own.
 */
struct descriptor_identity {
    dev_t device;
    ino_t node;
};

/* 0, or -1 with errno. */
static inline int descriptor_identify(int fd, struct descriptor_identity *ret_identity)
{
    struct stat status;

    if (fstat(fd, &status))
        return -1;
    *ret_identity = (struct descriptor_identity){status.st_dev, status.st_ino};
    return 0;
}

static inline bool descriptor_still_is(int fd, const struct descriptor_identity *identity)
{
    struct descriptor_identity now;

    return !descriptor_identify(fd, &now) && now.device == identity->device &&
           now.node == identity->node;
}

/* fopen() of "r" or "w". */
static inline FILE *descriptor_stream(const char *path, const char *mode)
{
    int how = *mode == 'w' ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY;
    int fd = descriptor_above(open(path, how | O_CLOEXEC, 0666));
    FILE *stream = fd < 0 ? NULL : fdopen(fd, mode);

    if (!stream && fd >= 0)
        close(fd);
    return stream;
}

/* opendir() */
static inline DIR *descriptor_folder(const char *path)
{
    int fd = descriptor_above(open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    DIR *folder = fd < 0 ? NULL : fdopendir(fd);

    if (!folder && fd >= 0)
        close(fd);
    return folder;
}

/* pipe2() with O_CLOEXEC: 0, or -1 with errno. */
static inline int descriptor_pipe(int ret_ends[2])
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC))
        return -1;
    ends[0] = descriptor_above(ends[0]);
    ends[1] = descriptor_above(ends[1]);
    if (ends[0] >= 0 && ends[1] >= 0) {
        memcpy(ret_ends, ends, sizeof(ends));
        return 0;
    }
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    return -1;
}

#endif
