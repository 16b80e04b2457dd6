/* SPDX-License-Identifier: MIT
 *
 * A link from its beginning to its end, and the frames that come from the hub; see link.h.
 */
#include "cluster/link.h"

#include <fcntl.h>

#include "base/alloc.h"
#include "cluster/link_parts.h"

/* ---- subscriptions ---- */

/* A requested replay subscribes, too. At its end the link checks which subscriptions are still
 * wanted. */
void rd_link_subscribe(rd_link *link, rd_slice name, bool is_pattern) {
    if (rd_link_has_ticket(link, name, is_pattern)) return;
    rd_link_note_interest(link, name, is_pattern, true);
}

void rd_link_unsubscribe(rd_link *link, rd_slice name, bool is_pattern) {
    if (rd_link_has_ticket(link, name, is_pattern)) return;
    rd_link_note_interest(link, name, is_pattern, false);
}

/* ---- from the hub ---- */

/* Returns false for a frame that a hub never sends. */
static bool take(rd_link *link, const rd_relay_frame *frame) {
    switch (frame->type) {
    case RD_RELAY_PUBLISH:
        if (link->answering != NULL)
            rd_link_answer_take(link, frame);
        else
            link->ops->on_message(link, frame);
        return true;
    case RD_RELAY_KEEP:
        link->ops->on_rule(link, frame);
        return true;
    case RD_RELAY_REPLAY_WAITS:
        return rd_link_answer_waits(link, frame);
    case RD_RELAY_REPLAY_BEGIN:
        return rd_link_answer_begin(link, frame);
    case RD_RELAY_REPLAY_END:
        return rd_link_answer_end(link, frame);
    default:
        return false;
    }
}

static void on_open(rd_conn *conn) {
    (void)conn;
}

/* The callbacks may end the link. */
static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_link *link = conn->set->shared;
    for (size_t at = 0, used; link->conn != NULL; at += used) {
        rd_relay_frame frame;
        const int code = rd_relay_read(&link->reader, bytes + at, len - at, &used, &frame);
        if (code == 0) return;
        if (code < 0 || !take(link, &frame)) {
            rd_conn_close(conn);
            return;
        }
    }
}

static void on_close(rd_conn *conn) {
    rd_link *link = conn->set->shared;
    link->conn = NULL;
    rd_changes_reset(&link->changes);
    rd_link_replays_end(link);
}

/* Has no deadlines, and is not one of the connections that a stopping server waits for. */
static const rd_protocol protocol = {
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = rd_conn_close,
    .on_close = on_close,
};

/* ---- life ---- */

rd_link *rd_link_open(rd_loop *loop, const rd_settings *settings, int fd, const rd_link_ops *ops,
                      void *owner) {
    const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return NULL;
    rd_link *link = rd_alloc_zero(sizeof(*link));
    link->settings = *settings;
    link->settings.write_timeout_ms = INT64_MAX / 4; /* the hub pauses while its program is
                                                      * replaced */
    link->ops = ops;
    link->owner = owner;
    rd_changes_init(&link->changes);
    rd_relay_reader_init(&link->reader, RD_RELAY_PAYLOAD_MAX);
    rd_conn_set_init(&link->conns, loop, &link->settings);
    link->conns.shared = link;
    rd_link_replays_init(link);
    link->conn = rd_conn_open(&link->conns, fd, &rd_transport_tcp, &protocol, &nobody);
    rd_conn_flush(link->conn); /* adds it to the poller */
    return link;
}

void rd_link_free(rd_link *link) {
    if (link->conn != NULL) rd_conn_close(link->conn);
    rd_relay_reader_clear(&link->reader);
    rd_changes_clear(&link->changes);
    rd_conn_set_clear(&link->conns);
    rd_aside_clear(&link->aside);
    rd_free(link->lines);
    rd_free(link);
}
