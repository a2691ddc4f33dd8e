/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * elastic.c - `rondo run --elastic MIN:MAX`: ranks may end and come while the job goes on.
 *
 * What ranks make of it is theirs (rondo/elastic.h, docs/elastic.md). Here a rank that fails is
 * counted, and while MIN ranks are left, running or through, nobody else is ended for it. A
 * newcomer gets a folder to find the job (RONDO_DOOR). `rondo run --join PID` asks this process for
 * one, over a socket with a name made of PID, which only its own user may use.
 */
#include "cli/run/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { ANSWER = 256 };

bool run_elastic_read(const char *text, struct run_elastic *ret_elastic)
{
    int length = 0;

    return sscanf(text, "%d:%d%n", &ret_elastic->least, &ret_elastic->most, &length) == 2 &&
           !text[length] && ret_elastic->least >= 1 && ret_elastic->most >= ret_elastic->least &&
           ret_elastic->most <= RUN_RANKS_MAX;
}

/* ---- The door -------------------------------------------------------------------------------- */

static bool make_door(struct run_elastic *elastic)
{
    const char *folder = getenv("TMPDIR");
    int length = snprintf(elastic->door, sizeof(elastic->door), "%s/rondo-run-XXXXXX",
                          folder && *folder ? folder : "/tmp");

    if (length < (int)sizeof(elastic->door) && mkdtemp(elastic->door))
        return true;
    fprintf(stderr, "rondo run: cannot make the folder %s for newcomers: %s\n", elastic->door,
            strerror(errno));
    elastic->door[0] = '\0';
    return false;
}

static void remove_door(const struct run_elastic *elastic)
{
    DIR *folder = *elastic->door ? opendir(elastic->door) : NULL;
    const struct dirent *entry;

    while (folder && (entry = readdir(folder)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(folder), entry->d_name, 0);
    if (folder) {
        closedir(folder);
        rmdir(elastic->door);
    }
}

/* Says whether a rank holds the lock of ddp/elastic/door.h. Programs that have no such lock go on
 * by means of their own, so theirs count as held. */
static bool has_members(const struct run_elastic *elastic)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char path[sizeof(elastic->door) + 16];
    bool held;
    int file;

    snprintf(path, sizeof(path), "%s/members", elastic->door);
    file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0)
        return true;
    held = fcntl(file, F_GETLK, &all) || all.l_type != F_UNLCK;
    close(file);
    return held;
}

/* See ddp/elastic/door.h for what is said there. */
static bool is_said(const struct run_elastic *elastic, const char *name)
{
    char path[sizeof(elastic->door) + 16];

    snprintf(path, sizeof(path), "%s/%s", elastic->door, name);
    return !access(path, F_OK);
}

/* A founder has ended, for which the others wait if the job has not begun. Tells those that come
 * later; false: some wait already. */
static bool can_begin_without(const struct run_elastic *elastic)
{
    char path[sizeof(elastic->door) + 16];
    int file;

    if (is_said(elastic, "begun"))
        return true;
    snprintf(path, sizeof(path), "%s/lost", elastic->door);
    file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0)
        close(file);
    return !is_said(elastic, "members");
}

/* ---- The socket ------------------------------------------------------------------------------ */

/* An abstract name, which the kernel takes back when this process ends. */
static socklen_t name_of(long pid, struct sockaddr_un *ret_name)
{
    int length;

    memset(ret_name, 0, sizeof(*ret_name));
    ret_name->sun_family = AF_UNIX;
    length = snprintf(ret_name->sun_path + 1, sizeof(ret_name->sun_path) - 1, "rondo-run-%ld", pid);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

/* Another job may have the name: that of a container which has the network of this host, but
 * process ids of its own. This job then goes on without --join. */
static void listen_for_joins(struct run_elastic *elastic)
{
    struct sockaddr_un name;
    socklen_t length = name_of(getpid(), &name);

    elastic->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (elastic->listener >= 0 &&
        !bind(elastic->listener, (const struct sockaddr *)&name, length) &&
        !listen(elastic->listener, 8))
        return;
    fprintf(stderr, "rondo run: nobody can --join, there is no socket: %s\n", strerror(errno));
    if (elastic->listener >= 0)
        close(elastic->listener);
    elastic->listener = -1;
}

static bool is_ours(int connection)
{
    struct ucred peer;
    socklen_t length = sizeof(peer);

    return !getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
           (peer.uid == geteuid() || peer.uid == 0);
}

int run_elastic_open(struct run_job *job)
{
    struct run_elastic *elastic = &job->elastic;

    if (!elastic->most)
        return 0;
    if (!make_door(elastic))
        return RUN_EXIT_FAILED;
    listen_for_joins(elastic);
    fprintf(stderr, "rondo run: %d ranks, which may become %d to %d", job->size, elastic->least,
            elastic->most);
    if (elastic->listener >= 0)
        fprintf(stderr, "; one more: rondo run --join %d", (int)getpid());
    fprintf(stderr, "\n");
    return 0;
}

void run_elastic_close(struct run_job *job)
{
    struct run_elastic *elastic = &job->elastic;

    if (elastic->listener >= 0)
        close(elastic->listener);
    remove_door(elastic);
    if (elastic->most && !job->status && (elastic->lost || elastic->joined))
        fprintf(stderr, "rondo run: %d rank%s lost, %d came; %d ended well\n", elastic->lost,
                elastic->lost == 1 ? " was" : "s were", elastic->joined, elastic->well);
}

/* ---- Newcomers ------------------------------------------------------------------------------- */

static int free_place(const struct run_job *job)
{
    for (int rank = 0; rank < job->size; rank++)
        if (!job->ranks[rank].pid && !job->ranks[rank].well)
            return rank;
    return job->size < job->elastic.most ? job->size : -1;
}

/* In place `rank`, which nobody has. */
static bool start_newcomer(struct run_job *job, int rank)
{
    struct run_rank *me = &job->ranks[rank];

    run_tag_done(&me->out, true); /* of the one before */
    run_tag_done(&me->err, true);
    me->program = job->program;
    me->input = -1;
    me->newcomer = true;
    if (rank == job->size)
        job->size++;
    if (run_rank_start(job, rank))
        return false;
    job->elastic.joined++;
    return true;
}

/* Where no rank has the state of the job any more, newcomers wait in vain and are none of it. */
bool run_elastic_loses(struct run_job *job, int rank, const char *what)
{
    struct run_elastic *elastic = &job->elastic;
    bool has_ended = !has_members(elastic), is_over = has_ended && is_said(elastic, "over");
    int left = elastic->well + (has_ended && !is_over ? 0 : job->running);

    elastic->lost++;
    if (!job->ranks[rank].newcomer && !can_begin_without(elastic)) {
        fprintf(stderr, "rondo run: %s; the job has not begun, which takes all its ranks\n", what);
        return false;
    }
    if (left < elastic->least) {
        fprintf(stderr, "rondo run: %s; %d of the job are left, --elastic wants %d at least\n",
                what, left, elastic->least);
        return false;
    }
    if (elastic->well || is_over || elastic->restarted >= elastic->restarts) {
        fprintf(stderr, "rondo run: %s; the job goes on with the %d that are left\n", what, left);
        return true;
    }
    elastic->restarted++;
    fprintf(stderr,
            "rondo run: %s; the job goes on with the %d that are left, a newcomer takes its "
            "place (restart %d of %d)\n",
            what, left, elastic->restarted, elastic->restarts);
    start_newcomer(job, rank);
    return true;
}

/* The answer begins with 0 or 1, the exit status of who asked. */
static void answer(struct run_job *job, bool ending, char ret_text[ANSWER])
{
    int rank = free_place(job);

    if (ending || job->status || job->elastic.well || !job->running)
        snprintf(ret_text, ANSWER, "1the job is ending");
    else if (rank < 0 || job->running >= job->elastic.most)
        snprintf(ret_text, ANSWER, "1the job has %d ranks, and --elastic %d:%d lets in no more",
                 job->running, job->elastic.least, job->elastic.most);
    else if (!start_newcomer(job, rank))
        snprintf(ret_text, ANSWER, "1the program could not be started, the job has said why");
    else
        snprintf(ret_text, ANSWER, "0place %d (pid %d) comes to the job, as one of %d ranks", rank,
                 (int)job->ranks[rank].pid, job->running);
}

void run_elastic_serve(struct run_job *job, bool ending)
{
    struct sockaddr_un name;
    socklen_t length = sizeof(name);
    int connection = accept4(job->elastic.listener, (struct sockaddr *)&name, &length,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
    char text[ANSWER];

    if (connection < 0)
        return;
    if (is_ours(connection)) {
        answer(job, ending, text);
        fprintf(stderr, "rondo run: --join: %s\n", text + 1);
    } else {
        snprintf(text, sizeof(text), "1the job is another user's");
    }
    send(connection, text, strlen(text), MSG_NOSIGNAL);
    close(connection);
}

int run_elastic_join(long pid)
{
    const struct timeval patience = {.tv_sec = PATIENCE_JOIN};
    struct sockaddr_un name;
    socklen_t length = name_of(pid, &name);
    int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    char text[ANSWER] = "";
    ssize_t got = -1;

    if (connection >= 0 && !connect(connection, (const struct sockaddr *)&name, length) &&
        !setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)))
        got = recv(connection, text, sizeof(text) - 1, 0);
    if (connection >= 0)
        close(connection);
    if (got > 1) {
        fprintf(text[0] == '0' ? stdout : stderr, "rondo run: %s\n", text + 1);
        return text[0] == '0' ? 0 : RUN_EXIT_FAILED;
    }
    fprintf(stderr, "rondo run: there is no `rondo run --elastic` with process id %ld here: %s\n",
            pid, strerror(errno));
    return RUN_EXIT_FAILED;
}
