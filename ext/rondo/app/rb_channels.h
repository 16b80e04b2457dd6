/* SPDX-License-Identifier: MIT
 *
 * Channels for the application. With the GVL.
 */
#ifndef RD_APP_CHANNELS_H
#define RD_APP_CHANNELS_H

#include <ruby.h>
#include "http/push.h"

/* Adds subscribe, unsubscribe and publish to Rondo::Client. */
void rd_init_channels(VALUE cClient);

/* What Rondo::PubSub needs of Rondo::Server::Core. */
void rd_init_core_channels(VALUE core);

/* Finds the block of a push in the binding's Hash `subscribers`. */
VALUE rd_subscriber_key(const rd_push *push);

/* Calls the block of a subscription, if it is still there. */
VALUE rd_channels_tell(VALUE block, const rd_push_message *message);

#endif
