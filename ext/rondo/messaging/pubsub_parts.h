/* SPDX-License-Identifier: MIT
 *
 * What the files of a process's pub/sub have of each other: observer.c, subscribing.c, and
 * pubsub.c, which calls both. Under the loop lock.
 */
#ifndef RD_MESSAGING_PUBSUB_PARTS_H
#define RD_MESSAGING_PUBSUB_PARTS_H

#include "messaging/pubsub.h"

/* A message as the hub sends it. The caller has the reference. */
static inline rd_message *rd_pubsub_message_of(const rd_relay_frame *frame) {
    const bool is_text = (frame->flags & RD_RELAY_TEXT) != 0;
    rd_message *message = rd_message_new(frame->channel, frame->payload, is_text, frame->id);
    message->is_gap = (frame->flags & RD_RELAY_GAP) != 0;
    return message;
}

/* A channel has its first subscriber here, or no more. */
void rd_pubsub_notify_observer(rd_pubsub *pubsub, rd_slice name, bool is_pattern, bool is_wanted);

/* From now on there is no observer. */
void rd_pubsub_end_observer(rd_pubsub *pubsub);

#endif
