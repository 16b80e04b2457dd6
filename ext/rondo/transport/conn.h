/* SPDX-License-Identifier: MIT
 *
 * A connection: descriptor, transport, protocol, input that was read ahead, output that is to be
 * sent, one deadline for the protocol and one for write progress. Only conn.c closes connections.
 * Everything under the loop lock.
 *
 *   OPEN ──▶ FINISHING ──▶ LINGERING ──▶ CLOSED
 *     │  (send what is   (half closed,     ▲
 *     │   queued, then)   drop input)      │
 *     └────────────────────────────────────┘
 *
 * Closing takes the connection out of everything at once. Its memory is freed only when the turn is
 * over and there is no reference to it, so no code sees a freed connection.
 */
#ifndef RD_TRANSPORT_CONN_H
#define RD_TRANSPORT_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/ledger.h"
#include "base/list.h"
#include "base/settings.h"
#include "base/indexes.h"
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

/* What the handshakes of all connections came to. */
typedef struct rd_shaken {
    uint64_t full, resumed, failed;
    uint64_t identities; /* the last number that was given; see identity.h */
    uint32_t open;       /* connections whose handshake is over */
} rd_shaken;

/* The connections whose transport is not plain, and the lines in which they stand; see layer.h. */
typedef struct rd_layers {
    uint32_t count;     /* those that are not CLOSED: without any, the lines are not looked at */
    rd_list handshakes; /* those whose handshake can begin */
    rd_list continuing; /* those whose handshake holds memory and can go on */
    rd_list shaking;    /* those whose handshake holds memory and waits for the peer, the one whose
                         * peer has been silent longest first */
    rd_list pending;    /* those whose transport has input */
    rd_list deferred;   /* work that protocols have put off; see deferred.h */
    uint64_t owed_ns;   /* what handshakes of earlier turns took too much */
    uint64_t served_ns; /* when handshakes last had their time */
    uint64_t deferred_ns; /* spent on such work in the turn of the loop `deferred_turn` */
    uint32_t deferred_turn;
    uint32_t records; /* that were decoded in this turn of the loop */
    uint32_t turn;    /* which one that is */
    bool begins_next; /* of the handshakes in line, one that begins is served next */
} rd_layers;

/* What all connections of a server share. */
typedef struct rd_conn_set {
    rd_loop *loop;
    const rd_settings *settings;
    rd_chunk_pool chunks;
    rd_list conns;         /* every connection that is not CLOSED and has a descriptor */
    rd_list carried;       /* every one without a descriptor; see `parting` for those of neither */
    rd_list dirty;         /* those with output queued since the last flush */
    rd_list stalled;       /* those whose peers do not read what is queued; see stalled.h */
    rd_list long_sends;    /* those with much to send, in the order of their slices */
    rd_layers layers;      /* those that are layered */
    uint64_t long_sent_ns; /* when long_sends last got a slice */
    rd_indexes indexes;
    rd_ledger ledger; /* what all connections hold together */
    uint32_t count;
    uint64_t bytes_in, bytes_out, write_timeouts;
    rd_shaken shaken;
    bool stopping;              /* nothing new begins, except on connections that can move */
    bool moving;                /* connections that can move do so, and are served until then */
    struct rd_parting *parting; /* those that end one by one; see parting.h. Or NULL */
    /* Long sends wait for rd_conn_set_send_long(), except for what rd_conn_flush() sends. If false,
     * each sends when it can. */
    bool shares_sending;
    /* The callbacks of conn_read.c for the poller and the timer wheel. */
    void (*on_ready)(rd_source *source, unsigned ready);
    void (*on_timer)(rd_timer *timer);
    void *shared; /* shared by the protocols of this set */
    /* The names of protocols that a handshake may agree upon, the best one first; an empty name
     * ends the list. Or NULL. */
    rd_slice (*offer)(size_t index);
    /* An answer is cut, RD_ERR_*: the connection is closed next, unless there is another answer. Or
     * NULL. */
    void (*on_cut)(rd_conn *conn, int code);
    /* There is no room for what its transport has read ahead, RD_ERR_INPUT_FULL, or for its
     * handshake, RD_ERR_HANDSHAKES_FULL: the connection is reset next. Or NULL. */
    void (*on_refused)(rd_conn *conn, int code);
} rd_conn_set;

/* When something has to happen next; one timer for all of it, also for the deadline of a stall. In
 * ms, UINT64_MAX: never. */
typedef struct rd_conn_deadlines {
    rd_timer timer;
    uint64_t protocol; /* of rd_conn_set_deadline() */
} rd_conn_deadlines;

/* What a connection has while its peer has something to take: the rest of what is queued or, while
 * it is LINGERING, what was sent last. Most connections never have one. */
typedef struct rd_stall {
    rd_list in_set; /* in `stalled` of the set, if much is queued; see stalled.h */
    rd_conn *conn;
    uint64_t since_ms;         /* when its peer last read something */
    size_t counted;            /* bytes of the output queue in the ledger */
    uint32_t unread;           /* bytes sent and unread when the socket last took some */
    uint32_t full_unread;      /* the same at the last check of a full socket, which moves the
                                * deadline; 0: none is due. See progress.h */
    uint64_t deadline_ms;      /* for the peer to take something; UINT64_MAX: none */
    uint64_t lingers_since_ms; /* while it is LINGERING */
    uint32_t linger_left;      /* bytes that it still reads meanwhile */
} rd_stall;

/* What its listener has decided, or its carrier. */
typedef struct rd_conn_origin {
    uint16_t site; /* whose application answers; see request/request.h */
    bool secure;   /* its requests are https: by its transport, or its carrier */
} rd_conn_origin;

#define RD_CONN_ROOM_UNIT 8

/* What a request touches stands first, together; what few connections need stands last, or is
 * allocated when it is needed. A server has many connections that wait, so this has no gaps. */
struct rd_conn {
    rd_source source; /* its descriptor is -1 when another connection carries this one */
    rd_list in_dirty; /* in `dirty` or `long_sends` */
    rd_conn_set *set;
    const rd_transport *transport;
    const rd_protocol *protocol;
    union {
        rd_conn_deadlines deadlines;
        rd_disposal disposal; /* once nothing refers to it, which is after its end */
    };
    uint32_t refs;
    uint8_t room; /* for the state of its protocols, in units */
    uint8_t state;
    /* The first eight are in one byte: every flush tests several of them. */
    bool read_eof : 1;
    bool read_paused : 1;
    bool above_high : 1;     /* the queue passed the high watermark and has not drained yet */
    bool notify_drained : 1; /* tell the protocol once when everything queued is sent */
    bool warming : 1;        /* the next part of its queue is being read from a disk */
    bool layered : 1;        /* its transport is not plain, so it has an rd_layer */
    bool uncounted : 1;      /* does not count for limits, balance and traffic */
    bool patient : 1;        /* has no write deadline until its input ends */
    bool awaits_answer : 1;  /* set by the protocol: needs no readiness before its answer */
    bool guest : 1;          /* came from another worker in the middle of its requests */
    bool warmed : 1;         /* the next part of its queue was just read from a disk */
    bool wants_linger : 1;   /* half-closes, and reads for a while, before it closes */
    rd_conn_origin origin;
    uint32_t index;         /* a small number, unique among the server's open connections */
    uint32_t input_counted; /* of `input`, in the ledger */
    rd_address peer;
    rd_buffer input; /* an incomplete message, or requests that were read ahead */
    rd_outq out;     /* empty after the end: who has flushed may still look */
    rd_stall *stall; /* or NULL */
    rd_list in_set;  /* in `conns` or `carried` */
};

/* What a connection has in addition if its transport is not plain. */
typedef struct rd_layer {
    rd_list in_line; /* in a line of the set: handshakes, continuing, shaking, pending */
    rd_conn *conn;
    rd_conn *carrier;         /* a reference; NULL: it has its own descriptor */
    struct rd_lines *lines;   /* those of the carrier, set by its protocol; see request/line.h */
    const rd_transport *held; /* its transport, until it begins; or NULL */
    size_t ahead_counted;     /* bytes that it has read ahead, in the ledger */
    uint64_t identity;        /* of its transport, see identity.h; 0: none */
    bool is_shaking;          /* the handshake is not over */
    bool is_admitted;         /* the handshake holds memory, and is counted */
    bool awaits_peer;         /* it stands in `shaking` */
    bool is_quiet;            /* it stands in line, and the poller need not tell of it again */
    bool has_heard;           /* set by the transport: bytes of the handshake have come */
    bool has_finished;        /* the transport's last message is queued */
} rd_layer;

void rd_conn_set_init(rd_conn_set *set, rd_loop *loop, const rd_settings *settings);
void rd_conn_set_clear(rd_conn_set *set);

/* Takes over `fd` (non-blocking). rd_conn_read_now() or a flush registers it with the poller. Never
 * NULL. The loop has the only reference, and gives it back when the connection closes. */
rd_conn *rd_conn_open(rd_conn_set *set, int fd, const rd_transport *transport,
                      const rd_protocol *protocol, const rd_address *peer);

/* A connection without a descriptor: `carrier`, of the same set, carries it among others. The
 * transport is a layer, made by the carrier's protocol:
 *   write     puts bytes into the carrier's queue, as many as it has room for; EAGAIN: none.
 *             When there is room again, the carrier's protocol calls rd_conn_mark_dirty();
 *   read      returns what has come for the connection. When there is something, or the end, the
 *             carrier's protocol calls rd_conn_read_now(), but not while `read_paused`;
 *   close     the connection is closed: removes it from the carrier's list.
 * It has the carrier's peer, and its own index, deadlines and watermarks. It counts neither as a
 * connection nor as a descriptor, never lingers, and is not in `conns`: what happens to all
 * connections (for example a stop) happens to the carrier, and the carrier's protocol passes it on.
 * The on_close of that protocol closes all connections that the carrier carries, or begins to. */
rd_conn *rd_conn_open_carried(rd_conn *carrier, const rd_transport *transport,
                              const rd_protocol *protocol);

/* A socket whose other end is in this process, for a part of `outer`. It counts as a descriptor but
 * not as a connection, and has no write deadline until its input ends. Otherwise it is like a
 * connection of rd_conn_open() with a plain transport. */
rd_conn *rd_conn_open_inner(rd_conn *outer, int fd, const rd_protocol *protocol);

/* The end of a socket pair whose other end is in another worker: for one request of a connection of
 * that worker, which cannot move itself. It counts as a descriptor but not as a connection, and is
 * never read from the socket, because the request comes with it. So it serves no second request and
 * never moves, and it closes when the other worker does. It has no write deadline: the client's own
 * connection has one. `secure`: that connection is. */
rd_conn *rd_conn_open_forwarded(rd_conn_set *set, int fd, bool secure, const rd_protocol *protocol,
                                const rd_address *peer);

/* Whether it is one of those. */
static inline bool rd_conn_is_forwarded(const rd_conn *conn) {
    return conn->uncounted && !conn->patient && !conn->layered;
}

/* A connection is followed in memory by the protocol's state, the layer and the state of the
 * layer's transport. The last two exist only if the connection is `layered`. */
static inline void *rd_conn_state_of(rd_conn *conn) {
    return conn + 1;
}

static inline rd_layer *rd_conn_layer(rd_conn *conn) {
    return (rd_layer *)(void *)((char *)(conn + 1) + (size_t)conn->room * RD_CONN_ROOM_UNIT);
}

static inline void *rd_conn_transport_state(rd_conn *conn) {
    return rd_conn_layer(conn) + 1;
}

/* The lines of the carrier, or NULL. */
static inline struct rd_lines *rd_conn_lines(rd_conn *conn) {
    return conn->layered ? rd_conn_layer(conn)->lines : NULL;
}

/* The connection that carries this one, or NULL. */
static inline rd_conn *rd_conn_carrier(rd_conn *conn) {
    return conn->layered ? rd_conn_layer(conn)->carrier : NULL;
}

/* Bytes that a layer has taken and not sent. */
static inline size_t rd_conn_unsent(rd_conn *conn) {
    return conn->layered && conn->transport->unsent != NULL ? conn->transport->unsent(conn) : 0;
}

/* Whether the connection wants to read now. */
static inline bool rd_conn_reads(const rd_conn *conn) {
    return !conn->read_eof && !conn->read_paused;
}

static inline bool rd_conn_is_open(const rd_conn *conn) {
    return conn->state == RD_CONN_OPEN;
}

/* Its transport, even if that has not begun because other bytes come first. */
static inline const rd_transport *rd_conn_own_transport(rd_conn *conn) {
    const bool is_held = conn->layered && rd_conn_layer(conn)->held != NULL;
    return is_held ? rd_conn_layer(conn)->held : conn->transport;
}

/* Whether the request being answered is the last one of the connection, in any process. */
static inline bool rd_conn_ends(const rd_conn *conn) {
    return conn->set->stopping && !(conn->set->moving && conn->transport->can_move);
}

/* Whether the connection has nothing to send and has waited for its peer since since_ms or longer;
 * see rd_protocol. */
static inline bool rd_conn_is_spare(rd_conn *conn, bool kept, uint64_t since_ms) {
    return conn->protocol->is_spare(conn, kept, since_ms);
}

/* The server stops: nothing new begins on the connection. */
static inline void rd_conn_shut_down(rd_conn *conn) {
    if (rd_conn_is_open(conn)) conn->protocol->on_shutdown(conn);
}

/* The readiness that the connection waits for: RD_READABLE, RD_WRITABLE, both or none. */
static inline unsigned rd_conn_wanted_interest(rd_conn *conn) {
    unsigned interest = rd_conn_reads(conn) ? RD_READABLE : 0;
    if (conn->out.bytes > 0 && !conn->warming) interest |= RD_WRITABLE;
    if (!conn->layered) return interest;
    if (rd_conn_layer(conn)->is_quiet && rd_conn_is_open(conn)) interest &= RD_WRITABLE;
    return rd_conn_unsent(conn) > 0 ? interest | RD_WRITABLE : interest;
}

/* Tells the poller of it, unless the connection is closed. */
void rd_conn_change_interest(rd_conn *conn, unsigned interest);

/* Call it after something has changed that the connection may wait for. Mostly nothing changes for
 * the poller. */
static inline void rd_conn_update_interest(rd_conn *conn) {
    const unsigned interest = rd_conn_wanted_interest(conn);
    if (conn->source.interest != interest) rd_conn_change_interest(conn, interest);
}

/* Tries to read at once, without the poller: most new connections already have a request. */
void rd_conn_read_now(rd_conn *conn);

/* Processes bytes that were already read from the connection, as if they came now. */
void rd_conn_take_data(rd_conn *conn, const char *bytes, size_t len);

/* Around giving the descriptor to another process: removes it from the poller, or adds it again. */
void rd_conn_leave_loop(rd_conn *conn);
void rd_conn_rejoin_loop(rd_conn *conn);

/* Call it after `input` has changed. False: all connections together have no room for it. */
static inline bool rd_conn_count_input(rd_conn *conn) {
    size_t counted = conn->input_counted;
    const bool has_room =
        rd_ledger_keep(&conn->set->ledger, RD_LEDGER_INPUT, &counted, conn->input.capacity);
    conn->input_counted = (uint32_t)counted; /* at most the capacity */
    return has_room;
}

/* When the peer must have taken something, ms; UINT64_MAX: it has nothing to take. */
static inline uint64_t rd_conn_write_deadline(const rd_conn *conn) {
    return conn->stall != NULL ? conn->stall->deadline_ms : UINT64_MAX;
}

/* Frees what was read and not used. */
void rd_conn_drop_input(rd_conn *conn);

void rd_conn_ref(rd_conn *conn);
void rd_conn_unref(rd_conn *conn);

/* Switches to another protocol. Its state is zeroed and must fit into that of the first protocol.
 * The on_close of the previous protocol is not called. */
void rd_conn_switch(rd_conn *conn, const rd_protocol *protocol);

void rd_conn_set_deadline(rd_conn *conn, uint64_t at_ms);

void rd_conn_pause_reading(rd_conn *conn);
void rd_conn_resume_reading(rd_conn *conn);

/* Something was queued: the next flush sends it. */
void rd_conn_mark_dirty(rd_conn *conn);

/* Sends what the socket takes now, at most one slice of 256 KiB, so that others do not wait for a
 * download. Parts of a file that are not in memory are first read by a job (warming.h). It does not
 * wait for a turn: a connection in the line of long sends leaves the line, and comes back to its
 * end when the socket takes more. */
void rd_conn_flush(rd_conn *conn);

/* The same, and then what its carrier has: without that a carried connection sends no more than its
 * carrier has room for. */
void rd_conn_flush_through(rd_conn *conn);

/* Flushes every dirty connection of the set, one write each. If long sends take turns, those with
 * much to send only join the line. */
void rd_conn_set_flush(rd_conn_set *set);

/* Gives slices to the long sends, one after the other, for a quarter of a millisecond. If more time
 * has passed since the last slice (in the application, or asleep), then for as long as that, but at
 * most a millisecond. So a request that comes meanwhile waits no longer than that, however many
 * clients download. */
void rd_conn_set_send_long(rd_conn_set *set);

static inline bool rd_conn_set_has_long(const rd_conn_set *set) {
    return !rd_list_is_empty(&set->long_sends);
}

/* Whether transports or protocols have work that no readiness will announce. */
static inline bool rd_conn_set_has_layers(const rd_conn_set *set) {
    const rd_layers *layers = &set->layers;
    return layers->count > 0 &&
           (!rd_list_is_empty(&layers->handshakes) || !rd_list_is_empty(&layers->continuing) ||
            !rd_list_is_empty(&layers->pending) || !rd_list_is_empty(&layers->deferred));
}

/* Continues handshakes for a quarter of a millisecond, or for up to a millisecond if the loop was
 * busy that long with all else (not `was_idle`), so that a flood of them leaves time for other
 * connections: by turns one that goes on and one that begins, so that neither kind holds up the
 * other. A step of a handshake may be longer, because it is one piece: what it takes too much is
 * missing in the next turns. Then reads from connections whose transport has input, once from each,
 * for another quarter of a millisecond, and does what protocols have put off. */
void rd_conn_set_serve_layers(rd_conn_set *set, bool was_idle);

/* Closes when everything queued is sent. With `linger`, half-closes and still reads for a while, so
 * that unread input does not cause a reset that destroys the answer on its way. This lasts
 * linger_timeout_ms, and again as long as the peer reads some of the answer, but at most
 * write_timeout_ms in total. */
void rd_conn_finish(rd_conn *conn, bool linger);

/* Call it when nothing is queued: sends the transport's last message and half-closes. The
 * connection stays open for reading. False: the socket did not take all of it; call it again with
 * the next on_drained. */
bool rd_conn_end_output(rd_conn *conn);

/* Closes now and drops what is queued. Safe in any state. */
void rd_conn_close(rd_conn *conn);

/* Closes now in a way that the peer cannot mistake for the end of an answer (TCP: a reset). */
void rd_conn_reset(rd_conn *conn);

/* Calls `visit` for every connection. Any of them may close meanwhile. */
void rd_conn_set_each(rd_conn_set *set, void (*visit)(rd_conn *conn));

/* In a forked child: closes the descriptors, which are copies of the parent's, and nothing else.
 * From then on all connections of the set have the state CLOSED. */
void rd_conn_set_abandon(rd_conn_set *set);

/* Gives the descriptor away without closing it. The connection ends as if closed. Its transport
 * must be plain; for other transports there is the pump. */
int rd_conn_detach(rd_conn *conn);

#endif
