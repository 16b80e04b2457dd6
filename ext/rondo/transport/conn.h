/* SPDX-License-Identifier: MIT
 *
 * A connection: descriptor, transport, protocol, what is read ahead, what is to be sent, one
 * deadline for the protocol and one for write progress. conn.c is the only file that closes one.
 * Everything under the loop lock.
 *
 *   OPEN ──▶ FINISHING ──▶ LINGERING ──▶ CLOSED
 *     │  (send what is   (half closed,     ▲
 *     │   queued, then)   drop input)      │
 *     └────────────────────────────────────┘
 *
 * Closing takes the connection out of everything at once, but its memory goes only when the turn
 * is over and nobody holds a reference, so nobody ever meets a freed connection.
 */
#ifndef RD_TRANSPORT_CONN_H
#define RD_TRANSPORT_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/ledger.h"
#include "base/list.h"
#include "base/settings.h"
#include "base/slots.h"
#include "loop/loop.h"
#include "transport/address.h"
#include "transport/outq.h"
#include "transport/protocol.h"
#include "transport/transport.h"

typedef enum rd_conn_state {
    RD_CONN_OPEN,
    RD_CONN_FINISHING,
    RD_CONN_LINGERING,
    RD_CONN_CLOSED,
} rd_conn_state;

/* What all connections of a server share. */
typedef struct rd_conn_set {
    rd_loop *loop;
    const rd_settings *settings;
    rd_chunk_pool chunks;
    rd_list conns;         /* every connection that is not CLOSED */
    rd_list dirty;         /* those with something queued since the last flush */
    rd_list stalled;       /* those that do not take what is queued; see stalled.h */
    rd_list long_sends;    /* those with much to send, in the order in which they get a slice */
    uint64_t long_sent_ns; /* when they last got one */
    rd_slots slots;
    rd_ledger ledger; /* what all of them hold together */
    uint32_t count;
    uint64_t bytes_in, bytes_out, write_timeouts;
    bool stopping; /* nothing new begins, but on connections that move to another process */
    bool moving;   /* those that can move do so, and are served until then */
    /* Long sends wait for rd_conn_set_send_long(), but for what rd_conn_flush() sends; else each
     * goes when it can. */
    bool takes_turns;
    void *shared; /* what the protocols of this set share */
    /* An answer is not what was promised of it, RD_ERR_*: the connection is closed next. Or NULL.
     */
    void (*on_cut)(rd_conn *conn, int code);
} rd_conn_set;

struct rd_conn {
    rd_source source;
    rd_list in_set;
    rd_list in_dirty; /* in `dirty` or `long_sends` */
    rd_list in_stalled;
    rd_timer timer;
    rd_closing closing;
    rd_conn_set *set;
    const rd_transport *transport;
    const rd_protocol *protocol;
    uint64_t deadline;       /* the protocol's, ms; UINT64_MAX: none */
    uint64_t write_deadline; /* UINT64_MAX while nothing waits for the peer */
    uint64_t stalled_since;  /* ms, when it was last seen to take something, while it is stalled */
    uint64_t lingers_since;  /* ms, while it is LINGERING */
    rd_buffer input;         /* left-over of an incomplete message or requests read ahead */
    size_t input_counted;    /* of `input`, in the ledger */
    rd_outq out;
    size_t output_counted; /* of `out`, in the ledger, while it is stalled */
    uint32_t refs;
    uint32_t slot; /* small number, unique among the open connections of the server */
    uint32_t linger_left;
    uint32_t stalled_unread; /* of what was sent, when the socket last took something */
    uint32_t full_unread;    /* the same of a full socket at the last look; 0: none is due */
    rd_address peer;
    uint8_t state;
    bool read_eof : 1;
    bool read_paused : 1;
    bool above_high : 1; /* the queue passed the high watermark and has not drained yet */
    bool tell_empty : 1; /* tell the protocol once when everything queued is sent */
    bool linger : 1;     /* half-close and read on before closing */
    bool settled : 1;    /* set by the protocol while it needs no readiness before its answer */
    bool guest : 1;      /* came from another worker in the middle of its requests */
    bool warming : 1;    /* what is next in the queue is being read from a disk */
    bool warmed : 1;     /* it has been read just now */
};

void rd_conn_set_init(rd_conn_set *set, rd_loop *loop, const rd_settings *settings);
void rd_conn_set_clear(rd_conn_set *set);

/* Takes over `fd` (non-blocking). It comes to the poller with rd_conn_read_now() or a flush. Never
 * NULL; the one reference is the loop's, and goes when the connection closes. */
rd_conn *rd_conn_open(rd_conn_set *set, int fd, const rd_transport *transport,
                      const rd_protocol *protocol, const rd_address *peer);

/* The protocol's state, behind the connection. */
static inline void *rd_conn_state_of(rd_conn *conn) {
    return conn + 1;
}

static inline bool rd_conn_is_open(const rd_conn *conn) {
    return conn->state == RD_CONN_OPEN;
}

/* Whether the request being answered is the connection's last one here or anywhere. */
static inline bool rd_conn_ends(const rd_conn *conn) {
    return conn->set->stopping && !(conn->set->moving && conn->transport->can_move);
}

/* Tries to read at once, before the poller says so: fresh connections mostly bring a request. */
void rd_conn_read_now(rd_conn *conn);

/* Bytes that somebody else has read from the connection, as if they came now. */
void rd_conn_take_data(rd_conn *conn, const char *bytes, size_t len);

/* Around giving the descriptor to another process: the poller forgets it, or takes it again. */
void rd_conn_leave_loop(rd_conn *conn);
void rd_conn_rejoin_loop(rd_conn *conn);

/* After `input` has changed. False when all connections together have no room for it. */
static inline bool rd_conn_count_input(rd_conn *conn) {
    return rd_ledger_keep(&conn->set->ledger, RD_LEDGER_INPUT, &conn->input_counted,
                          conn->input.capacity);
}

/* Gives back what was read and not used. */
void rd_conn_drop_input(rd_conn *conn);

void rd_conn_ref(rd_conn *conn);
void rd_conn_unref(rd_conn *conn);

/* Another protocol from now on: its state is zeroed and has to fit into that of the first one,
 * whose on_close is not called. */
void rd_conn_switch(rd_conn *conn, const rd_protocol *protocol);

void rd_conn_set_deadline(rd_conn *conn, uint64_t at_ms);

void rd_conn_pause_reading(rd_conn *conn);
void rd_conn_resume_reading(rd_conn *conn);

/* Something was queued: it leaves with the next flush. */
void rd_conn_mark_dirty(rd_conn *conn);

/* Sends what the socket takes now, at most one slice of 256 KiB, so that a download is nobody's
 * wait. What of a file is not in memory is read by a job first (warming.h). Asks for no turn: a
 * connection that stands in the line of long sends leaves it, and comes back to its end when the
 * socket takes more. */
void rd_conn_flush(rd_conn *conn);

/* Flushes every dirty connection of the set, one write each; where long sends take turns, those
 * with much to send only stand in their line from now on. */
void rd_conn_set_flush(rd_conn_set *set);

/* Gives slices to the long sends, one after the other, for a quarter of a millisecond, or, when
 * more time has passed since the last slice (in the application, or asleep), for as long as that
 * and a millisecond at most: a request that comes meanwhile waits no longer, however many
 * download. */
void rd_conn_set_send_long(rd_conn_set *set);

static inline bool rd_conn_set_has_long(const rd_conn_set *set) {
    return !rd_list_is_empty(&set->long_sends);
}

/* Closes once everything queued is sent. With `linger`, half-closes and reads on for a while, so
 * that unread input does not turn into a reset that destroys the answer on its way: for
 * linger_timeout_ms, and again while the peer takes some of it, but write_timeout_ms in all. */
void rd_conn_finish(rd_conn *conn, bool linger);

/* Closes now and drops what is queued. Safe in any state. */
void rd_conn_close(rd_conn *conn);

/* Closes now, over TCP with a reset, which no peer takes for the end of an answer. */
void rd_conn_reset(rd_conn *conn);

/* In a forked child: closes the descriptors, which are copies of the parent's, and nothing else.
 * The connections of the set are closed from then on, whoever still looks at them. */
void rd_conn_set_abandon(rd_conn_set *set);

/* Gives the descriptor away without closing it: the connection ends as if closed. */
int rd_conn_detach(rd_conn *conn);

#endif
