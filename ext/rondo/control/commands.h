/* SPDX-License-Identifier: MIT
 *
 * What the control server cannot do itself goes to its process through a socket: lines there,
 * answers back, as control.h describes them. A request that waits for an answer is kept here until
 * the answer, its deadline or the end; its body, too, until the process asks for it. So nothing of
 * it waits in the socket. Under the lock of the control server's loop.
 */
#ifndef RD_CONTROL_COMMANDS_H
#define RD_CONTROL_COMMANDS_H

#include "base/buffer.h"
#include "request/request.h"
#include "loop/loop.h"

/* Requests with a body that may wait for the process at once. */
#define RD_COMMAND_BODIES_MAX 64

typedef struct rd_commands {
    rd_loop *loop;
    rd_source process; /* the server's end of the socket; fd -1 when the process is gone */
    rd_buffer answers; /* received bytes of the next answer */
    rd_list waiting;
    uint32_t bodies; /* requests among them that have one */
    uint64_t last_id;
    int64_t timeout_ms;
} rd_commands;

/* Returns 0, or -1 with errno set. The process owns *process_fd. */
int rd_commands_open(rd_commands *commands, rd_loop *loop, int64_t timeout_ms, int *process_fd);

/* Answers all waiting requests, and closes. */
void rd_commands_close(rd_commands *commands);

/* Passes a verb on and does not wait. Returns false when the process does not take it. */
bool rd_commands_send(rd_commands *commands, const char *verb);

/* Passes a verb on, and `more_ms` if it is not 0: so much later than others it may be answered. The
 * request is answered with the process' answer, or an error: also when RD_COMMAND_BODIES_MAX wait.
 * The error says `"published": 0` if the process has never asked for the body. */
void rd_commands_ask(rd_commands *commands, rd_request *request, const char *verb, int64_t more_ms);

/* The body of a request that still waits for the answer `id`, or NULL. */
const rd_body *rd_commands_body(rd_commands *commands, uint64_t id);

/* Answers all waiting requests with an error, because no answer will come. */
void rd_commands_give_up(rd_commands *commands);

#endif
