/* SPDX-License-Identifier: MIT
 *
 * The hub's end of a link: its frames, its queue, its place on the scoreboard; see hub_link.h.
 */
#include "cluster/hub_link.h"

#include <errno.h>
#include <fcntl.h>

#include "base/error.h"
#include "system/clock.h"

enum {
    CATCH_UP = 1024,  /* changes of interests sent in one turn */
    LAST_READS = 4096 /* of a link whose process has gone: more than any socket holds */
};

static rd_conn *conn_of(const rd_hub_link *link) {
    const rd_hub_conn *state = RD_CONTAINER(link, const rd_hub_conn, link);
    return (rd_conn *)(void *)state - 1;
}

static rd_hub_thread *thread_of(const rd_conn *conn) {
    return conn->set->shared;
}

void rd_hub_links_take_time(rd_hub_thread *thread) {
    thread->hub.now_ms = thread->loop.now_ms;
    thread->hub.wall_us = (uint64_t)rd_clock_wall_us();
}

/* ---- sending ---- */

static void queue_frame(rd_conn *conn, const char *head, const rd_relay_frame *frame,
                        rd_message *message) {
    rd_chunk_pool *chunks = &conn->set->chunks;
    rd_outq_copy(&conn->out, chunks, head, RD_RELAY_HEAD_BYTES);
    if (message != NULL && frame->payload.len > RD_HUB_COPY_MAX) {
        rd_message_borrow(message, &conn->out);
        return;
    }
    rd_outq_copy(&conn->out, chunks, frame->channel.ptr, frame->channel.len);
    rd_outq_copy(&conn->out, chunks, frame->payload.ptr, frame->payload.len);
}

/* Implements rd_hub_send. */
static bool send_frame(rd_hub_link *link, const rd_relay_frame *frame, rd_message *message) {
    rd_conn *conn = conn_of(link);
    rd_hub_thread *thread = thread_of(conn);
    const size_t queued = conn->out.bytes, limit = thread->queue_bytes;
    const size_t len = RD_RELAY_HEAD_BYTES + frame->channel.len + frame->payload.len;
    const bool may_wait = frame->type <= RD_RELAY_PUBLISH;
    char head[RD_RELAY_HEAD_BYTES];
    if (queued <= limit / 2) link->is_losing = false;
    if (may_wait && queued > 0 && queued + len > limit) return false;
    if (!may_wait && queued + len > 2 * limit) {
        rd_hub_conn_of(conn)->is_overrun = thread->has_overrun = true;
        return false;
    }
    if (rd_relay_head(frame, RD_RELAY_PAYLOAD_MAX, head) < 0) return false;
    queue_frame(conn, head, frame, message);
    rd_conn_mark_dirty(conn);
    return true;
}

/* Implements rd_hub_room: a quarter of the queue, as long as no more than a quarter is in use. */
static size_t room_for_replay(const rd_hub_link *link) {
    const rd_conn *conn = conn_of(link);
    const size_t part = thread_of(conn)->queue_bytes / 4;
    return conn->out.bytes <= part ? part : 0;
}

/* A process that has gone may have left messages to read. So a write error does not end the link;
 * the end of its input does. */
static ssize_t write_or_forget(rd_conn *conn, const struct iovec *iov, int count, bool more) {
    ssize_t sent = rd_transport_tcp.write(conn, iov, count, more);
    if (sent >= 0 || (errno != EPIPE && errno != ECONNRESET)) return sent;
    sent = 0;
    for (int i = 0; i < count; i++) sent += (ssize_t)iov[i].iov_len;
    return sent;
}

/* ---- links ---- */

static void on_open(rd_conn *conn) {
    rd_relay_reader_init(&rd_hub_conn_of(conn)->reader, RD_RELAY_PAYLOAD_MAX);
}

static void on_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_hub_thread *thread = thread_of(conn);
    rd_hub_conn *state = rd_hub_conn_of(conn);
    rd_hub_links_take_time(thread);
    for (size_t at = 0, used; at <= len; at += used) {
        rd_relay_frame frame;
        int code = rd_relay_read(&state->reader, bytes + at, len - at, &used, &frame);
        if (code == 0) return;
        if (code > 0) code = rd_hub_receive(&thread->hub, &state->link, &frame);
        if (code < 0) {
            rd_conn_close(conn);
            return;
        }
    }
}

static void on_close(rd_conn *conn) {
    rd_hub_thread *thread = thread_of(conn);
    rd_hub_conn *state = rd_hub_conn_of(conn);
    thread->sent += state->link.sent;
    thread->dropped += state->link.dropped;
    rd_hub_leave(&thread->hub, &state->link);
    rd_relay_reader_clear(&state->reader);
}

/* The hub has no deadlines and does not drain, so these callbacks are never called. */
static const rd_protocol protocol = {
    .state_size = sizeof(rd_hub_conn),
    .on_open = on_open,
    .on_data = on_data,
    .on_eof = rd_conn_close,
    .on_close = on_close,
};

rd_conn *rd_hub_link_open(rd_hub_thread *thread, int fd, rd_hub_kind kind) {
    const rd_address nobody = {.kind = RD_ADDRESS_UNIX};
    const int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0) return NULL;
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return NULL;
    rd_conn *conn = rd_conn_open(&thread->conns, fd, &thread->transport, &protocol, &nobody);
    rd_hub_conn_of(conn)->reader.takes_saved = kind == RD_HUB_STREAMS;
    rd_hub_join(&thread->hub, &rd_hub_conn_of(conn)->link, kind);
    rd_conn_mark_dirty(conn); /* the first flush adds it to the poller */
    return conn;
}

/* ---- what a turn does ---- */

static void close_overrun(rd_hub_thread *thread) {
    if (!thread->has_overrun) return;
    thread->has_overrun = false;
    for (rd_list *node = thread->conns.conns.next; node != &thread->conns.conns;) {
        rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set);
        node = node->next;
        if (rd_hub_conn_of(conn)->is_overrun) rd_conn_close(conn);
    }
}

static void write_scores(rd_hub_thread *thread) {
    RD_EACH_HUB_CONN(thread, conn, node) {
        const rd_hub_conn *state = rd_hub_conn_of(conn);
        if (state->score == NULL) continue;
#define PUT(name, value) atomic_store_explicit(&state->score->name, (value), memory_order_relaxed)
        PUT(relayed, state->link.sent);
        PUT(relay_dropped, state->link.dropped);
        PUT(replay_gaps, state->link.replay_gaps);
        PUT(relay_queue, conn->out.bytes);
#undef PUT
    }
}

/* Whether half of the queue of the engine is free. */
static bool has_room(const rd_hub_thread *thread) {
    const rd_hub_link *engine = thread->hub.engine;
    return engine != NULL && conn_of(engine)->out.bytes <= thread->queue_bytes / 2;
}

/* Whether the engine has not been sent all changes, although there is room. */
static bool is_behind(const rd_hub_thread *thread) {
    return !rd_changes_is_empty(&thread->hub.changes) && has_room(thread);
}

/* Returns whether there is more to do at once. */
static bool send_all(rd_hub_thread *thread) {
    rd_conn_set_flush(&thread->conns);
    if (is_behind(thread)) rd_hub_catch_up(&thread->hub, CATCH_UP);
    const bool claims_more = has_room(thread) && rd_hub_claim(&thread->hub, CATCH_UP);
    const bool has_more = rd_hub_answer(&thread->hub);
    rd_conn_set_flush(&thread->conns); /* may make room for the next answers */
    return has_more || claims_more || rd_hub_can_answer(&thread->hub) || is_behind(thread);
}

bool rd_hub_links_serve(rd_hub_thread *thread) {
    const bool goes_on = send_all(thread);
    close_overrun(thread);
    write_scores(thread);
    return goes_on;
}

/* ---- the end of a link ---- */

static void read_last_words(rd_hub_thread *thread, rd_conn *conn) {
    for (int i = 0; rd_conn_is_open(conn) && i < LAST_READS; i++) {
        const uint64_t before = thread->conns.bytes_in;
        rd_conn_read_now(conn);
        if (before == thread->conns.bytes_in) break;
    }
}

/* A worker's link closes at once; an engine still gets what is queued for it. */
static void close_or_finish(rd_hub_thread *thread, rd_conn *conn) {
    const rd_hub_link *link = &rd_hub_conn_of(conn)->link;
    if (!rd_hub_is_engine(link->kind) || !rd_conn_is_open(conn)) {
        rd_conn_close(conn);
        return;
    }
    rd_hub_retire_engine(&thread->hub, link);
    rd_conn_finish(conn, false);
}

void rd_hub_link_end(rd_hub_thread *thread, rd_conn *conn) {
    rd_conn_ref(conn);
    read_last_words(thread, conn);
    close_or_finish(thread, conn);
    rd_conn_unref(conn);
}

/* ---- all of them ---- */

void rd_hub_links_init(rd_hub_thread *thread, rd_history_limits limits, size_t queue_bytes) {
    rd_settings_init(&thread->settings);
    thread->settings.write_timeout_ms = INT64_MAX / 4; /* a stopped process may continue later */
    rd_conn_set_init(&thread->conns, &thread->loop, &thread->settings);
    thread->conns.shared = thread;
    thread->transport = rd_transport_tcp;
    thread->transport.write = write_or_forget;
    thread->queue_bytes = queue_bytes;
    rd_hub_init(&thread->hub, send_frame, room_for_replay, limits, (uint64_t)rd_clock_wall_us());
    thread->hub.unclaimed_max = queue_bytes;
}

void rd_hub_links_clear(rd_hub_thread *thread) {
    while (!rd_list_is_empty(&thread->conns.conns)) {
        rd_conn_close(RD_CONTAINER(thread->conns.conns.next, rd_conn, in_set));
    }
    rd_hub_clear(&thread->hub);
}
