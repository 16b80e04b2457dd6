/* SPDX-License-Identifier: MIT
 *
 * Heads of answers as fields for the library; see http2_answer.h.
 */
#include "http2/http2_answer.h"

#include "base/alloc.h"
#include "base/decimal.h"
#include "http/status.h"
#include "http2/http2_session.h"
#include "http2/http2_stream.h"
#include "http2/http2_taking.h"

#define FIELDS_OWN    4 /* that the server adds: status, length, date, retry-after */
#define FIELDS_INLINE 64
#define NAMES_INLINE  1024

/* The fields of a head as the library takes them. It copies them. */
typedef struct rd_http2_fields {
    nghttp2_nv *rows;
    size_t count;
    size_t len;  /* of all names and values */
    char *names; /* room for names in lower case */
    size_t names_len;
    char status[RD_DECIMAL_MAX], length[RD_DECIMAL_MAX];
    nghttp2_nv rows_inline[FIELDS_INLINE];
    char names_inline[NAMES_INLINE];
} rd_http2_fields;

/* Fields that belong to a connection of HTTP/1.1 (RFC 9113, section 8.2.2), and those of a
 * WebSocket that do not belong to a stream (RFC 8441, section 5). */
static bool is_dropped(rd_slice name, bool is_upgrade) {
    static const rd_slice dropped[] = {
        RD_SLICE_INIT("connection"),        RD_SLICE_INIT("keep-alive"),
        RD_SLICE_INIT("proxy-connection"),  RD_SLICE_INIT("upgrade"),
        RD_SLICE_INIT("transfer-encoding"),
    };
    for (size_t i = 0; i < sizeof(dropped) / sizeof(dropped[0]); i++) {
        if (rd_slice_equal(name, dropped[i])) return true;
    }
    return is_upgrade && rd_slice_equal(name, RD_SLICE("sec-websocket-accept"));
}

/* A value that an attacker may be guessing must not be compared by compression (RFC 7541, section
 * 7.1.3), and a cookie is rarely sent twice. */
static uint8_t flags_of(rd_slice name) {
    return rd_slice_equal(name, RD_SLICE("set-cookie")) ? NGHTTP2_NV_FLAG_NO_INDEX
                                                        : NGHTTP2_NV_FLAG_NONE;
}

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

/* Blanks around a value are no part of it in HTTP/1.1, and an error in HTTP/2 (RFC 9113, section
 * 8.2.1). */
static rd_slice trimmed(rd_slice value) {
    while (value.len > 0 && is_blank(value.ptr[0])) value.ptr++, value.len--;
    while (value.len > 0 && is_blank(value.ptr[value.len - 1])) value.len--;
    return value;
}

static void put(rd_http2_fields *fields, rd_slice name, rd_slice value) {
    fields->rows[fields->count++] = (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.ptr,
        .value = (uint8_t *)(uintptr_t)value.ptr,
        .namelen = name.len,
        .valuelen = value.len,
        .flags = flags_of(name),
    };
    fields->len += name.len + value.len;
}

static rd_slice in_lower_case(rd_http2_fields *fields, rd_slice name) {
    char *to = fields->names + fields->names_len;
    for (size_t i = 0; i < name.len; i++) {
        const char byte = name.ptr[i];
        to[i] = (char)(byte >= 'A' && byte <= 'Z' ? byte + ('a' - 'A') : byte);
    }
    fields->names_len += name.len;
    return rd_slice_of(to, name.len);
}

static void init_fields(rd_http2_fields *fields, const rd_response_head *head) {
    size_t names = 0;
    for (size_t i = 0; i < head->count; i++) names += head->fields[i].name.len;
    const bool fits = head->count + FIELDS_OWN <= FIELDS_INLINE;
    fields->rows =
        fits ? fields->rows_inline : rd_alloc((head->count + FIELDS_OWN) * sizeof(nghttp2_nv));
    fields->names = names <= NAMES_INLINE ? fields->names_inline : rd_alloc(names);
    fields->count = fields->len = fields->names_len = 0;
}

static void clear_fields(rd_http2_fields *fields) {
    if (fields->rows != fields->rows_inline) rd_free(fields->rows);
    if (fields->names != fields->names_inline) rd_free(fields->names);
}

static void put_status(rd_http2_fields *fields, int status) {
    put(fields, RD_SLICE(":status"), rd_decimal((uint64_t)status, fields->status));
}

static void put_length(rd_http2_fields *fields, int64_t length) {
    put(fields, RD_SLICE("content-length"), rd_decimal((uint64_t)length, fields->length));
}

/* The line without its name and its end. */
static void put_date(rd_http2_fields *fields, rd_conn *conn) {
    const char *line = rd_date_line(&rd_http_shared_of(conn)->date);
    put(fields, RD_SLICE("date"), rd_slice_of(line + 6, RD_DATE_LINE_BYTES - 8));
}

static void put_head(rd_http2_fields *fields, rd_conn *conn, const rd_response_head *head,
                     int status) {
    const bool is_upgrade = rd_http2_stream_of(conn)->is_upgrade;
    put_status(fields, status);
    for (size_t i = 0; i < head->count; i++) {
        const rd_slice name = in_lower_case(fields, head->fields[i].name);
        if (!is_dropped(name, is_upgrade)) put(fields, name, trimmed(head->fields[i].value));
    }
    if (status < 200) return;
    if (head->length >= 0 && !head->raw && rd_status_has_body(status)) {
        put_length(fields, head->length);
    }
    if (!head->has_date) put_date(fields, conn);
}

/* The library copies the fields. Without a body the head ends the stream. */
static int submit(rd_conn *conn, const rd_http2_fields *fields, int status, bool has_body) {
    rd_http2_stream *stream = rd_http2_stream_of(conn);
    nghttp2_session *session = stream->http2->session;
    if (status < 200) {
        return nghttp2_submit_headers(session, NGHTTP2_FLAG_NONE, stream->id, NULL, fields->rows,
                                      fields->count, NULL);
    }
    const nghttp2_data_provider provider = {.read_callback = rd_http2_give};
    stream->is_started = true;
    stream->has_body = has_body;
    return nghttp2_submit_response(session, stream->id, fields->rows, fields->count,
                                   has_body ? &provider : NULL);
}

/* A status of 101 is for HTTP/1.1: on a stream the protocol has changed with 200 (RFC 8441, section
 * 5). The library refuses nothing that the caller has checked. */
void rd_http2_send_head(rd_conn *conn, const rd_response_head *head, bool has_body) {
    rd_http2_fields fields;
    const int status = head->status == 101 ? 200 : head->status;
    init_fields(&fields, head);
    put_head(&fields, conn, head, status);
    const int code = submit(conn, &fields, status, has_body);
    clear_fields(&fields);
    if (code != 0) {
        rd_conn_reset(conn);
        return;
    }
    rd_http2_stream_of(conn)->head_waits = true;
    rd_http2_add_head(rd_http2_stream_of(conn)->http2, fields.len);
    rd_conn_mark_dirty(conn);
}
