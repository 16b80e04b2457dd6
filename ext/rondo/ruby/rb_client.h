/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client to those who add methods to it: rb_client.c has its life and its handler,
 * rb_client_event.c the events of a stream, rb_channels.c what it subscribes to.
 */
#ifndef RD_RUBY_CLIENT_H
#define RD_RUBY_CLIENT_H

#include "ruby/rb_binding.h"

typedef struct rd_client {
    rd_binding *binding; /* a reference */
    rd_push *push;       /* a reference; NULL once on_close was told */
    ID protocol;         /* rd_id.websocket or rd_id.sse */
    VALUE handler;
    VALUE next_handler; /* Qundef: none */
    VALUE env;
    VALUE blocks; /* nil, or a Hash: number → block, kind and name of its subscription → number */
    VALUE close_code, close_reason; /* inside on_close, else nil */
    uint64_t last_block;            /* the highest number in `blocks` so far */
} rd_client;

rd_client *rd_client_of(VALUE self);

/* The loop lock, if the connection can still be sent to. */
bool rd_client_lock(rd_client *client);

/* What is sent: a String as it is, a Hash or an Array as JSON. Raises TypeError. */
VALUE rd_client_text_of(VALUE data);

/* Whether it is sent as text. Raises ArgumentError for text that is not valid. */
bool rd_client_is_text(VALUE string);

/* Whether this client gets it as text; a stream of events has nothing else. Raises ArgumentError.
 */
bool rd_client_goes_as_text(const rd_client *client, VALUE string);

/* Finds the Ruby object of a push in the binding's Hash `clients`. */
VALUE rd_client_key(const rd_push *push);

/* Whether on_drained is wanted, which costs a callback for every broadcast. */
void rd_client_watch_drained(rd_client *client);

/* Adds event. */
void rd_init_client_event(VALUE client);

/* The String of a String or Symbol. Raises TypeError, and ArgumentError for a name that is none. */
VALUE rd_channels_name_of(VALUE channel);

/* Raises ArgumentError. */
__attribute__((noreturn)) void rd_channels_too_long(void);

/* Adds subscribe, unsubscribe and publish. */
void rd_init_channels(VALUE client);

/* What Rondo::PubSub needs of Rondo::Server::Core. */
void rd_init_core_channels(VALUE core);

/* Calls the block of a subscription, if it is still there. */
VALUE rd_channels_tell(VALUE block, const rd_push_message *message);

#endif
