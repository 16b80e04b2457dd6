/* SPDX-License-Identifier: MIT
 *
 * Rondo::Client to those who add methods to it: rb_client.c has its life and its handler,
 * rb_client_event.c the events of a stream.
 */
#ifndef RD_RUBY_CLIENT_H
#define RD_RUBY_CLIENT_H

#include "ruby/rb_binding.h"

typedef struct rd_client {
    rd_binding *binding; /* a reference */
    rd_push *push;       /* a reference; NULL once on_close was told */
    ID protocol;         /* rd_id.websocket or rd_id.sse */
    VALUE handler, env;
    VALUE close_code, close_reason; /* inside on_close, else nil */
} rd_client;

rd_client *rd_client_of(VALUE self);

/* The loop lock, if the connection can still be sent to. */
bool rd_client_lock(rd_client *client);

/* What is sent: a String as it is, a Hash or an Array as JSON. Raises TypeError. */
VALUE rd_client_text_of(VALUE data);

/* Whether it is sent as text. Raises ArgumentError for text that is not valid. */
bool rd_client_is_text(const rd_client *client, VALUE string);

/* Adds event. */
void rd_init_client_event(VALUE client);

#endif
