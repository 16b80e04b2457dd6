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
    rd_list conns;         /* every connection that is not CLOSED and has a descriptor */
    rd_list carried;       /* and those that have none */
    rd_list dirty;         /* those with something queued since the last flush */
    rd_list stalled;       /* those that do not take what is queued; see stalled.h */
    rd_list long_sends;    /* those with much to send, in the order in which they get a slice */
    rd_list handshakes;    /* those whose handshake can go on, and */
    rd_list pending;       /* those whose transport has more to hand out: see layer.h */
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
    /* What conn_read.c does when the poller and the timer wheel call. */
    void (*on_ready)(rd_source *source, unsigned ready);
    void (*on_timer)(rd_timer *timer);
    void *shared; /* what the protocols of this set share */
    /* The names of protocols that a handshake may agree upon, the best one first; an empty one: no
     * more. Or NULL. */
    rd_slice (*offer)(size_t index);
    /* An answer is not what was promised of it, RD_ERR_*: the connection is closed next. Or NULL.
     */
    void (*on_cut)(rd_conn *conn, int code);
} rd_conn_set;

struct rd_conn {
    rd_source source; /* its descriptor is -1 when another connection carries this one */
    rd_list in_set;   /* in `conns` or `carried` */
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
    uint16_t room; /* bytes for the state of whatever protocol it has */
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
    bool secure : 1;     /* the scheme of its requests is https: its transport, or its carrier */
    bool layered : 1;    /* its transport is not plain: it has an rd_layer */
    bool uncounted : 1;  /* no connection of its own for limits, balance and traffic */
    bool patient : 1;    /* its peer may take what is queued whenever it likes, while it is open */
};

/* What a connection has besides, when its transport is not plain. */
typedef struct rd_layer {
    rd_list in_line; /* in `handshakes` or `pending` of the set */
    rd_conn *conn;
    rd_conn *carrier;         /* a reference, or NULL: it has a descriptor of its own */
    struct rd_lines *lines;   /* of the carrier, set by its protocol; see http/line.h */
    const rd_transport *held; /* or NULL: it has begun */
    bool is_shaking;          /* the handshake is not over */
    bool has_finished;        /* its last message is queued */
} rd_layer;

void rd_conn_set_init(rd_conn_set *set, rd_loop *loop, const rd_settings *settings);
void rd_conn_set_clear(rd_conn_set *set);

/* Takes over `fd` (non-blocking). It comes to the poller with rd_conn_read_now() or a flush. Never
 * NULL; the one reference is the loop's, and goes when the connection closes. */
rd_conn *rd_conn_open(rd_conn_set *set, int fd, const rd_transport *transport,
                      const rd_protocol *protocol, const rd_address *peer);

/* A connection without a descriptor: `carrier`, of the same set, carries it among others. The
 * transport is a layer, made by the carrier's protocol:
 *   write     puts the bytes into the carrier's queue, as many as it has room for; EAGAIN: none.
 *             When there is room again, the carrier's protocol calls rd_conn_mark_dirty();
 *   read      hands out what has come for the connection. When there is something, or the end, the
 *             carrier's protocol calls rd_conn_read_now(), but not while `read_paused`;
 *   close     the connection is closed: takes it off the carrier's list.
 * It has the carrier's peer, a slot, deadlines and watermarks of its own, but counts neither as a
 * connection nor as a descriptor, never lingers, and is not in `conns`: what happens to all
 * connections (a stop, say) happens to the carrier, and its protocol passes it on. That protocol's
 * on_close closes all that the connection carries. */
rd_conn *rd_conn_open_carried(rd_conn *carrier, const rd_transport *transport,
                              const rd_protocol *protocol);

/* A socket whose other end is in this process, for a part of `outer`: it counts as a descriptor but
 * not as a connection, has no deadline of writing while it is open, and otherwise is one of
 * rd_conn_open(), with a plain transport. */
rd_conn *rd_conn_open_inner(rd_conn *outer, int fd, const rd_protocol *protocol);

/* Behind a connection stand the protocol's state, the layer and the state of the layer's transport:
 * the latter two only when the connection is `layered`. */
static inline void *rd_conn_state_of(rd_conn *conn) {
    return conn + 1;
}

static inline rd_layer *rd_conn_layer(rd_conn *conn) {
    return (rd_layer *)(void *)((char *)(conn + 1) + conn->room);
}

static inline void *rd_conn_transport_state(rd_conn *conn) {
    return rd_conn_layer(conn) + 1;
}

/* Of the one that carries it, or NULL. */
static inline struct rd_lines *rd_conn_lines(rd_conn *conn) {
    return conn->layered ? rd_conn_layer(conn)->lines : NULL;
}

/* The one that carries it, or NULL. */
static inline rd_conn *rd_conn_carrier(rd_conn *conn) {
    return conn->layered ? rd_conn_layer(conn)->carrier : NULL;
}

/* Bytes that a layer has taken and not sent. */
static inline size_t rd_conn_unsent(rd_conn *conn) {
    return conn->layered && conn->transport->unsent != NULL ? conn->transport->unsent(conn) : 0;
}

/* Whether what comes is wanted now. */
static inline bool rd_conn_reads(const rd_conn *conn) {
    return !conn->read_eof && !conn->read_paused;
}

static inline bool rd_conn_is_open(const rd_conn *conn) {
    return conn->state == RD_CONN_OPEN;
}

/* Its transport, also when that has not begun and other bytes come first. */
static inline const rd_transport *rd_conn_own_transport(rd_conn *conn) {
    const bool is_held = conn->layered && rd_conn_layer(conn)->held != NULL;
    return is_held ? rd_conn_layer(conn)->held : conn->transport;
}

/* Whether the request being answered is the connection's last one here or anywhere. */
static inline bool rd_conn_ends(const rd_conn *conn) {
    return conn->set->stopping && !(conn->set->moving && conn->transport->can_move);
}

/* Whether the connection owes nothing and has waited for its peer at least since then; see
 * rd_protocol. */
static inline bool rd_conn_is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    return conn->protocol->is_spare(conn, kept, since_ms);
}

/* The server stops: nothing new begins on the connection. */
static inline void rd_conn_shut_down(rd_conn *conn) {
    if (rd_conn_is_open(conn)) conn->protocol->on_shutdown(conn);
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

/* Another protocol from now on: its state is zeroed and has to fit into that of the first one. The
 * on_close of the one before is not called. */
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

/* Whether transports can go on by themselves: no readiness will tell of it. */
static inline bool rd_conn_set_has_layers(const rd_conn_set *set) {
    return !rd_list_is_empty(&set->handshakes) || !rd_list_is_empty(&set->pending);
}

/* Goes on with handshakes, one after the other, for a millisecond, so that a flood of them leaves
 * the others their time; and reads once from each connection whose transport has more to hand out.
 */
void rd_conn_set_serve_layers(rd_conn_set *set);

/* Closes once everything queued is sent. With `linger`, half-closes and reads on for a while, so
 * that unread input does not turn into a reset that destroys the answer on its way: for
 * linger_timeout_ms, and again while the peer takes some of it, but write_timeout_ms in all. */
void rd_conn_finish(rd_conn *conn, bool linger);

/* To be called when nothing is queued: sends the transport's last message and half-closes. The
 * connection stays open and reads on. False when the socket did not take all of it: to be called
 * again, with the next on_drained. */
bool rd_conn_end_output(rd_conn *conn);

/* Closes now and drops what is queued. Safe in any state. */
void rd_conn_close(rd_conn *conn);

/* Closes now, with what the transport has for it (TCP: a reset), so that no peer takes it for the
 * end of an answer. */
void rd_conn_reset(rd_conn *conn);

/* Calls `visit` for every connection, any of which may close meanwhile. */
void rd_conn_set_each(rd_conn_set *set, void (*visit)(rd_conn *conn));

/* In a forked child: closes the descriptors, which are copies of the parent's, and nothing else.
 * The connections of the set are closed from then on, whoever still looks at them. */
void rd_conn_set_abandon(rd_conn_set *set);

/* Gives the descriptor away without closing it: the connection ends as if closed. Its transport is
 * plain, or can move and goes on in another process; for others there is the pump. */
int rd_conn_detach(rd_conn *conn);

#endif
