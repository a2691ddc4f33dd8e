/* SPDX-License-Identifier: BSD-3-Clause */
/* locks.c - prints docs/locks.md from the list of levels. */
#include "base/lock.h"

#include <stdio.h>

static const char head[] =
    "<!-- Made from base/lock.h by tests/base/locks.c; a test compares the two. -->\n"
    "# The order of locks\n"
    "\n"
    "A thread that holds locks waits only for one whose level is further down this table than\n"
    "those of all that it holds. Two locks of one level are never waited for at a time, of\n"
    "different objects neither. Then no circle of threads can wait for each other.\n"
    "\n"
    "| | Level | Its locks guard |\n"
    "| --- | --- | --- |\n";

static const char tail[] =
    "\n"
    "## What checks it\n"
    "\n"
    "Locks are `struct lock` and `struct lock_shared` of `base/lock.h`. In a build with\n"
    "assertions, as the tests are, each thread notes what it holds. The first lock that is out\n"
    "of order is a warning that names both levels, and a failed assertion, whether or not\n"
    "another thread is in the way. Release builds note nothing and check nothing.\n"
    "Lint refuses pthread's mutexes and rwlocks elsewhere in the library.\n"
    "\n"
    "- `lock_try()` doesn't wait, so it is allowed in any order; what it took counts as held.\n"
    "- `lock_wait()`, for a condition, waits for its lock again: locks that are held meanwhile\n"
    "  are further up. Best is to hold none.\n"
    "- A lock is given by the thread that took it, in any order.\n"
    "\n"
    "`libnccl.so.2` sees only the public headers and has locks of its own, which come before all\n"
    "of these: it calls Rondo with them held, and Rondo never calls it with one of its own.\n"
    "\n"
    "## To add a lock\n"
    "\n"
    "1. Find what is taken while it is held, and what is held while it is taken. Best is neither:\n"
    "   then any place will do, best near the end.\n"
    "2. Add a line between the two to `FOR_EACH_LOCK` in `base/lock.h`, with what it guards.\n"
    "   If there is no place between them, one of the two has to be taken at another time.\n"
    "3. Begin it with `LOCK_AT()` or `lock_init()`. One of the whole process is listed by\n"
    "   `FORK_RENEWS()` of `base/fork.h`, so that a forked child has a new one; lint checks it.\n"
    "4. Make this page anew: `build/tests/base/locks > docs/locks.md`.\n"
    "5. Run the tests of the rooms that take it, those of failures too: an order that no test\n"
    "   takes is not checked.\n";

int main(void)
{
    fputs(head, stdout);
    for (int level = 0; level < LOCK_LEVELS; level++)
        printf("| %d | `%s` | %s |\n", level + 1, lock_level_name((enum lock_level)level),
               lock_level_guards((enum lock_level)level));
    fputs(tail, stdout);
    return 0;
}
