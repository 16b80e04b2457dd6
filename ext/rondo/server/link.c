/* SPDX-License-Identifier: MIT
 *
 * Frames to the hub and from it; see link.h. A ticket stands for an answer that is due. The hub
 * answers in the order in which it was asked.
 */
#include "server/link.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"

enum { NOTE_BYTES = 8 };

typedef struct ticket {
    rd_list in_link;
    rd_link_replay *replay; /* NULL: whoever asked has gone */
    uint64_t number;
    bool is_pattern;
    size_t name_len;
    char name[];
} ticket;

static ticket *first_ticket(const rd_link *link) {
    if (rd_list_is_empty(&link->tickets)) return NULL;
    return RD_CONTAINER(link->tickets.next, ticket, in_link);
}

static bool has_ticket(const rd_link *link, rd_slice name, bool is_pattern) {
    for (rd_list *node = link->tickets.next; node != &link->tickets; node = node->next) {
        const ticket *due = RD_CONTAINER(node, ticket, in_link);
        if (due->is_pattern != is_pattern) continue;
        if (rd_slice_equal(rd_slice_of(due->name, due->name_len), name)) return true;
    }
    return false;
}

/* ---- to the hub ---- */

/* Messages are refused above the limit; the rest is needed, so a link that cannot take it ends. */
static bool has_room(rd_link *link, const rd_relay_frame *frame) {
    const size_t limit = (size_t)link->settings.hub_queue_bytes, queued = link->conn->out.bytes;
    const size_t len = RD_RELAY_HEAD_BYTES + frame->channel.len + frame->payload.len;
    if (frame->type == RD_RELAY_PUBLISH) return queued == 0 || queued + len <= limit;
    if (queued + len <= 2 * limit) return true;
    rd_conn_close(link->conn);
    return false;
}

/* 1, 0 or an error of relay.h. */
static int send_frame(rd_link *link, const rd_relay_frame *frame) {
    char head[RD_RELAY_HEAD_BYTES];
    const int code = rd_relay_head(frame, RD_RELAY_PAYLOAD_MAX, head);
    if (code < 0) return code;
    if (link->conn == NULL || !has_room(link, frame)) return 0;
    rd_outq *out = &link->conn->out;
    rd_outq_copy(out, &link->conns.chunks, head, sizeof(head));
    rd_outq_copy(out, &link->conns.chunks, frame->channel.ptr, frame->channel.len);
    rd_outq_copy(out, &link->conns.chunks, frame->payload.ptr, frame->payload.len);
    rd_conn_mark_dirty(link->conn);
    return 1;
}

static uint8_t pattern_flag(bool is_pattern) {
    return is_pattern ? RD_RELAY_PATTERN : 0;
}

void rd_link_subscribe(rd_link *link, rd_slice name, bool is_pattern) {
    send_frame(link, &(rd_relay_frame){.type = RD_RELAY_SUBSCRIBE,
                                       .flags = pattern_flag(is_pattern),
                                       .channel = name});
}

void rd_link_unsubscribe(rd_link *link, rd_slice name, bool is_pattern) {
    if (has_ticket(link, name, is_pattern)) return; /* at the end of that one, if still so */
    send_frame(link, &(rd_relay_frame){.type = RD_RELAY_UNSUBSCRIBE,
                                       .flags = pattern_flag(is_pattern),
                                       .channel = name});
}

int rd_link_publish(rd_link *link, rd_slice channel, rd_slice payload, unsigned flags) {
    const int code = send_frame(link, &(rd_relay_frame){.type = RD_RELAY_PUBLISH,
                                                        .flags = (uint8_t)flags,
                                                        .channel = channel,
                                                        .payload = payload});
    link->published += code > 0;
    link->refused += code == 0;
    return code;
}

void rd_link_keep(rd_link *link, rd_slice name, bool is_pattern, uint32_t size, uint64_t ttl_ms) {
    char terms[RD_RELAY_TERMS_BYTES];
    rd_relay_put_terms(terms, size, ttl_ms);
    send_frame(link, &(rd_relay_frame){.type = RD_RELAY_KEEP,
                                       .flags = pattern_flag(is_pattern),
                                       .channel = name,
                                       .payload = rd_slice_of(terms, sizeof(terms))});
}

bool rd_link_replay_begin(rd_link *link, rd_link_replay *replay, rd_slice name, bool is_pattern,
                          uint64_t since) {
    char note[NOTE_BYTES];
    rd_relay_put_number(note, NOTE_BYTES, link->last_number + 1);
    const rd_relay_frame frame = {.type = RD_RELAY_REPLAY,
                                  .flags = pattern_flag(is_pattern),
                                  .id = since,
                                  .channel = name,
                                  .payload = rd_slice_of(note, sizeof(note))};
    if (send_frame(link, &frame) != 1) return false;
    ticket *due = rd_alloc(sizeof(*due) + name.len);
    *due = (ticket){.replay = replay, .number = ++link->last_number, .is_pattern = is_pattern};
    due->name_len = name.len;
    memcpy(due->name, name.ptr, name.len);
    rd_list_append(&link->tickets, &due->in_link);
    replay->number = due->number;
    return true;
}

void rd_link_replay_cancel(rd_link *link, rd_link_replay *replay) {
    if (replay->number == 0) return;
    for (rd_list *node = link->tickets.next; node != &link->tickets; node = node->next) {
        ticket *due = RD_CONTAINER(node, ticket, in_link);
        if (due->number == replay->number) due->replay = NULL;
    }
    replay->number = 0;
}

/* ---- from the hub ---- */

/* Whoever asked subscribes now; when nobody did, and nobody else does, the hub need not send. */
static void end_ticket(rd_link *link, ticket *due, rd_replay kind) {
    const rd_slice name = rd_slice_of(due->name, due->name_len);
    rd_list_unlink(&due->in_link);
    if (due->replay != NULL) {
        due->replay->number = 0;
        due->replay->on_end(due->replay, kind);
    }
    if (!link->ops->is_wanted(link, name, due->is_pattern)) {
        rd_link_unsubscribe(link, name, due->is_pattern);
    }
    rd_free(due);
}

/* Whether the answer is for the ticket that is due. */
static bool is_due(const rd_link *link, const rd_relay_frame *frame) {
    const ticket *due = first_ticket(link);
    return due != NULL && frame->payload.len == NOTE_BYTES &&
           rd_relay_get_number(frame->payload.ptr, NOTE_BYTES) == due->number;
}

static void take_message(rd_link *link, const rd_relay_frame *frame) {
    if (!link->is_replaying) {
        link->ops->on_message(link, frame);
        return;
    }
    rd_link_replay *replay = first_ticket(link)->replay;
    if (replay != NULL) replay->on_message(replay, frame);
}

/* False: no hub says that. */
static bool take(rd_link *link, const rd_relay_frame *frame) {
    switch (frame->type) {
    case RD_RELAY_PUBLISH:
        take_message(link, frame);
        return true;
    case RD_RELAY_KEEP:
        link->ops->on_rule(link, frame);
        return true;
    case RD_RELAY_REPLAY_BEGIN:
        if (link->is_replaying || !is_due(link, frame)) return false;
        link->is_replaying = true;
        return true;
    case RD_RELAY_REPLAY_END:
        if (!link->is_replaying || !is_due(link, frame) || frame->id > RD_REPLAY_NONE) return false;
        link->is_replaying = false;
        end_ticket(link, first_ticket(link), (rd_replay)frame->id);
        return true;
    default:
        return false;
    }
}

static void on_open(rd_conn *conn) {
    (void)conn;
}

/* What is called may end the link. */
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
    link->is_replaying = false;
    for (ticket *due; (due = first_ticket(link)) != NULL;) end_ticket(link, due, RD_REPLAY_GAP);
}

/* No deadlines, and apart from the connections of the server that stops. */
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
    link->settings.write_timeout_ms = INT64_MAX / 4; /* the hub rests while its program changes */
    link->ops = ops;
    link->owner = owner;
    rd_list_init(&link->tickets);
    rd_relay_reader_init(&link->reader, RD_RELAY_PAYLOAD_MAX);
    rd_conn_set_init(&link->conns, loop, &link->settings);
    link->conns.shared = link;
    link->conn = rd_conn_open(&link->conns, fd, &rd_transport_tcp, &protocol, &nobody);
    rd_conn_flush(link->conn); /* brings it to the poller */
    return link;
}

void rd_link_free(rd_link *link) {
    if (link->conn != NULL) rd_conn_close(link->conn);
    rd_relay_reader_clear(&link->reader);
    rd_conn_set_clear(&link->conns);
    rd_free(link);
}

/* What is still unsent, and on which descriptor. */
static size_t flush_some(rd_link *link, int *fd) {
    size_t left = 0;
    rd_loop *loop = link->conns.loop;
    rd_loop_lock(loop);
    rd_loop_refresh(loop);
    if (link->conn != NULL) rd_conn_flush(link->conn);
    if (link->conn != NULL) {
        left = link->conn->out.bytes;
        *fd = link->conn->source.fd;
    }
    rd_loop_unlock(loop);
    return left;
}

void rd_link_finish(rd_link *link, int64_t timeout_ms) {
    const uint64_t due = rd_clock_ms() + (uint64_t)timeout_ms;
    struct pollfd room = {.fd = -1, .events = POLLOUT};
    while (flush_some(link, &room.fd) > 0) {
        const uint64_t now = rd_clock_ms();
        if (now >= due) return;
        poll(&room, 1, (int)(due - now));
    }
}
