/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client to those who add methods to it: rb_client.c has its life and its handler,
 * rb_client_event.c the events of a stream, rb_channels.c what it subscribes to. With the GVL.
 */
#ifndef RD_APP_CLIENT_H
#define RD_APP_CLIENT_H

#include "rack/rb_call.h"

typedef struct rd_client {
    rd_binding *binding; /* a reference */
    rd_push *push;       /* a reference; NULL once on_close was told */
    const rd_upgrade_row *kind;
    VALUE handler;
    VALUE next_handler; /* Qundef: none */
    VALUE env;          /* as rd_env_keep() made it, then the Hash that was asked for */
    VALUE blocks; /* nil, or a Hash: number → block, kind and name of its subscription → number */
} rd_client;

rd_client *rd_client_of(VALUE self);

/* A client without a connection yet. */
VALUE rd_client_new(rd_call *call, VALUE handler);

/* A place in the binding's Array `clients`, and its end. */
uint32_t rd_client_keep(rd_binding *binding, VALUE object);
void rd_client_let_go(rd_binding *binding, uint32_t slot);

/* Whether it has such a callback, as rb_check_funcall() would find out. */
bool rd_handler_answers(VALUE handler, ID callback);

/* The loop lock, if the connection can still be sent to. */
bool rd_client_lock(rd_client *client);

/* Whether this client gets it as text; a stream of events has nothing else. Raises ArgumentError.
 */
bool rd_client_goes_as_text(const rd_client *client, VALUE string);

/* The Hash of the request that was upgraded. */
VALUE rd_client_env(VALUE self);

/* Whether on_drained is wanted, which costs a callback for every broadcast. */
void rd_client_watch_drained(rd_client *client);

/* Rondo::Client, without what other files add to it. YARD reads classes of void functions only. */
void rd_init_client(VALUE rondo);

#endif
