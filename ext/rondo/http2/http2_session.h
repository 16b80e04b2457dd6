/* SPDX-License-Identifier: MIT
 *
 * A connection of HTTP/2 (RFC 9113): libnghttp2 has its frames and HPACK, in memory only, and this
 * file has what leaves. http2_stream.c has the streams, http2.c what comes, http2_callbacks.c what
 * the library makes of it. Under the loop lock.
 *
 *   socket ──on_data──▶ library ──callbacks──▶ streams ──▶ requests
 *   socket ◀──queue of the carrier (AHEAD at most)◀── library ◀──when it has room── streams
 *
 * The library must not be entered while one of its functions runs. Whoever is inside sends at the
 * end, and a session that ends meanwhile is freed at the end.
 */
#ifndef RD_HTTP2_HTTP2_SESSION_H
#define RD_HTTP2_HTTP2_SESSION_H

#include <nghttp2/nghttp2.h>

#include "http2/http2_flight.h"
#include "http2/http2_frames.h"
#include "http2/http2_head.h"
#include "http2/http2_spare.h"
#include "request/handler.h"
#include "request/line.h"
#include "transport/deferred.h"

/* What the library makes of the input. */
typedef struct rd_http2_input {
    size_t decoded;       /* bytes of the fields of the head or the trailers that come */
    size_t decoded_now;   /* of these, since the library was entered */
    size_t block;         /* bytes of the frames in which they come */
    size_t paid;          /* points, for what has decoded to much more than that */
    size_t checked;       /* bytes whose frames were checked, and that it has not read */
    rd_http2_fault fault; /* what was found behind them */
    bool is_paused;       /* it has stopped before the last of them */
} rd_http2_input;

/* What its client takes of its answers, and does not. */
typedef struct rd_http2_taking {
    uint64_t taken;       /* bytes of answers that the library has given to the carrier */
    size_t heads_counted; /* of `heads`, in the ledger */
    uint32_t heads;       /* bytes of heads that wait inside the library */
    uint32_t untaken;     /* bytes of complete answers that the client has not taken whole */
    bool is_held;         /* no more requests are taken until there are fewer of both */
} rd_http2_taking;

typedef struct rd_http2 {
    nghttp2_session *session;
    rd_conn *carrier;
    rd_lines *lines;
    rd_http2_spare *spare;
    rd_list streams; /* rd_http2_stream, see http2_stream.h */
    rd_http2_head head;
    rd_deferred later;   /* input that was not read yet, in the carrier's `input`; or an end */
    size_t head_counted; /* of its memory, in the ledger */
    rd_http2_input input;
    int32_t head_id; /* the stream whose head came last */
    rd_http2_frames frames;
    rd_http2_account account;
    rd_http2_flight flight; /* bytes that the library has given to the carrier */
    uint32_t stream_count;  /* of `streams` */
    uint32_t window_room;   /* bytes that large windows of streams may still have */
    rd_http2_taking taking;
    uint32_t served;
    uint32_t unread;    /* bytes on their way when the client was last asked for a sign of life */
    uint64_t heard_ms;  /* when something came from it */
    uint8_t unanswered; /* PINGs since then */
    uint8_t section;    /* the header section that came last, see http1_state.h */
    bool is_busy;       /* the library runs */
    bool is_over;       /* the connection is closed */
    bool has_failed;    /* a GOAWAY with an error is queued */
    bool is_warned;     /* a GOAWAY that asks for no more streams is queued */
    bool is_ended;      /* nothing more comes or leaves: its streams are being closed */
    bool is_ending;     /* no stream comes any more: the connection ends with the last one */
} rd_http2;

/* State of a stream, behind the layer of its connection. */
typedef struct rd_http2_stream {
    rd_list in_session;
    rd_conn *conn;
    rd_http2 *http2;
    const rd_protocol *answering; /* its connection's, until that is upgraded */
    int32_t id;
    rd_buffer came;            /* while the connection does not read */
    uint32_t window;           /* bytes of `window_room` that it has */
    size_t owed;               /* bytes that came and are not given back to the window */
    const struct iovec *offer; /* what its connection sends now, or NULL */
    int offer_count;
    size_t offer_at;    /* in the first of them */
    size_t offer_taken; /* by the library */
    char *sink;         /* where its connection is to put what it sends, or NULL */
    size_t sink_room;
    uint32_t round;       /* the PINGs that were answered, see http2_flight.h */
    uint32_t in_round;    /* bytes that it gave since then */
    uint32_t untaken;     /* bytes of the connection's that are its */
    bool is_upgrade : 1;  /* an extended CONNECT */
    bool input_ended : 1; /* the client sends no more */
    bool is_whole : 1;    /* it has said so, and is not just gone */
    bool end_told : 1;    /* its connection knows that */
    bool head_waits : 1;  /* the library has a head that was not sent */
    bool has_body : 1;    /* the library asks for the bytes of the answer */
    bool is_deferred : 1; /* it has asked in vain */
    bool is_held : 1;     /* too much is on its way to the client */
    bool is_started : 1;  /* the library has the head of the answer */
    bool is_finished : 1; /* the answer is complete */
    bool is_cut : 1;      /* the rest of the answer will not come */
    bool is_gone : 1;     /* the library has closed the stream */
} rd_http2_stream;

static inline rd_http2_stream *rd_http2_stream_of(rd_conn *conn) {
    return rd_conn_transport_state(conn);
}

/* State of the connection: it must fit where the state of HTTP/1.1 was. */
static inline rd_http2 **rd_http2_place(rd_conn *carrier) {
    return rd_conn_state_of(carrier);
}

static inline rd_http2 *rd_http2_of(rd_conn *carrier) {
    return *rd_http2_place(carrier);
}

/* Queues what the library has to send, as long as little waits for the socket. Ends the connection
 * when the library has no more use for it. */
void rd_http2_send(rd_http2 *http2);

/* Whether the queue of the carrier takes more now. If not, its on_drained comes. */
bool rd_http2_has_room(rd_http2 *http2);

/* Around each call of the library that may call back. `leave` sends, and frees a session whose
 * connection has been closed meanwhile: then it returns false. */
void rd_http2_enter(rd_http2 *http2);
bool rd_http2_leave(rd_http2 *http2);

/* Takes the answer to a PING by which the connection learns what has arrived. False: it is none. */
bool rd_http2_take_arrival(rd_http2 *http2, const uint8_t *payload);

/* Closes its streams, at most this many: their client is gone, or has broken the rules. */
void rd_http2_close_streams(rd_http2 *http2, uint32_t most);

/* Streams that are closed, or whose input ends, in one part of a turn. */
enum { RD_HTTP2_AT_ONCE = 8 };

/* `go_on` comes in this turn or a later one, instead of what the connection has put off before. */
void rd_http2_put_off(rd_http2 *http2, void (*go_on)(rd_deferred *deferred));

/* Frees the session, now or when the library has returned. */
void rd_http2_free(rd_http2 *http2);

/* The connection ends with this error (NGHTTP2_*), whatever its streams do. A GOAWAY leaves first.
 */
void rd_http2_fail(rd_http2 *http2, uint32_t error);

/* The library has queued a GOAWAY with an error by itself. */
void rd_http2_note_failure(rd_http2 *http2);

#endif
