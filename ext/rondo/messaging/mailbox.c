/* SPDX-License-Identifier: MIT
 *
 * A subscriber of the server's own Ruby code, which takes its messages on a thread of its own; see
 * pubsub.h. It makes no events, so its messages need no thread of the application.
 */
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "messaging/pubsub.h"

typedef struct rd_letter {
    rd_list node;
    rd_message *message; /* a reference */
} rd_letter;

typedef struct rd_mailbox {
    rd_endpoint endpoint;
    rd_list *letters; /* a ring */
    size_t bytes;     /* of their messages */
    int fd;
} rd_mailbox;

static rd_mailbox *mailbox_of(rd_endpoint *endpoint) {
    return RD_CONTAINER(endpoint, rd_mailbox, endpoint);
}

static void ring_the_bell(int fd) {
    while (write(fd, ".", 1) < 0 && errno == EINTR) {
    } /* a full pipe wakes as well */
}

static void mailbox_overflow(rd_endpoint *endpoint) {
    endpoint->shared->messages_dropped++;
}

static size_t memory_of(const rd_message *message) {
    return sizeof(*message) + sizeof(rd_letter) + message->channel_len + message->payload_len;
}

static void mailbox_deliver(rd_endpoint *endpoint, rd_message *message, rd_receive_as as) {
    (void)as;
    rd_mailbox *mailbox = mailbox_of(endpoint);
    const bool was_empty = mailbox->letters == NULL;
    if (mailbox->bytes + memory_of(message) > RD_MAILBOX_BYTES) {
        mailbox_overflow(endpoint);
        return;
    }
    rd_letter *letter = rd_alloc_zero(sizeof(*letter));
    letter->message = rd_message_ref(message);
    mailbox->bytes += memory_of(message);
    rd_ring_append(&mailbox->letters, &letter->node);
    if (was_empty) ring_the_bell(mailbox->fd);
}

static void mailbox_handled(rd_endpoint *endpoint) {
    (void)endpoint;
}

rd_message *rd_mailbox_take(rd_endpoint *endpoint) {
    rd_mailbox *mailbox = mailbox_of(endpoint);
    rd_list *node = rd_ring_shift(&mailbox->letters);
    if (node == NULL) return NULL;
    rd_letter *letter = RD_CONTAINER(node, rd_letter, node);
    rd_message *message = letter->message;
    mailbox->bytes -= memory_of(message);
    rd_free(letter);
    return message;
}

static void mailbox_free(rd_endpoint *endpoint) {
    for (rd_message *message; (message = rd_mailbox_take(endpoint)) != NULL;) {
        rd_message_unref(message);
    }
    rd_free(mailbox_of(endpoint));
}

static const rd_endpoint_ops mailbox_ops = {
    .events = RD_ENDPOINT_EVENTS(RD_EVENTS_OF_SUBSCRIBER),
    .deliver = mailbox_deliver,
    .overflow = mailbox_overflow,
    .handled = mailbox_handled,
    .free = mailbox_free,
};

rd_endpoint *rd_pubsub_mailbox(rd_pubsub *pubsub, int fd) {
    rd_mailbox *mailbox = rd_alloc_zero(sizeof(*mailbox));
    mailbox->fd = fd;
    rd_endpoint_init(&mailbox->endpoint, &mailbox_ops, pubsub->shared, NULL);
    return &mailbox->endpoint;
}
