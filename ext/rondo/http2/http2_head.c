/* SPDX-License-Identifier: MIT
 *
 * Decoded fields as the text of a head; see http2_head.h.
 */
#include "http2/http2_head.h"

#include <assert.h>
#include <string.h>

#include "base/error.h"
#include "http/field.h"
#include "request/request.h"

#define FIELD_OVERHEAD 32 /* RFC 9113, section 6.5.2 */
#define SPARE_BYTES    4096

/* An extended CONNECT becomes an upgrade by GET. What the key is does not matter: there is no
 * Sec-WebSocket-Accept on a stream (RFC 8441, section 5). */
#define UPGRADE_LINES                                                                              \
    "upgrade: websocket\r\nconnection: Upgrade\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

static void take(rd_buffer *buffer, rd_buffer *spare) {
    *buffer = *spare;
    *spare = (rd_buffer){0};
}

void rd_http2_head_begin(rd_http2_head *head, rd_buffer spare[RD_HTTP2_HEAD_BUFFERS]) {
    rd_http2_head_clear(head);
    take(&head->pseudo, &spare[0]);
    take(&head->text, &spare[1]);
    take(&head->cookies, &spare[2]);
    take(&head->whole, &spare[3]);
    head->is_decoding = true;
}

static void keep(rd_buffer *buffer, rd_buffer *spare) {
    if (buffer->capacity > SPARE_BYTES || spare->capacity > 0) return;
    rd_buffer_rewind(buffer);
    take(spare, buffer);
}

void rd_http2_head_end(rd_http2_head *head, rd_buffer spare[RD_HTTP2_HEAD_BUFFERS]) {
    keep(&head->pseudo, &spare[0]);
    keep(&head->text, &spare[1]);
    keep(&head->cookies, &spare[2]);
    keep(&head->whole, &spare[3]);
    rd_http2_head_clear(head);
}

void rd_http2_head_clear(rd_http2_head *head) {
    rd_buffer_clear(&head->pseudo);
    rd_buffer_clear(&head->text);
    rd_buffer_clear(&head->cookies);
    rd_buffer_clear(&head->whole);
    *head = (rd_http2_head){0};
}

/* ---- fields ---- */

static void append(rd_buffer *buffer, rd_slice bytes) {
    rd_buffer_append(buffer, bytes.ptr, bytes.len);
}

#define APPEND(buffer, literal) rd_buffer_append((buffer), (literal), sizeof(literal) - 1)

/* Whether the value can stand in a line of its own without becoming anything else. */
static bool is_line(rd_slice value) {
    for (size_t i = 0; i < value.len; i++) {
        const unsigned char byte = (unsigned char)value.ptr[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f) return false;
    }
    if (value.len == 0) return true;
    const char first = value.ptr[0], last = value.ptr[value.len - 1];
    return first != ' ' && first != '\t' && last != ' ' && last != '\t';
}

/* Whether the value can be a part of the request line. */
static bool is_word(rd_slice value) {
    for (size_t i = 0; i < value.len; i++) {
        const unsigned char byte = (unsigned char)value.ptr[i];
        if (byte <= ' ' || byte == 0x7f) return false;
    }
    return value.len > 0;
}

static bool is_name(rd_slice name) {
    for (size_t i = 0; i < name.len; i++) {
        const unsigned char byte = (unsigned char)name.ptr[i];
        if (!rd_field_name_bytes[byte] || (byte >= 'A' && byte <= 'Z')) return false;
    }
    return name.len > 0;
}

static rd_http2_pseudo *pseudo_of(rd_http2_head *head, rd_slice name) {
    if (rd_slice_equal(name, RD_SLICE(":method"))) return &head->method;
    if (rd_slice_equal(name, RD_SLICE(":scheme"))) return &head->scheme;
    if (rd_slice_equal(name, RD_SLICE(":authority"))) return &head->authority;
    if (rd_slice_equal(name, RD_SLICE(":path"))) return &head->path;
    if (rd_slice_equal(name, RD_SLICE(":protocol"))) return &head->protocol;
    return NULL;
}

static int add_pseudo(rd_http2_head *head, rd_slice name, rd_slice value) {
    rd_http2_pseudo *pseudo = pseudo_of(head, name);
    if (pseudo == NULL || pseudo->is_there || !is_word(value)) return RD_ERR_HTTP2_HEAD;
    pseudo->is_there = true;
    pseudo->span = (rd_span){(uint32_t)rd_buffer_len(&head->pseudo), (uint32_t)value.len};
    append(&head->pseudo, value);
    return 0;
}

static void add_crumb(rd_http2_head *head, rd_slice value) {
    head->has_cookie = true;
    if (rd_buffer_len(&head->cookies) > 0) APPEND(&head->cookies, "; ");
    append(&head->cookies, value);
}

/* A second Host stays, so that the parser refuses it as it does in HTTP/1.1. */
static void add_line(rd_http2_head *head, rd_slice name, rd_slice value) {
    append(&head->text, name);
    APPEND(&head->text, ": ");
    append(&head->text, value);
    APPEND(&head->text, "\r\n");
}

static bool keep_host(rd_http2_head *head, rd_slice value) {
    if (head->has_host) return false;
    head->has_host = true;
    head->host = (rd_span){(uint32_t)rd_buffer_len(&head->pseudo), (uint32_t)value.len};
    append(&head->pseudo, value);
    return true;
}

static int add_field(rd_http2_head *head, rd_slice name, rd_slice value) {
    if (!is_name(name) || !is_line(value)) return RD_ERR_HTTP2_HEAD;
    if (rd_slice_equal(name, RD_SLICE("cookie"))) {
        add_crumb(head, value);
    } else if (rd_slice_equal(name, RD_SLICE("host"))) {
        if (!keep_host(head, value)) return RD_ERR_HOST_REPEATED;
    } else {
        if (rd_slice_equal(name, RD_SLICE("priority"))) head->has_priority = true;
        add_line(head, name, value);
    }
    return 0;
}

static int check_size(rd_http2_head *head, const rd_head_limits *limits, rd_slice name,
                      rd_slice value) {
    head->size += name.len + value.len + FIELD_OVERHEAD;
    if (name.len > 0 && name.ptr[0] != ':') head->count++;
    if (head->size > limits->head_bytes) return RD_ERR_HEAD_TOO_LARGE;
    return head->count > limits->header_count ? RD_ERR_FIELD_COUNT : 0;
}

void rd_http2_head_add(rd_http2_head *head, const rd_head_limits *limits, rd_slice name,
                       rd_slice value) {
    assert(head->is_decoding);
    if (head->error != 0) return;
    int code = check_size(head, limits, name, value);
    if (code == 0) {
        code = name.len > 0 && name.ptr[0] == ':' ? add_pseudo(head, name, value)
                                                  : add_field(head, name, value);
    }
    if (code != 0) rd_http2_head_fail(head, code);
}

size_t rd_http2_head_memory(const rd_http2_head *head) {
    return (size_t)head->pseudo.capacity + head->text.capacity + head->cookies.capacity +
           head->whole.capacity;
}

void rd_http2_head_fail(rd_http2_head *head, int code) {
    if (head->error != 0) return;
    head->error = code;
    rd_buffer_clear(&head->text);
    rd_buffer_clear(&head->cookies);
}

/* ---- the whole ---- */

static rd_slice value_of(const rd_http2_head *head, rd_span span) {
    return rd_span_slice(span, rd_buffer_ptr(&head->pseudo));
}

static bool is_pseudo(const rd_http2_head *head, const rd_http2_pseudo *pseudo, rd_slice value) {
    if (!pseudo->is_there) return false;
    const rd_slice said = value_of(head, pseudo->span);
    assert(said.len == 0 || said.ptr != NULL);
    return rd_slice_equal(said, value);
}

/* The authority that the server takes, from one of the two places where it may stand. */
static int find_authority(const rd_http2_head *head, rd_slice *authority) {
    *authority = RD_SLICE("");
    if (!head->authority.is_there && !head->has_host) return RD_ERR_HOST_MISSING;
    *authority = value_of(head, head->authority.is_there ? head->authority.span : head->host);
    if (!head->authority.is_there || !head->has_host) return 0;
    return rd_slice_equal(*authority, value_of(head, head->host)) ? 0 : RD_ERR_HTTP2_HEAD;
}

/* The only protocol that a stream can have besides HTTP is WebSocket. */
static int check_protocol(const rd_http2_head *head) {
    if (!head->protocol.is_there) return 0;
    if (!is_pseudo(head, &head->method, RD_SLICE("CONNECT"))) return RD_ERR_HTTP2_HEAD;
    if (!head->path.is_there || !head->scheme.is_there) return RD_ERR_HTTP2_HEAD;
    return is_pseudo(head, &head->protocol, RD_SLICE("websocket")) ? 0 : RD_ERR_HTTP2_PROTOCOL;
}

static bool has_known_scheme(const rd_http2_head *head) {
    return is_pseudo(head, &head->scheme, RD_SLICE("http")) ||
           is_pseudo(head, &head->scheme, RD_SLICE("https"));
}

/* A plain CONNECT has only an authority (RFC 9113, section 8.5). */
static int check(const rd_http2_head *head) {
    const bool connects =
        is_pseudo(head, &head->method, RD_SLICE("CONNECT")) && !head->protocol.is_there;
    if (!head->method.is_there) return RD_ERR_HTTP2_HEAD;
    if (connects) return head->path.is_there || head->scheme.is_there ? RD_ERR_HTTP2_HEAD : 0;
    if (!head->path.is_there || !has_known_scheme(head)) return RD_ERR_HTTP2_HEAD;
    const rd_slice path = value_of(head, head->path.span);
    if (path.ptr[0] != '/' && !rd_slice_equal(path, RD_SLICE("*"))) return RD_ERR_HTTP2_HEAD;
    return check_protocol(head);
}

static void put_request_line(rd_http2_head *head, rd_slice authority) {
    const bool upgrades = head->protocol.is_there;
    append(&head->whole, upgrades ? RD_SLICE("GET") : value_of(head, head->method.span));
    APPEND(&head->whole, " ");
    append(&head->whole, head->path.is_there ? value_of(head, head->path.span) : authority);
    APPEND(&head->whole, " HTTP/1.1\r\nhost: ");
    append(&head->whole, authority);
    APPEND(&head->whole, "\r\n");
    if (upgrades) APPEND(&head->whole, UPGRADE_LINES);
}

static void put_cookies(rd_http2_head *head) {
    if (!head->has_cookie) return;
    APPEND(&head->whole, "cookie: ");
    append(&head->whole, rd_slice_of(rd_buffer_ptr(&head->cookies), rd_buffer_len(&head->cookies)));
    APPEND(&head->whole, "\r\n");
}

int rd_http2_head_finish(rd_http2_head *head, rd_slice *text) {
    rd_slice authority;
    assert(head->is_decoding);
    head->is_decoding = false;
    if (head->error == 0) head->error = check(head);
    if (head->error == 0) head->error = find_authority(head, &authority);
    if (head->error != 0) return head->error;
    put_request_line(head, authority);
    if (rd_buffer_len(&head->text) > 0) {
        rd_buffer_append(&head->whole, rd_buffer_ptr(&head->text), rd_buffer_len(&head->text));
    }
    put_cookies(head);
    APPEND(&head->whole, "\r\n");
    *text = rd_slice_of(rd_buffer_ptr(&head->whole), rd_buffer_len(&head->whole));
    return 0;
}

/* ---- priority ---- */

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

/* The urgency in one member of the dictionary, or `before`. */
static uint8_t read_member(rd_slice member, uint8_t before) {
    while (member.len > 0 && is_blank(member.ptr[0])) member.ptr++, member.len--;
    if (member.len < 3 || member.ptr[0] != 'u' || member.ptr[1] != '=') return before;
    const char digit = member.ptr[2];
    const bool ends = member.len == 3 || member.ptr[3] == ';' || is_blank(member.ptr[3]);
    return ends && digit >= '0' && digit <= '7' ? (uint8_t)(digit - '0') : before;
}

uint8_t rd_http2_urgency(rd_slice priority) {
    uint8_t urgency = RD_URGENCY_DEFAULT;
    while (priority.len > 0) {
        const char *comma = memchr(priority.ptr, ',', priority.len);
        const size_t len = comma == NULL ? priority.len : (size_t)(comma - priority.ptr);
        const size_t used = comma == NULL ? len : len + 1;
        urgency = read_member(rd_slice_of(priority.ptr, len), urgency);
        priority = rd_slice_of(priority.ptr + used, priority.len - used);
    }
    return urgency;
}
