/* SPDX-License-Identifier: MIT
 *
 * One application call: what the dispatch, the env, the response and the streams share while a
 * request is being answered. Lives on the stack of the thread that answers it, or, for a stream
 * that outlives the call, inside the stream. With the GVL.
 */
#ifndef RD_RACK_CALL_H
#define RD_RACK_CALL_H

#include "protocol/protocols.h"
#include "binding/rb_binding.h"

/* [status, headers, body] of the application, or what is answered in its place. */
typedef struct rd_answer {
    VALUE status, headers, body;
    bool body_closed;
} rd_answer;

/* What is known of the connection, which may close meanwhile. */
typedef struct rd_call_conn {
    rd_address peer;
    uint32_t slot;
    bool secure; /* the scheme is https where nothing else says so */
} rd_call_conn;

/* How far the answer is. */
typedef struct rd_call_state {
    bool started; /* the head is out */
    bool done;    /* finished, aborted or detached */
    bool hijacked;
    bool left_open; /* the stream goes on after the call */
} rd_call_state;

struct rd_call {
    rd_binding *binding;
    rd_request *request;
    VALUE env;
    VALUE input;      /* Rondo::Input, or 0 */
    VALUE connection; /* Rondo::Connection: its rack.hijack */
    VALUE finished;   /* the rack.response_finished Array */
    VALUE stream;     /* Rondo::Stream of a call body, or 0 */
    VALUE error;      /* what the application raised, or nil */
    rd_answer answer;
    rd_call_conn conn;
    rd_call_state state;
    rd_visit *visit;   /* NULL once a stream outlives the call */
    uint64_t serial;   /* its visit's while it runs */
    uint64_t queue_us; /* with the setting queue_time */
    uint64_t turn_ns; /* since when its turn lasts; waits for room move it on, see rd_part_send() */
    int killed;       /* state of a Thread#kill that ended the call */
    bool whole;       /* the body was there when the call began */
    size_t env_size;  /* keys that the application got */
    const rd_upgrade_row *upgrade; /* what the connection can become; NULL: nothing else */
};

/* The call that runs on this thread, of whatever server; NULL: none does. */
rd_call *rd_call_current(void);

/* Where the application returns to a call: with a continuation it may return to one that is over,
 * and nothing that this points to is there any more. Raises then. */
void rd_call_check(const rd_call *call);

static inline bool rd_call_is_current(const rd_call *call) {
    return call->visit == NULL || call->visit->serial == call->serial;
}

/* What rack.upgrade? says of it. */
VALUE rd_upgrade_symbol(const rd_upgrade_row *upgrade);

/* Whether somebody is still there to answer; takes the lock. */
bool rd_call_has_client(const rd_call *call);

/* Runs `step`; what it raises is dropped, because an error is being dealt with already. A
 * Thread#kill is for the thread, when the call is over. */
bool rd_call_try(VALUE (*step)(VALUE), rd_call *call);

/* Closes the body, once. Raises what its `close` raises. */
void rd_call_close_body(rd_call *call);

/* The application's own answer is not sent: its body is closed, this one takes its place. */
void rd_call_replace_response(rd_call *call, VALUE response);

#endif
