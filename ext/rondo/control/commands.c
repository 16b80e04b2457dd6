/* SPDX-License-Identifier: MIT
 *
 * Sends lines, receives answers; see commands.h.
 */
#include "control/commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/text.h"
#include "control/reply.h"
#include "system/socket.h"

#define ANSWER_BYTES_MAX (16u << 20)

/* A request that waits for the process. */
typedef struct rd_command {
    rd_list in_waiting;
    rd_timer timer;
    rd_commands *commands;
    rd_request *request;
    uint64_t id;
    bool is_taken; /* the process has its body */
} rd_command;

static void end_command(rd_command *command) {
    if (command->request->body.size > 0) command->commands->bodies--;
    rd_list_unlink(&command->in_waiting);
    if (rd_timer_is_armed(&command->timer)) rd_timer_cancel(&command->timer);
    rd_request_unref(command->request);
    rd_free(command);
}

/* Nothing is done with a body that the process does not have. `why` needs no escapes. */
static void refuse_body(rd_request *request, int status, const char *why) {
    rd_buffer text = {0};
    rd_text_add(&text, "{ \"error\": \"%s\", \"published\": 0 }\n", why);
    rd_reply(request, status, RD_REPLY_JSON, &text);
    rd_buffer_clear(&text);
}

static void end_without_answer(rd_command *command, int status, const char *why) {
    if (command->request->body.size > 0 && !command->is_taken) {
        refuse_body(command->request, status, why);
    } else {
        rd_reply_error(command->request, status, why);
    }
    end_command(command);
}

static void on_no_answer(rd_timer *timer) {
    rd_command *command = RD_CONTAINER(timer, rd_command, timer);
    end_without_answer(command, 504, "the process did not answer: Ruby may be stuck");
}

void rd_commands_give_up(rd_commands *commands) {
    while (!rd_list_is_empty(&commands->waiting)) {
        rd_command *command = RD_CONTAINER(commands->waiting.next, rd_command, in_waiting);
        end_without_answer(command, 503, "the server is stopping");
    }
}

static bool send_line(rd_commands *commands, uint64_t id, const char *verb, int64_t more_ms) {
    char line[64];
    char more[24] = "";
    if (more_ms > 0) snprintf(more, sizeof(more), " %" PRId64, more_ms);
    int len = snprintf(line, sizeof(line), "%" PRIu64 " %s%s\n", id, verb, more);
    if (commands->process.fd < 0) return false;
    return send(commands->process.fd, line, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) == len;
}

void rd_commands_ask(rd_commands *commands, rd_request *request, const char *verb,
                     int64_t more_ms) {
    const bool has_body = request->body.size > 0;
    if (has_body && commands->bodies >= RD_COMMAND_BODIES_MAX) {
        refuse_body(request, 503, "too many requests wait for the process");
        return;
    }
    if (!send_line(commands, ++commands->last_id, verb, more_ms)) {
        const char *why = "the process no longer takes commands";
        has_body ? refuse_body(request, 503, why) : rd_reply_error(request, 503, why);
        return;
    }
    rd_command *command = rd_alloc_zero(sizeof(*command));
    command->request = request;
    command->commands = commands;
    if (has_body) commands->bodies++;
    command->id = commands->last_id;
    rd_request_ref(request);
    rd_timer_init(&command->timer, on_no_answer);
    rd_timer_set(&commands->loop->timers, &command->timer,
                 commands->loop->now_ms + (uint64_t)(commands->timeout_ms + more_ms));
    rd_list_append(&commands->waiting, &command->in_waiting);
}

static rd_command *find_command(const rd_commands *commands, uint64_t id) {
    const rd_list *all = &commands->waiting;
    for (rd_list *node = all->next; node != all; node = node->next) {
        rd_command *command = RD_CONTAINER(node, rd_command, in_waiting);
        if (command->id == id) return command;
    }
    return NULL;
}

const rd_body *rd_commands_body(rd_commands *commands, uint64_t id) {
    rd_command *command = find_command(commands, id);
    if (command == NULL) return NULL;
    command->is_taken = true;
    return &command->request->body;
}

static void take_answer(rd_commands *commands, uint64_t id, int status, const char *bytes,
                        size_t len) {
    rd_command *command = find_command(commands, id);
    if (command == NULL) return;
    rd_buffer text = {0};
    rd_buffer_append(&text, bytes, len);
    rd_reply(command->request, status, RD_REPLY_JSON, &text);
    rd_buffer_clear(&text);
    end_command(command);
}

/* Takes one whole answer from the received bytes. Returns false when there is none yet. */
static bool take_next_answer(rd_commands *commands, bool *broken) {
    char line[64];
    uint64_t id;
    unsigned status, len;
    const char *bytes = rd_buffer_ptr(&commands->answers);
    size_t come = rd_buffer_len(&commands->answers);
    const char *end = come > 0 ? memchr(bytes, '\n', come) : NULL;
    if (end == NULL) {
        *broken = come >= sizeof(line);
        return false;
    }
    size_t line_len = (size_t)(end - bytes);
    *broken = true;
    if (line_len >= sizeof(line)) return false;
    memcpy(line, bytes, line_len);
    line[line_len] = '\0';
    char *next;
    id = strtoull(line, &next, 10);
    status = (unsigned)strtoul(next, &next, 10);
    len = (unsigned)strtoul(next, &next, 10);
    if (*next != '\0') return false;
    if (len > ANSWER_BYTES_MAX || status < 200 || status > 599) return false;
    *broken = false;
    if (come < line_len + 1 + len) return false;
    take_answer(commands, id, (int)status, bytes + line_len + 1, len);
    rd_buffer_consume(&commands->answers, line_len + 1 + len);
    return true;
}

static void forget_process(rd_commands *commands) {
    rd_loop_remove(commands->loop, &commands->process);
    close(commands->process.fd);
    commands->process.fd = -1;
    rd_commands_give_up(commands);
}

static void on_process(rd_source *source, unsigned ready) {
    rd_commands *commands = RD_CONTAINER(source, rd_commands, process);
    char room[16384];
    bool broken = false;
    (void)ready;
    ssize_t len = recv(source->fd, room, sizeof(room), MSG_DONTWAIT);
    if (len < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (len > 0) {
        rd_buffer_append(&commands->answers, room, (size_t)len);
        while (take_next_answer(commands, &broken)) {
        }
    }
    if (len <= 0 || broken) forget_process(commands);
}

bool rd_commands_send(rd_commands *commands, const char *verb) {
    return send_line(commands, 0, verb, 0);
}

int rd_commands_open(rd_commands *commands, rd_loop *loop, int64_t timeout_ms, int *process_fd) {
    int fds[2];
    *commands = (rd_commands){.loop = loop, .timeout_ms = timeout_ms};
    rd_list_init(&commands->waiting);
    commands->process = (rd_source){.fd = -1, .on_ready = on_process};
    if (rd_socket_pair(fds, true) != 0) return -1;
    commands->process.fd = fds[0];
    if (rd_loop_add(loop, &commands->process, RD_READABLE) != 0) {
        close(fds[0]);
        close(fds[1]);
        commands->process.fd = -1;
        return -1;
    }
    *process_fd = fds[1];
    return 0;
}

void rd_commands_close(rd_commands *commands) {
    rd_commands_give_up(commands);
    if (commands->process.fd >= 0) forget_process(commands);
    rd_buffer_clear(&commands->answers);
}
