/* SPDX-License-Identifier: MIT
 *
 * What the control server cannot do itself goes to its process through a socket: lines there, and
 * answers back, as control.h describes them. A request that waits for an answer is kept here until
 * that, its deadline or the end. Under the lock of the control server's loop.
 */
#ifndef RD_CONTROL_ERRANDS_H
#define RD_CONTROL_ERRANDS_H

#include "base/buffer.h"
#include "http/request.h"
#include "loop/loop.h"

typedef struct rd_errands {
    rd_loop *loop;
    rd_source process; /* our end of the socket; fd -1 once the process is gone */
    rd_buffer answers; /* what came of the next one */
    rd_list waiting;
    uint64_t last_id;
    int64_t timeout_ms;
} rd_errands;

/* 0, or -1 with errno set. The process owns *process_fd. */
int rd_errands_open(rd_errands *errands, rd_loop *loop, int64_t timeout_ms, int *process_fd);

/* Answers everybody who waits, and closes. */
void rd_errands_close(rd_errands *errands);

/* Passes a verb on and does not wait; false when the process takes nothing. */
bool rd_errands_tell(rd_errands *errands, const char *verb);

/* Passes a verb on; the process' answer, or an error, becomes the request's. */
void rd_errands_ask(rd_errands *errands, rd_request *request, const char *verb);

/* Answers everybody who waits: there will be nothing to wait for. */
void rd_errands_give_up(rd_errands *errands);

#endif
