/* SPDX-License-Identifier: MIT
 *
 * Reads answers from bytes that come in any pieces: Content-Length, chunked, until the close, and
 * interim ones. Does no input itself and keeps no bytes. Belongs to load.c and to the clients of
 * bench/. Any thread.
 */
#ifndef RD_LOAD_ANSWER_H
#define RD_LOAD_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How the body of the answer being read ends. */
typedef enum rd_load_answer_framing {
    RD_BY_LENGTH,
    RD_CHUNKED,
    RD_UNTIL_CLOSE
} rd_load_answer_framing;

/* HEAD -> BODY (-> CHUNK_LINE <-> CHUNK_BODY -> TRAILER) -> HEAD; a close may end any of them. */
typedef enum rd_load_answer_stage {
    RD_HEAD,
    RD_BODY,
    RD_CHUNK_LINE,
    RD_CHUNK_BODY,
    RD_TRAILER
} rd_load_answer_stage;

typedef struct rd_load_answer_head {
    size_t bytes;
    int status;
    rd_load_answer_framing framing;
    uint64_t length;
    bool closes;
} rd_load_answer_head;

typedef struct rd_load_answer {
    rd_load_answer_stage stage;
    rd_load_answer_head head;
    uint64_t left;       /* bytes of the body or chunk that are still to come */
    uint64_t body_bytes; /* of the answer so far */
    unsigned line_bytes; /* of the chunk or trailer line being read */
    bool in_extension;   /* the digits of the chunk line are over */
} rd_load_answer;

/* Answers repeat: if the last head comes again, its bytes are not parsed again. */
typedef struct rd_known_answer {
    char bytes[1024];
    rd_load_answer_head head;
} rd_known_answer;

typedef enum rd_load_answer_progress {
    RD_MORE,      /* all bytes used, the answer goes on */
    RD_DONE,      /* an answer ended with the bytes used */
    RD_HEAD_CUT,  /* no byte used: the head is incomplete; call again with its beginning and more
                     bytes */
    RD_NO_ANSWER, /* not HTTP/1, or its end cannot be known; nothing more can be read */
} rd_load_answer_progress;

/* Takes bytes up to the end of one answer at most; *used is their number. After RD_DONE,
 * answer->head and ->body_bytes describe it until the next call. */
rd_load_answer_progress rd_load_answer_take(rd_load_answer *answer, rd_known_answer *known,
                                            const char *at, size_t len, size_t *used);

/* The number of body bytes that come next and need not be read; 0 if the next bytes must be read.
 */
size_t rd_load_answer_plain_left(const rd_load_answer *answer);

/* Takes this many of them, which were discarded. */
rd_load_answer_progress rd_load_answer_skip(rd_load_answer *answer, size_t len);

/* Whether a close at this point is a valid end of an answer. */
bool rd_load_answer_ends_with_close(const rd_load_answer *answer);

#endif
