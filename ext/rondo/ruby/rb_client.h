/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client to those who add methods to it: rb_client.c has its life and its handler,
 * rb_upgrade.c the way to it, rb_client_event.c the events of a stream, rb_channels.c what it
 * subscribes to.
 */
#ifndef RD_RUBY_CLIENT_H
#define RD_RUBY_CLIENT_H

#include "ruby/rb_call.h"

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

/* What is sent: a String as it is, a Hash or an Array as JSON. Raises TypeError. */
VALUE rd_client_text_of(VALUE data);

/* Whether it is sent as text. Raises ArgumentError for text that is not valid. */
bool rd_client_is_text(VALUE string);

/* Whether this client gets it as text; a stream of events has nothing else. Raises ArgumentError.
 */
bool rd_client_goes_as_text(const rd_client *client, VALUE string);

/* The Hash of the request that was upgraded. */
VALUE rd_client_env(VALUE self);

/* Finds the block of a push in the binding's Hash `subscribers`. */
VALUE rd_subscriber_key(const rd_push *push);

/* Whether on_drained is wanted, which costs a callback for every broadcast. */
void rd_client_watch_drained(rd_client *client);

/* Adds event. The class has one name in all files, by which YARD finds it. */
void rd_init_client_event(VALUE cClient);

/* The String of a String or Symbol. Raises TypeError, and ArgumentError for a name that is none. */
VALUE rd_channels_name_of(VALUE channel);

/* Raises ArgumentError. */
__attribute__((noreturn)) void rd_channels_too_long(void);

/* Adds subscribe, unsubscribe and publish. */
void rd_init_channels(VALUE cClient);

/* What Rondo::PubSub needs of Rondo::Server::Core. */
void rd_init_core_channels(VALUE core);

/* Calls the block of a subscription, if it is still there. */
VALUE rd_channels_tell(VALUE block, const rd_push_message *message);

#endif
