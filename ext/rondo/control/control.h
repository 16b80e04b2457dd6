/* SPDX-License-Identifier: MIT
 *
 * The control server: reports how the other server of this process (or those of its workers) is
 * doing, and passes commands on. It runs on a native thread of its own, with a server, a loop and
 * the HTTP codec of the core, and reads nothing but the scoreboard. So it answers even while the
 * application, or all of Ruby, is stuck.
 *
 * What only the process can do is sent to the process through a socket, as lines "ID VERB\n"; ID 0
 * wants no answer. "0 refused\n" says that a request was answered 403, once a minute at most. "ID
 * publish MS\n" waits for the engine, so many milliseconds at most. An answer comes back as "ID
 * STATUS LENGTH\n" and LENGTH bytes of JSON. The process fetches the body of a request by its ID.
 */
#ifndef RD_CONTROL_CONTROL_H
#define RD_CONTROL_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "cluster/scoreboard.h"
#include "control/certificates.h"
#include "listen/listener.h"

typedef struct rd_control rd_control;

typedef struct rd_control_options {
    const rd_scoreboard *board; /* outlives the control server */
    const char *token;          /* NULL: no token is needed */
    const char *versions;       /* a JSON object, for /stats */
    const char *about;          /* labels of rondo_build_info, for /metrics */
    const char *page;           /* HTML of the status page; NULL: there is none */
    const char *page_policy;    /* its Content-Security-Policy */
    bool cluster;               /* whether the rows belong to worker processes */
    uint32_t room;              /* most workers there may be, see rd_report; 0: one for each row */
    uint32_t verbs;             /* bit RD_VERB_*: what the process can do */
    int64_t answer_timeout_ms;
} rd_control_options;

/* Returns NULL with errno set on failure. The process reads its lines from *process_fd and owns
 * it. */
rd_control *rd_control_new(const rd_control_options *options, int *process_fd);

/* Takes over an opened listener (allocated by rd_alloc). Before start. Returns 0, or -1 with
 * errno. */
int rd_control_add_listener(rd_control *control, rd_listener *listener);

/* Shows how many connections wait for the listening socket `fd`. `slot` is that of its worker, or
 * -1. Any thread, also before start. */
void rd_control_add_queue(rd_control *control, const char *url, int fd, int slot);

/* Forgets all these sockets. */
void rd_control_clear_queues(rd_control *control);

/* Takes over the list of the certificates that are shown, in place of the one before. Any thread,
 * also before start. */
void rd_control_show_certificates(rd_control *control, rd_certificate_list *list);

/* Appends the body of the request that waits for the answer `id`. Returns false if none does any
 * more: it must not be carried out. Any thread. */
bool rd_control_body(rd_control *control, uint64_t id, rd_buffer *bytes);

/* Starts the thread, with all signals blocked. Returns 0 or a negative errno. */
int rd_control_start(rd_control *control);

/* Ends the thread, if it runs, and waits for it. Unsent answers are sent first, for at most a
 * second. */
void rd_control_stop(rd_control *control);

/* Stops and frees. */
void rd_control_free(rd_control *control);

/* The server stops. From now on /ready is answered 503, whatever the workers are, and so are verbs
 * that would begin something. */
void rd_control_leave(rd_control *control);

/* Another process continues with the listeners: the files of Unix sockets stay. Before stop. */
void rd_control_keep_files(rd_control *control);

/* Around a fork, by the thread that forks: hold before it, then release in the parent and abandon
 * in the child. Abandon closes the inherited descriptors, otherwise a client would wait for their
 * end. */
void rd_control_hold(rd_control *control);
void rd_control_release(rd_control *control);
void rd_control_abandon(rd_control *control);

#endif
