/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * git2.c - Criterion shows how two strings differ by libgit2, which brings 15 more libraries and
 * reads the certificates of the system: with sanitizers 0.1 s of each program, and 5 ms of each
 * case, which is a process. Test programs find this library instead; Criterion shows what differs
 * without it, too.
 */
int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

int git_libgit2_init(void)
{
    return 1;
}

int git_libgit2_shutdown(void)
{
    return 0;
}

/* This library cannot tell. */
int git_diff_buffers(void)
{
    return -1;
}
