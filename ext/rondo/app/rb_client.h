/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client, for the files that add methods to it: rb_client.c has its life and its handler,
 * rb_client_event.c the events of a stream, rb_channels.c its subscriptions. With the GVL.
 */
#ifndef RD_APP_CLIENT_H
#define RD_APP_CLIENT_H

#include "transport/address.h"
#include "rack/rb_call.h"

typedef struct rd_client {
    rd_binding *binding;   /* a reference */
    rd_endpoint *endpoint; /* a reference; NULL once on_close was called */
    const rd_upgrade_row *kind;
    VALUE handler;
    VALUE next_handler; /* Qundef: none */
    VALUE env;          /* as rd_env_keep() made it, then the Hash that env() made of it; nil; or a
                         * String: the URL of an outgoing connection, and behind a blank the
                         * sub-protocols that were offered */
    VALUE blocks; /* nil, or a Hash: number → block, kind and name of its subscription → number */
    rd_address peer;     /* as it was when the connection got its handler */
    bool takes_messages; /* the handler had on_message when it became the handler */
    bool has_joined;     /* it may be present somewhere: Rondo::Presence is told of its end */
} rd_client;

rd_client *rd_client_of(VALUE self);

/* A client without a connection yet. `env`: as rd_env_keep() made it, nil, or a URL. */
VALUE rd_client_new(rd_binding *binding, const rd_upgrade_row *kind, VALUE handler, VALUE env);

/* What a connection needs to have a handler; made before the lock is taken, because it raises. */
typedef struct rd_client_seat {
    VALUE self; /* the client, or nil: the handler has no callbacks */
    uint32_t index;
    bool wants_drained, wants_ping;
} rd_client_seat;

rd_client_seat rd_client_seat_new(rd_binding *binding, VALUE client, VALUE handler);

/* The connection has this handler from now on. Takes over a reference to the endpoint. Under the
 * lock, before an event can be delivered. */
void rd_client_attach(const rd_client_seat *seat, rd_endpoint *endpoint);

/* Keeps an object in the binding's Array `clients`, and removes it again. */
uint32_t rd_client_keep(rd_binding *binding, VALUE object);
void rd_client_let_go(rd_binding *binding, uint32_t index);

/* From now on its callbacks are called. */
void rd_client_set_handler(VALUE self, VALUE handler);

/* Whether the handler has this callback; the same rules as rb_check_funcall(). */
bool rd_handler_answers(VALUE handler, ID callback);

/* Whether the handler has a method for any event. */
bool rd_handler_wants_events(VALUE handler);

/* Takes the loop lock if the client can still be sent to. Else returns false, without the lock. */
bool rd_client_lock(rd_client *client);

/* Whether this client gets the String as text; an event stream has nothing else. Raises
 * ArgumentError. */
bool rd_client_goes_as_text(const rd_client *client, VALUE string);

/* The Hash of the request that was upgraded. */
VALUE rd_client_env(VALUE self);

/* Notes whether the handler has on_drained, which costs a callback for every broadcast, and ping.
 */
void rd_client_note_wishes(rd_client *client);

/* Defines Rondo::Client, without the methods of other files. YARD reads only void functions for
 * classes. */
void rd_init_client(VALUE rondo);

#endif
