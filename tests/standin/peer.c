/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.c - starting the other process and talking to it over a socket, which is its descriptor 3.
 */
#include "tests/standin/peer.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int peer_start(struct peer *peer)
{
    int ends[2];
    char *program = getenv("CUDA_STANDIN_PEER_PROGRAM");
    if (!program || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return 0;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 3);
    int failed =
        posix_spawn(&peer->process, program, &actions, NULL, (char *[]){program, NULL}, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    peer->socket = ends[0];
    return !failed;
}

struct peer_answer peer_ask(struct peer *peer, const struct peer_request *request, int fd)
{
    struct peer_answer answer = {.result = CUDA_ERROR_UNKNOWN};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {0};
    struct iovec bytes = {(void *)(size_t)request, sizeof *request};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        *header = (struct cmsghdr){CMSG_LEN(sizeof fd), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    if (sendmsg(peer->socket, &message, MSG_NOSIGNAL) != (ssize_t)sizeof *request ||
        recv(peer->socket, &answer, sizeof answer, 0) != (ssize_t)sizeof answer)
        answer.result = CUDA_ERROR_UNKNOWN;
    return answer;
}

int peer_end(struct peer *peer)
{
    peer_ask(peer, &(struct peer_request){.verb = PEER_END}, -1);
    close(peer->socket);
    int status = 0;
    waitpid(peer->process, &status, 0);
    return status;
}
