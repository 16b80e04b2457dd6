/* SPDX-License-Identifier: MIT
 *
 * Channels for the application. With the GVL.
 */
#ifndef RD_APP_CHANNELS_H
#define RD_APP_CHANNELS_H

#include <ruby.h>
#include "endpoint/endpoint.h"

/* Adds subscribe, unsubscribe and publish to Rondo::Client. */
void rd_init_channels(VALUE cClient);

/* Adds to Rondo::Server::Core what Rondo::PubSub needs. */
void rd_init_core_channels(VALUE core);

/* The key of an endpoint's block in the binding's Hash `subscribers`. */
VALUE rd_subscriber_key(const rd_endpoint *endpoint);

/* Calls the block of a subscription, unless it is nil. */
VALUE rd_channels_call_block(VALUE block, const rd_endpoint_message *message);

#endif
