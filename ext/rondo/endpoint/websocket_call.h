/* SPDX-License-Identifier: MIT
 *
 * The opening handshake of a WebSocket that this process asks for (RFC 6455, section 4.1): the
 * request, and whether the answer is the one that was asked for. Knows no connection. One owner, no
 * lock.
 */
#ifndef RD_ENDPOINT_WEBSOCKET_CALL_H
#define RD_ENDPOINT_WEBSOCKET_CALL_H

#include "base/buffer.h"
#include "base/slice.h"
#include "endpoint/websocket_extension.h"

enum {
    RD_WS_KEY_BYTES = 16,
    RD_WS_KEY_LEN = 24,           /* of these in base64 */
    RD_WS_ANSWER_MAX = 16384,     /* bytes of the head */
    RD_WS_ANSWER_FIELDS_MAX = 128 /* field lines */
};

/* What is asked for. The caller has checked that nothing in it ends a line. */
typedef struct rd_ws_call {
    rd_slice target;    /* "/chat?room=1" */
    rd_slice host;      /* of the field Host */
    rd_slice fields;    /* further ones: "name: value", CR, LF each */
    rd_slice protocols; /* up to 255 names with commas between them, or empty */
    bool deflates;      /* offers permessage-deflate */
    char key[RD_WS_KEY_LEN];
} rd_ws_call;

/* Sets the key. */
void rd_ws_call_set_key(rd_ws_call *call, const uint8_t bytes[RD_WS_KEY_BYTES]);

void rd_ws_call_write(const rd_ws_call *call, rd_buffer *out);

typedef struct rd_ws_answer {
    int status;          /* 0: there is none yet */
    uint8_t window_bits; /* of what this side sends; 0: no permessage-deflate */
    uint8_t subprotocol; /* the place of the one that was chosen, from 1 on; 0: none was */
} rd_ws_answer;

/* Reads the head of an answer from its first byte. Returns > 0: it is the one that was asked for,
 * and took this many bytes; 0: more is needed; < 0: RD_ERR_*. With RD_ERR_WS_ANSWER_STATUS it has
 * another status. */
int rd_ws_answer_read(const rd_ws_call *call, const char *bytes, size_t len, rd_ws_answer *answer);

#endif
