/* SPDX-License-Identifier: BSD-3-Clause */
/* child.c - fork, wait, share. */
#include "child.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS = 300 };

pid_t child_start(int (*body)(void *), void *argument)
{
    pid_t child;

    fflush(NULL);
    child = fork();
    if (child < 0) {
        perror("child: fork");
        exit(1);
    }
    if (!child) {
        alarm(SECONDS);
        exit(body(argument)); /* not _exit(): sanitizers and coverage have their say */
    }
    return child;
}

int child_wait(pid_t child)
{
    int status = 0;

    if (waitpid(child, &status, 0) != child)
        return 127;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int child_run(int (*body)(void *), void *argument)
{
    return child_wait(child_start(body, argument));
}

void *child_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED) {
        perror("child: shared memory");
        exit(1);
    }
    return memory;
}

int child_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int entries = 0;

    if (!directory)
        return -1;
    while (readdir(directory))
        entries++;
    closedir(directory);
    return entries;
}
