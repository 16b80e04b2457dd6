/* SPDX-License-Identifier: MIT
 *
 * One application call: what the dispatch, the env, the response and the streams share while a
 * request is being answered. Lives on the stack of the thread that answers it, or, for a stream
 * that outlives the call, inside the stream.
 */
#ifndef RD_RUBY_CALL_H
#define RD_RUBY_CALL_H

#include "protocol/protocols.h"
#include "ruby/rb_binding.h"

struct rd_call {
    rd_binding *binding;
    rd_request *request;
    VALUE env;
    VALUE input;      /* Rondo::Input, or 0 */
    VALUE connection; /* Rondo::Connection: its rack.hijack */
    VALUE finished;   /* the rack.response_finished Array */
    VALUE stream;     /* Rondo::Stream of a call body, or 0 */
    VALUE status, headers, body;
    VALUE error;       /* what the application raised, or nil */
    rd_runner *runner; /* whose thread this is; NULL once a stream outlives the call */
    int killed;        /* state of a Thread#kill that ended the call */
    uint64_t serial;   /* its runner's while it runs */
    uint64_t queue_us; /* with the setting queue_time */
    uint64_t turn_ns; /* since when its turn lasts; waits for room move it on, see rd_send_part() */
    uint32_t slot;
    rd_address peer;
    bool secure;  /* its connection is: the scheme is https where nothing else says so */
    bool whole;   /* the body was there when the call began */
    bool started; /* the head of the response is out */
    bool done;    /* finished, aborted or detached */
    bool hijacked;
    bool body_closed;
    bool left_open;                /* the stream goes on after the call */
    size_t env_size;               /* keys that the application got */
    const rd_upgrade_row *upgrade; /* what the connection can become; NULL: nothing else */
};

/* rb_env.c */
void rd_env_init(rd_binding *binding);
VALUE rd_env_build(rd_call *call);
/* The template's key for early hints. */
VALUE rd_early_hints_new(VALUE connection);

/* What rack.upgrade? says of it. */
VALUE rd_upgrade_symbol(const rd_upgrade_row *upgrade);

/* Whether a key's value is kept nowhere but in the env of its request. */
bool rd_env_is_secret(VALUE key);

/* rb_env_kept.c: the env of a connection that goes on, small until somebody asks for it. */
VALUE rd_env_keep(rd_call *call);
VALUE rd_env_restore(rd_binding *binding, VALUE kept);

/* What every env has: X(PLACE, key of rb_names.def). These are the request's own and stand first in
 * every template. */
#define RD_ENV_OWN_ROWS(X)                                                                         \
    X(PATH, path_info)                                                                             \
    X(HIJACK, rack_hijack)                                                                         \
    X(FINISHED, rack_response_finished)

/* And these stand last, behind the header fields if the template has any. The first four are the
 * request's own as well, but mostly what they are in the template. */
#define RD_ENV_SHARED_ROWS(X)                                                                      \
    X(METHOD, request_method)                                                                      \
    X(QUERY, query_string)                                                                         \
    X(PROTOCOL, server_protocol)                                                                   \
    X(CAN_UPGRADE, rack_can_upgrade)                                                               \
    X(SCRIPT_NAME, script_name)                                                                    \
    X(SERVER_NAME, server_name)                                                                    \
    X(SERVER_PORT, server_port)                                                                    \
    X(REMOTE_ADDR, remote_addr)                                                                    \
    X(SCHEME, rack_url_scheme)                                                                     \
    X(ERRORS, rack_errors)                                                                         \
    X(INPUT, rack_input)                                                                           \
    X(IS_HIJACK, rack_is_hijack)

enum {
#define RD_ENV_PLACE(place, key) RD_ENV_##place,
    RD_ENV_OWN_ROWS(RD_ENV_PLACE) RD_ENV_OWN_COUNT,
    RD_ENV_LAST_OWN = RD_ENV_OWN_COUNT - 1,
    RD_ENV_SHARED_ROWS(RD_ENV_PLACE) RD_ENV_COUNT
#undef RD_ENV_PLACE
};

#define RD_ENV_KEY(place, key) rd_key.key,
#define RD_ENV_OWN_KEYS        RD_ENV_OWN_ROWS(RD_ENV_KEY)
#define RD_ENV_KEYS            RD_ENV_OWN_KEYS RD_ENV_SHARED_ROWS(RD_ENV_KEY)

#define RD_EMBEDDED_MAX 23 /* longer Strings of the same bytes share them (copy-on-write) */

/* rb_env_cache.c */
void rd_env_cache_init(rd_binding *binding);
void rd_env_cache_clear(rd_binding *binding);
/* rb_env.c: a base template and what the keys of both caches stand for: SERVER_*, REMOTE_ADDR, the
 * scheme, the version. */
VALUE rd_env_new_template(rd_call *call);
VALUE rd_env_template(rd_call *call); /* shared: to be dup'ed */
/* Of requests whose header section is known: the template, or nil; whether this peer sends it for
 * the first time; keeping one. */
VALUE rd_env_section_find(const rd_call *call);
bool rd_env_section_is_new(const rd_call *call);
void rd_env_section_keep(const rd_call *call, VALUE template);
void rd_env_fill(rd_call *call, const VALUE own[RD_ENV_OWN_COUNT], bool copy_headers);

/* rb_cache.c */
void rd_cache_init(rd_binding *binding);
void rd_cache_clear(rd_binding *binding);
uint32_t rd_address_hash(const rd_address *address);
VALUE rd_cached_value(rd_binding *binding, rd_slice bytes); /* frozen, shared */
VALUE rd_cached_name(rd_binding *binding, rd_slice name);   /* "HTTP_X_FOO" for "x-foo" */

/* rb_input.c */
void rd_init_input(VALUE rondo);
VALUE rd_input_new(const rd_call *call);
VALUE rd_input_empty(void);
void rd_input_detach(VALUE input); /* the request ends: reading raises from now on */

/* rb_scoreboard.c */
rd_scoreboard *rd_scoreboard_of(VALUE self);

/* rb_connection.c */
void rd_init_connection(VALUE rondo);
VALUE rd_connection_new(void);
/* Waits until everything queued is sent, then takes the descriptor; a Ruby IO. */
VALUE rd_connection_detach(rd_call *call);

/* rb_stream.c */
void rd_init_stream(VALUE rondo);
VALUE rd_stream_new(rd_call *call);
/* The body's call returned or raised: the stream is closed, or left to whoever holds it. */
void rd_stream_after_call(rd_call *call);

/* rb_wait.c: waiting inside an application call until `satisfied` says so (asked under the lock).
 * On another thread than the call's, that may be over afterwards. */
typedef bool (*rd_satisfied)(const rd_request *request);
/* Whether the client is still there. */
bool rd_wait_until(rd_binding *binding, rd_request *request, rd_satisfied satisfied);
bool rd_has_drained(const rd_request *request);
bool rd_has_body(const rd_request *request);
bool rd_has_sent_all(const rd_request *request);
/* Sends one part of a body, then waits until the client has taken enough, or, when the call had its
 * turn, lets others go first. 0, or RD_ERR_CLOSED when nobody is there any more. The wait for the
 * client takes nothing of the body's time: to be added to turn_ns, unless the call is over by then,
 * ended by another thread. */
int rd_send_part(rd_call *call, VALUE part, uint64_t *waited_ns);
/* Whether somebody is still there to answer; takes the lock. */
bool rd_call_has_client(const rd_call *call);

/* rb_dispatch.c */
/* Takes the next request of the batch and lets go of the one `before`; false: the batch is over. */
bool rd_call_begin(rd_call *call, rd_runner *runner, rd_request *before);
/* Calls the application and answers. The request to let go of, or NULL when a stream goes on. */
rd_request *rd_call_run(rd_call *call);
VALUE rd_call_hook(VALUE hook);
/* An error that belongs to no request. */
void rd_report_error(rd_binding *binding, VALUE error);
void rd_call_complete(rd_call *call); /* log, response_finished, references */
/* The call that runs on this thread, of whatever server; NULL: none does. */
rd_call *rd_call_current(void);
/* Where the application returns to a call: with a continuation it may return to one that is over,
 * and nothing that this points to is there any more. Raises then. */
void rd_call_check(const rd_call *call);

static inline bool rd_call_is_current(const rd_call *call) {
    return call->runner == NULL || call->runner->serial == call->serial;
}

/* rb_response.c */
void rd_respond(rd_call *call);
void rd_close_body(rd_call *call);
/* The application's own answer is not sent: its body is closed, this one takes its place. */
void rd_replace_response(rd_call *call, VALUE response);
void rd_early_hints_send(rd_call *call, VALUE headers);
/* Queues one part of a body, copied or, when it is long, borrowed. Takes the lock itself. 0 or
 * RD_ERR_CLOSED. */
int rd_write_part(rd_call *call, VALUE part);

/* rb_each.c: sends what the body's `each` yields, until its end or the client's. */
void rd_give_parts(rd_call *call);

/* rb_borrow.c: what the GC must not take while its bytes are queued. */
rd_release *rd_borrow_string(rd_binding *binding, VALUE frozen);
void rd_borrow_release_all(rd_binding *binding);
void rd_borrow_clear(rd_binding *binding);

/* rb_upgrade.c: the application may have set rack.upgrade. True: the connection is the handler's,
 * or nobody's; false: answer as usual, with a response that may be another one now. */
bool rd_upgrade(rd_call *call);

/* Env has as many keys as it came with, and the status is one: then there is nothing to upgrade. */
static inline bool rd_may_upgrade(const rd_call *call) {
    return call->upgrade != NULL || RHASH_SIZE(call->env) != call->env_size ||
           (FIXNUM_P(call->status) && FIX2LONG(call->status) < 100);
}

/* rb_client.c */
void rd_init_client(VALUE rondo);
/* Calls the handler; the state of a Thread#kill, or 0. */
int rd_client_tell(rd_binding *binding, const rd_event *event);

/* rb_log.c */
void rd_log_request(rd_call *call);
void rd_log_flush(rd_binding *binding);
void rd_log_refusals(rd_binding *binding);

#endif
