/* SPDX-License-Identifier: MIT
 *
 * One application call: what the dispatch, the env, the response and the streams share while a
 * request is being answered. It is on the stack of the thread that answers, or, for a stream that
 * outlives the call, inside the stream. With the GVL.
 */
#ifndef RD_RACK_CALL_H
#define RD_RACK_CALL_H

#include "protocol/protocols.h"
#include "binding/rb_binding.h"

/* [status, headers, body] of the application, or of the answer in its place. */
typedef struct rd_answer {
    VALUE status, headers, body;
    bool body_closed;
} rd_answer;

/* What the call needs to know of its connection, which may close meanwhile. */
typedef struct rd_call_conn {
    rd_address peer;
    uint32_t index;
    bool secure; /* the scheme is https, unless a setting or a proxy says otherwise */
} rd_call_conn;

/* What the transport knows of the client; see rb_identity.h. */
typedef struct rd_call_identity {
    uint64_t number;          /* 0: the env tells nothing of it */
    uint32_t owner;           /* index of the connection whose transport knows it */
    VALUE keys;               /* of an earlier request, or nil */
    struct rd_identity *read; /* if there are no keys yet */
} rd_call_identity;

/* The progress of the answer. */
typedef struct rd_call_state {
    bool started; /* the head is out */
    bool done;    /* finished, aborted or detached */
    bool hijacked;
    bool left_open; /* the stream continues after the call */
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
    rd_call_identity identity;
    rd_call_state state;
    rd_visit *visit;               /* NULL once a stream outlives the call */
    uint64_t serial;               /* that of its visit, while it runs */
    uint64_t queue_us;             /* with the setting queue_time */
    uint64_t quantum_since_ns;     /* when its turn began; waits for the client move it, see
                                      rd_part_send() */
    int killed;                    /* state of a Thread#kill that ended the call */
    bool whole;                    /* the body was complete when the call began */
    size_t env_size;               /* keys that the application got */
    const rd_upgrade_row *upgrade; /* what the connection can be upgraded to; NULL: nothing */
};

/* The call that runs on this thread, of any server; NULL: there is none. */
rd_call *rd_call_current(void);

/* For each place where the application returns to a call. With a continuation, the application may
 * return to a call that is over, whose pointers are not valid any more. Raises then. */
void rd_call_check(const rd_call *call);

static inline bool rd_call_is_current(const rd_call *call) {
    return call->visit == NULL || call->visit->serial == call->serial;
}

/* The value of rack.upgrade? for it. */
VALUE rd_upgrade_symbol(const rd_upgrade_row *upgrade);

/* Whether the client is still there. Takes the lock. */
bool rd_call_has_client(const rd_call *call);

/* Runs `step`. What it raises is dropped, because an error is already being handled. A Thread#kill
 * ends the thread when the call is over. */
bool rd_call_try(VALUE (*step)(VALUE), rd_call *call);

/* Closes the body, only once. Raises what its `close` raises. */
void rd_call_close_body(rd_call *call);

/* Closes the body of the application's answer, and puts `response` in its place. */
void rd_call_replace_response(rd_call *call, VALUE response);

#endif
