/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exec.c - lets a program under qemu-aarch64 start another program for 64-bit Arm.
 *
 * Each test of Criterion is a process that starts its own program again, and `rondo run` starts
 * ranks. The kernel refuses such a program unless binfmt_misc is set up for it, and that needs root
 * and does not work in many containers. So this library is preloaded: its exec functions run
 * "EMULATOR -0 argv[0] PATH ARGUMENTS..." when PATH is a program for 64-bit Arm, and change nothing
 * otherwise.
 *
 * words.sh sets EMULATOR, and QEMU_SET_ENV and QEMU_LD_PREFIX, by which each qemu preloads this
 * library and finds the others.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

typedef int execve_function(const char *path, char *const argv[], char *const envp[]);
typedef int execvp_function(const char *name, char *const argv[]);

/* Programs of this machine cannot load this library, and would complain. QEMU_SET_ENV stays. */
__attribute__((constructor)) static void hide(void)
{
    unsetenv("LD_PRELOAD");
}

static int is_for_arm(const char *path)
{
    Elf64_Ehdr header;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got;

    if (file < 0)
        return 0;
    got = read(file, &header, sizeof(header));
    close(file);
    return got == sizeof(header) && !memcmp(header.e_ident, ELFMAG, SELFMAG) &&
           header.e_machine == EM_AARCH64;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
    execve_function *next = (execve_function *)dlsym(RTLD_NEXT, "execve");
    char *emulator = getenv("EMULATOR"), **longer;
    size_t count = 0;

    if (!emulator || !is_for_arm(path))
        return next(path, argv, envp);
    while (argv[count])
        count++;
    longer = calloc(count + 5, sizeof(*longer));
    if (!longer) {
        errno = ENOMEM;
        return -1;
    }
    longer[0] = emulator;
    longer[1] = "-0";
    longer[2] = count ? argv[0] : (char *)path;
    longer[3] = (char *)path;
    for (size_t i = 1; i < count; i++)
        longer[3 + i] = argv[i];
    next(emulator, longer, envp);
    free(longer);
    return -1;
}

EXPORT int execv(const char *path, char *const argv[])
{
    return execve(path, argv, environ);
}

/* A name without a slash is a program of this machine. */
EXPORT int execvp(const char *name, char *const argv[])
{
    execvp_function *next = (execvp_function *)dlsym(RTLD_NEXT, "execvp");

    return strchr(name, '/') ? execve(name, argv, environ) : next(name, argv);
}
