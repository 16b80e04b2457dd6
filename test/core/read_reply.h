/* SPDX-License-Identifier: MIT
 *
 * Reads a whole answer with protocol/http1_reply.h, in pieces, and writes down what it understood;
 * for the unit test and the fuzz target.
 */
#ifndef READ_REPLY_H
#define READ_REPLY_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/http1_reply.h"

/* What was understood: "103 link=a\n200 a=b date close length=5\nhello\n". */
typedef struct read_reply {
    int rc;      /* < 0: the error; 0: it goes on; 1: it is complete, or raw from here on */
    size_t used; /* bytes up to there */
    char *text;
    size_t len;
} read_reply;

static void put_bytes(read_reply *out, const char *bytes, size_t len) {
    memcpy(out->text + out->len, bytes, len);
    out->len += len;
    out->text[out->len] = '\0';
}

static void put_text(read_reply *out, const char *text) {
    put_bytes(out, text, strlen(text));
}

static void put_reply_head(read_reply *out, const rd_http1_reply *reply, const char *buf) {
    static const char *const bodies[] = {" none", " length", " chunked", " raw"};
    rd_field *fields = malloc((reply->count + 1) * sizeof(rd_field));
    const size_t count = rd_http1_reply_fields(reply, buf, fields);
    char number[32];
    snprintf(number, sizeof(number), "%d", reply->status);
    put_text(out, number);
    for (size_t i = 0; i < count; i++) {
        put_text(out, " ");
        put_bytes(out, fields[i].name.ptr, fields[i].name.len);
        put_text(out, "=");
        put_bytes(out, fields[i].value.ptr, fields[i].value.len);
    }
    free(fields);
    if (reply->has_date) put_text(out, " date");
    if (reply->closes) put_text(out, " close");
    if (!rd_http1_reply_is_interim(reply)) put_text(out, bodies[reply->body]);
    snprintf(number, sizeof(number), "=%lld", (long long)reply->length);
    if (reply->length >= 0) put_text(out, number);
    put_text(out, "\n");
}

/* One piece: a head, or all of the body that is there. Returns whether more can follow. */
static bool read_reply_step(read_reply *out, rd_http1_reply *reply, bool *in_body, const char *buf,
                            size_t len) {
    rd_slice data;
    size_t used;
    if (!*in_body) {
        const int head = rd_http1_reply_head(reply, buf, len);
        out->rc = head < 0 ? head : 0;
        if (head <= 0) return false;
        put_reply_head(out, reply, buf);
        out->used += (size_t)head;
        if (rd_http1_reply_is_interim(reply)) {
            rd_http1_reply_init(reply, reply->to_head);
            return true;
        }
        *in_body = reply->body == RD_REPLY_LENGTH || reply->body == RD_REPLY_CHUNKED;
        out->rc = !*in_body;
        return *in_body;
    }
    const int rc = rd_http1_reply_body(reply, buf, len, &used, &data);
    out->used += used;
    put_bytes(out, data.ptr, data.len);
    out->rc = rc < 0 ? rc : rc == RD_REPLY_DONE;
    return rc == RD_REPLY_DATA;
}

/* In pieces: the first one of `first` bytes, the others of `step`. Free the text. */
static read_reply read_reply_in_pieces(const char *buf, size_t len, bool to_head, size_t first,
                                       size_t step) {
    read_reply out = {.text = calloc(1, 2 * len + 4096)};
    rd_http1_reply reply;
    bool in_body = false;
    rd_http1_reply_init(&reply, to_head);
    for (size_t given = first < len ? first : len;;) {
        bool goes_on = true;
        while (goes_on) { /* a copy of its own shows every read beyond its end */
            const size_t part = given - out.used;
            char *copy = malloc(part + 1);
            memcpy(copy, buf + out.used, part);
            char *exact = realloc(copy, part == 0 ? 1 : part);
            goes_on = read_reply_step(&out, &reply, &in_body, exact, part);
            free(exact);
        }
        if (out.rc != 0 || given == len) return out;
        given = len - given < step ? len : given + step;
    }
}

#endif
