/* SPDX-License-Identifier: MIT
 *
 * A message that waits for the application: from the client of an endpoint, or from a channel.
 * Small ones of a client stand in blocks of one size, which the server keeps for the next ones:
 * an allocation would be a tenth of what an echoed message costs. Under the loop lock.
 */
#ifndef RD_ENDPOINT_ENDPOINT_MESSAGE_H
#define RD_ENDPOINT_ENDPOINT_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/list.h"
#include "pubsub/message.h"

struct rd_http_shared;

enum { RD_ENDPOINT_MESSAGE_ROOM = 448, RD_ENDPOINT_MESSAGES_KEPT = 64 };

typedef struct rd_endpoint_message {
    rd_list node;
    rd_buffer payload;
    rd_message *published; /* a reference; NULL: `payload` came from the client */
    uintptr_t block;       /* of the subscription */
    bool is_text;
    bool is_ascii; /* a text of the client */
    bool is_gap;   /* no message: `payload` is a channel of which some are lost */
    bool has_room; /* `payload` begins in it, and moves out when it grows */
    char room[];
} rd_endpoint_message;

/* A copy of these bytes. */
rd_endpoint_message *rd_endpoint_message_new(struct rd_http_shared *shared, const char *bytes,
                                             size_t len);

/* Adds bytes to a piece of a stream. */
void rd_endpoint_message_append(rd_endpoint_message *message, const char *bytes, size_t len);

/* What it takes, with a published message that it shares. */
size_t rd_endpoint_message_memory(const rd_endpoint_message *message);

void rd_endpoint_message_free(struct rd_http_shared *shared, rd_endpoint_message *message);

/* Frees the blocks that are kept. There is no endpoint any more. */
void rd_endpoint_messages_clear(struct rd_http_shared *shared);

#endif
