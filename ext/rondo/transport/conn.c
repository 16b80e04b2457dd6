/* SPDX-License-Identifier: MIT
 *
 * Opening, reading, deadlines and the end of a connection; see conn.h. conn_send.c sends.
 */
#include "transport/conn_parts.h"

#include <assert.h>
#include <errno.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/apart.h"
#include "transport/progress.h"
#include "transport/stalled.h"

void rd_conn_set_state(rd_conn *conn, rd_conn_state state) {
    static const uint8_t ways[] = {
        [RD_CONN_OPEN] = 1 << RD_CONN_FINISHING | 1 << RD_CONN_CLOSED,
        [RD_CONN_FINISHING] = 1 << RD_CONN_LINGERING | 1 << RD_CONN_CLOSED,
        [RD_CONN_LINGERING] = 1 << RD_CONN_CLOSED,
        [RD_CONN_CLOSED] = 0,
    };
    assert(ways[conn->state] & 1 << state);
    (void)ways;
    conn->state = (uint8_t)state;
}

/* ---- the set ---- */

void rd_conn_set_init(rd_conn_set *set, rd_loop *loop, const rd_settings *settings) {
    *set = (rd_conn_set){.loop = loop, .settings = settings};
    rd_ledger_init(&set->ledger);
    rd_list_init(&set->conns);
    rd_list_init(&set->carried);
    rd_list_init(&set->dirty);
    rd_list_init(&set->stalled);
    rd_list_init(&set->long_sends);
}

void rd_conn_set_clear(rd_conn_set *set) {
    rd_chunk_pool_clear(&set->chunks);
    rd_slots_clear(&set->slots);
}

/* ---- deadlines ---- */

static uint64_t earliest(const rd_conn *conn) {
    uint64_t due = conn->write_deadline < conn->deadline ? conn->write_deadline : conn->deadline;
    if (conn->full_unread == 0) return due;
    uint64_t look = rd_progress_due(conn);
    return look < due ? look : due;
}

RD_APART static void set_timer(rd_conn *conn, uint64_t due) {
    rd_timer_set(&conn->set->loop->timers, &conn->timer, due);
}

void rd_conn_arm(rd_conn *conn) {
    uint64_t due = earliest(conn);
    if (due == UINT64_MAX) return;
    if (rd_timer_is_armed(&conn->timer) && conn->timer.due <= due) return;
    set_timer(conn, due);
}

static void read_some(rd_conn *conn);

/* The thread may have been held up since it asked the poller: what came by now came in time. */
static void look_again(rd_conn *conn) {
    if (conn->state != RD_CONN_OPEN || conn->read_eof || conn->read_paused) return;
    rd_conn_ref(conn);
    read_some(conn);
    rd_conn_unref(conn);
}

/* Nor is it the peer's fault that a long send stands in its line. */
static void send_what_waits(rd_conn *conn) {
    if (!rd_list_is_linked(&conn->in_dirty)) return;
    rd_conn_ref(conn);
    rd_conn_flush(conn);
    rd_conn_unref(conn);
}

/* When it has lingered long enough, whatever its peer takes. */
static uint64_t linger_end(const rd_conn *conn) {
    const rd_settings *settings = conn->set->settings;
    const int64_t longest = settings->write_timeout_ms > settings->linger_timeout_ms
                                ? settings->write_timeout_ms
                                : settings->linger_timeout_ms;
    return conn->lingers_since + (uint64_t)longest;
}

/* Closing may cost a slow reader the rest of its answer, when more of its input comes. */
static void end_linger(rd_conn *conn) {
    const uint64_t now = conn->set->loop->now_ms, end = linger_end(conn);
    if (now >= end || !rd_progress_while_lingering(conn)) {
        rd_conn_close(conn);
        return;
    }
    const uint64_t again = now + (uint64_t)conn->set->settings->linger_timeout_ms;
    conn->deadline = again < end ? again : end;
}

static void on_timer(rd_timer *timer) {
    rd_conn *conn = RD_CONTAINER(timer, rd_conn, timer);
    uint64_t now = conn->set->loop->now_ms;
    if (conn->write_deadline <= now) send_what_waits(conn);
    if (conn->state == RD_CONN_CLOSED) return;
    rd_progress_look(conn);
    if (conn->write_deadline <= now) {
        conn->set->write_timeouts++;
        rd_conn_reset(conn); /* the kernel forgets what it still has, too */
        return;
    }
    if (conn->deadline <= now) look_again(conn);
    if (conn->deadline <= now) {
        conn->deadline = UINT64_MAX;
        if (conn->state == RD_CONN_LINGERING) {
            end_linger(conn);
        } else if (conn->state == RD_CONN_OPEN) {
            conn->protocol->on_timeout(conn);
        }
    }
    if (conn->state != RD_CONN_CLOSED) rd_conn_arm(conn);
}

void rd_conn_set_deadline(rd_conn *conn, uint64_t at_ms) {
    conn->deadline = at_ms;
    rd_conn_arm(conn);
}

/* ---- opening ---- */

static void on_ready(rd_source *source, unsigned ready);

static void free_conn(rd_closing *closing) {
    rd_free(RD_CONTAINER(closing, rd_conn, closing));
}

static size_t rounded(size_t size) {
    return (size + 7) & ~(size_t)7;
}

static rd_conn *new_conn(rd_conn_set *set, int fd, const rd_transport *transport,
                         const rd_protocol *protocol, const rd_address *peer) {
    const size_t room = rounded(protocol->state_size);
    const size_t layer = transport->is_plain ? 0 : sizeof(rd_layer) + transport->state_size;
    assert(room <= UINT16_MAX);
    rd_conn *conn = rd_alloc_zero(sizeof(*conn) + room + layer);
    conn->source = (rd_source){.fd = fd, .interest = RD_READABLE, .on_ready = on_ready};
    conn->room = (uint16_t)room;
    conn->layered = !transport->is_plain;
    conn->secure = transport->is_secure;
    conn->set = set;
    conn->transport = transport;
    conn->protocol = protocol;
    conn->deadline = conn->write_deadline = UINT64_MAX;
    conn->refs = 1;
    conn->peer = *peer;
    conn->closing.free = free_conn;
    rd_list_init(&conn->closing.node);
    rd_list_init(&conn->in_dirty);
    rd_list_init(&conn->in_stalled);
    rd_list_init(&conn->in_set);
    rd_timer_init(&conn->timer, on_timer);
    conn->slot = rd_slots_take(&set->slots);
    return conn;
}

rd_conn *rd_conn_open(rd_conn_set *set, int fd, const rd_transport *transport,
                      const rd_protocol *protocol, const rd_address *peer) {
    rd_conn *conn = new_conn(set, fd, transport, protocol, peer);
    rd_list_append(&set->conns, &conn->in_set);
    set->count++;
    rd_ledger_add(&set->ledger, RD_LEDGER_DESCRIPTORS, 1);
    protocol->on_open(conn);
    return conn;
}

rd_conn *rd_conn_open_carried(rd_conn *carrier, const rd_transport *transport,
                              const rd_protocol *protocol) {
    assert(rd_conn_is_open(carrier) && !transport->is_plain);
    rd_conn *conn = new_conn(carrier->set, -1, transport, protocol, &carrier->peer);
    conn->uncounted = true;
    conn->secure = carrier->secure;
    rd_list_append(&carrier->set->carried, &conn->in_set);
    rd_conn_layer(conn)->carrier = carrier;
    rd_conn_ref(carrier);
    protocol->on_open(conn);
    return conn;
}

void rd_conn_switch(rd_conn *conn, const rd_protocol *protocol) {
    assert(rd_conn_is_open(conn) && protocol->state_size <= conn->room);
    memset(rd_conn_state_of(conn), 0, protocol->state_size);
    conn->protocol = protocol;
    conn->deadline = UINT64_MAX;
    conn->settled = conn->tell_empty = conn->read_paused = false;
    rd_conn_mark_dirty(conn); /* the poller hears of it then: the new state cannot be closed yet */
}

void rd_conn_ref(rd_conn *conn) {
    conn->refs++;
}

void rd_conn_unref(rd_conn *conn) {
    assert(conn->refs > 0);
    if (--conn->refs > 0) return;
    assert(conn->state == RD_CONN_CLOSED);
    rd_loop_free_later(conn->set->loop, &conn->closing);
}

/* ---- interest ---- */

static unsigned wanted_interest(const rd_conn *conn) {
    unsigned interest = 0;
    if (!conn->read_eof && !conn->read_paused) interest |= RD_READABLE;
    if (conn->out.bytes > 0 && !conn->warming) interest |= RD_WRITABLE;
    return interest;
}

void rd_conn_update_interest(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED) return;
    if (rd_loop_set_interest(conn->set->loop, &conn->source, wanted_interest(conn)) != 0) {
        rd_conn_close(conn);
    }
}

void rd_conn_ensure_registered(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED || conn->source.registered || conn->source.fd < 0) return;
    if (rd_loop_add(conn->set->loop, &conn->source, wanted_interest(conn)) != 0) {
        rd_conn_close(conn);
    }
}

void rd_conn_pause_reading(rd_conn *conn) {
    conn->read_paused = true;
    if (conn->source.registered) rd_conn_update_interest(conn);
}

void rd_conn_resume_reading(rd_conn *conn) {
    conn->read_paused = false;
    if (conn->source.registered) rd_conn_update_interest(conn);
}

/* ---- reading ---- */

void rd_conn_drop_input(rd_conn *conn) {
    rd_buffer_clear(&conn->input);
    rd_conn_count_input(conn);
}

static void linger_data(rd_conn *conn, size_t len) {
    if (len >= conn->linger_left) {
        rd_conn_close(conn);
        return;
    }
    conn->linger_left -= (uint32_t)len;
}

static void read_end(rd_conn *conn) {
    conn->read_eof = true;
    if (conn->state == RD_CONN_LINGERING) {
        rd_conn_close(conn);
        return;
    }
    if (conn->state == RD_CONN_OPEN) conn->protocol->on_eof(conn);
    rd_conn_update_interest(conn);
}

static void read_some(rd_conn *conn) {
    rd_loop *loop = conn->set->loop;
    ssize_t got = conn->transport->read(conn, loop->receive, sizeof(loop->receive));
    if (got > 0) {
        if (!conn->uncounted) conn->set->bytes_in += (uint64_t)got;
        if (conn->state == RD_CONN_OPEN) {
            conn->protocol->on_data(conn, loop->receive, (size_t)got);
        } else if (conn->state == RD_CONN_LINGERING) {
            linger_data(conn, (size_t)got);
        } /* FINISHING: nobody waits for it any more */
    } else if (got == 0) {
        read_end(conn);
    } else if (errno != EAGAIN && errno != EWOULDBLOCK) {
        rd_conn_close(conn);
    }
}

void rd_conn_read_now(rd_conn *conn) {
    rd_conn_ref(conn);
    read_some(conn);
    if (!conn->settled) rd_conn_ensure_registered(conn); /* else by the flush of its answer */
    rd_conn_unref(conn);
}

void rd_conn_take_data(rd_conn *conn, const char *bytes, size_t len) {
    rd_conn_ref(conn);
    conn->protocol->on_data(conn, bytes, len);
    rd_conn_ensure_registered(conn);
    rd_conn_unref(conn);
}

void rd_conn_leave_loop(rd_conn *conn) {
    rd_loop_remove(conn->set->loop, &conn->source);
}

void rd_conn_rejoin_loop(rd_conn *conn) {
    rd_conn_ensure_registered(conn);
}

static void on_ready(rd_source *source, unsigned ready) {
    rd_conn *conn = RD_CONTAINER(source, rd_conn, source);
    rd_conn_ref(conn);
    bool reading = !conn->read_eof && !conn->read_paused;
    if ((ready & RD_READABLE) && reading) {
        read_some(conn);
    } else if (ready & RD_HANGUP) {
        rd_conn_close(conn); /* both directions are dead and nothing is left to read */
    }
    if ((ready & RD_WRITABLE) && conn->state != RD_CONN_CLOSED && conn->out.bytes > 0) {
        rd_conn_send_or_wait(conn);
    }
    rd_conn_unref(conn);
}

/* ---- the end ---- */

void rd_conn_finish(rd_conn *conn, bool linger) {
    if (conn->state != RD_CONN_OPEN) return;
    rd_conn_set_state(conn, RD_CONN_FINISHING);
    conn->linger = linger;
    conn->deadline = UINT64_MAX;
    rd_conn_drop_input(conn);
    conn->read_paused = true;
    rd_conn_mark_dirty(conn);
}

static void leave(rd_conn *conn) {
    rd_conn_set *set = conn->set;
    rd_conn_set_state(conn, RD_CONN_CLOSED);
    rd_loop_remove(set->loop, &conn->source);
    if (rd_timer_is_armed(&conn->timer)) rd_timer_cancel(&conn->timer);
    if (rd_list_is_linked(&conn->in_dirty)) rd_list_unlink(&conn->in_dirty);
    rd_list_unlink(&conn->in_set);
    rd_slots_give(&set->slots, conn->slot);
    if (!conn->uncounted) set->count--;
    if (conn->source.fd >= 0) rd_ledger_give(&set->ledger, RD_LEDGER_DESCRIPTORS, 1);
}

static void forget(rd_conn *conn) {
    rd_outq_clear(&conn->out, &conn->set->chunks);
    rd_stalled_leave(conn);
    rd_conn_drop_input(conn);
    conn->protocol->on_close(conn);
    rd_conn *carrier = rd_conn_carrier(conn);
    rd_conn_unref(conn);
    if (carrier != NULL) rd_conn_unref(carrier);
}

RD_APART void rd_conn_close(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED) return;
    leave(conn);
    conn->transport->close(conn);
    forget(conn);
}

void rd_conn_reset(rd_conn *conn) {
    if (conn->state == RD_CONN_CLOSED) return;
    conn->transport->reset(conn);
    rd_conn_close(conn);
}

static void abandon(rd_list *conns) {
    for (rd_list *node = conns->next; node != conns; node = node->next) {
        rd_conn *conn = RD_CONTAINER(node, rd_conn, in_set);
        if (conn->source.fd >= 0) close(conn->source.fd);
        conn->source.fd = -1;
        conn->source.registered = 0;
        conn->state = RD_CONN_CLOSED; /* from any state, and nobody is told */
    }
}

/* The poller is the parent's as well: taking something out of it here would take it out there. */
void rd_conn_set_abandon(rd_conn_set *set) {
    abandon(&set->conns);
    abandon(&set->carried);
}

int rd_conn_detach(rd_conn *conn) {
    assert(conn->state == RD_CONN_OPEN);
    int fd = conn->source.fd;
    leave(conn);
    forget(conn);
    return fd;
}
