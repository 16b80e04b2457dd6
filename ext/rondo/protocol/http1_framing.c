/* SPDX-License-Identifier: MIT
 *
 * What the fields of a head mean; see http1_framing.h. Fields are checked in the order in which
 * they came, then their combinations. So a request always gets the same answer. Under the loop
 * lock.
 */
#include "protocol/http1_framing.h"

#include "base/error.h"
#include "http/target.h"
#include "http/field.h"

/* Findings so far; everything else goes straight into the head. */
typedef struct found {
    const rd_head_limits *limits;
    bool host;
    bool length;
    bool coding;
    bool close;
    bool keep_alive;
    bool expectation;
} found;

/* 1*DIGIT (RFC 9110, section 8.6), always decimal, even with leading zeros. */
static int length_parse(rd_slice text, uint64_t *length) {
    uint64_t value = 0;

    if (text.len == 0) return RD_ERR_LENGTH_INVALID;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9') return RD_ERR_LENGTH_INVALID;
    for (size_t i = 0; i < text.len; i++) {
        const uint64_t digit = (uint64_t)(text.ptr[i] - '0');

        if (value > ((uint64_t)INT64_MAX - digit) / 10) return RD_ERR_LENGTH_TOO_LARGE;
        value = value * 10 + digit;
    }
    *length = value;
    return 0;
}

static int length_add(rd_head *head, found *found, rd_slice text) {
    uint64_t length;
    int rc = length_parse(text, &length);

    if (rc < 0) return rc;
    if (found->length && !found->limits->lenient_duplicate_length) return RD_ERR_LENGTH_REPEATED;
    if (found->length && length != head->content_length) return RD_ERR_LENGTH_REPEATED;
    found->length = true;
    head->content_length = length;
    return 0;
}

/* A list is several lengths in one line. A client that may repeat the field may send it like this,
 * too. */
static int read_length(rd_head *head, found *found, rd_slice value) {
    rd_slice element;
    int rc = 0;

    if (!found->limits->lenient_duplicate_length) return length_add(head, found, value);
    while (rc == 0 && rd_field_next_element(&value, &element))
        rc = length_add(head, found, element);
    return rc;
}

static bool is_token(rd_slice text) {
    for (size_t i = 0; i < text.len; i++)
        if (!rd_field_name_bytes[(unsigned char)text.ptr[i]]) return false;
    return text.len > 0;
}

static bool is_known_coding(rd_slice name) {
    return rd_field_is_word(name, RD_SLICE("gzip")) ||
           rd_field_is_word(name, RD_SLICE("deflate")) ||
           rd_field_is_word(name, RD_SLICE("compress")) ||
           rd_field_is_word(name, RD_SLICE("x-gzip")) ||
           rd_field_is_word(name, RD_SLICE("x-compress"));
}

/* Finds the error for anything but exactly "chunked". */
static int coding_error(rd_slice value) {
    rd_slice element;
    unsigned chunked = 0;
    bool last_is_chunked = false, unknown = false;

    while (rd_field_next_element(&value, &element)) {
        if (!is_token(element)) return RD_ERR_CODING_INVALID;
        last_is_chunked = rd_field_is_word(element, RD_SLICE("chunked"));
        chunked += last_is_chunked;
        unknown |= !last_is_chunked && !is_known_coding(element);
    }
    if (chunked > 1) return RD_ERR_CODING_INVALID;
    if (unknown || last_is_chunked) return RD_ERR_CODING_UNSUPPORTED;
    return RD_ERR_CODING_NOT_CHUNKED;
}

static int read_coding(rd_head *head, found *found, rd_slice value) {
    if (!rd_http_versions[head->version].has_chunked) return RD_ERR_CODING_IN_1_0;
    if (found->coding) return RD_ERR_CODING_REPEATED;
    if (!rd_field_is_word(value, RD_SLICE("chunked"))) return coding_error(value);
    found->coding = true;
    return 0;
}

static int read_host(rd_head *head, found *found, const char *buf, const rd_header *header) {
    uint32_t host_len;
    uint16_t port;
    int rc;

    if (found->host) return RD_ERR_HOST_REPEATED;
    found->host = true;
    rc = rd_authority_parse(buf + header->value_at, header->value_len, &host_len, &port);
    if (rc < 0) return rc;
    if (head->form == RD_TARGET_ABSOLUTE || head->form == RD_TARGET_AUTHORITY) return 0;
    head->authority = (rd_span){header->value_at, header->value_len};
    head->host = (rd_span){header->value_at, host_len};
    head->port = port;
    return 0;
}

static void read_connection(found *found, rd_slice value) {
    rd_slice option;

    while (rd_field_next_element(&value, &option)) {
        found->close |= rd_field_is_word(option, RD_SLICE("close"));
        found->keep_alive |= rd_field_is_word(option, RD_SLICE("keep-alive"));
    }
}

static int read_expect(found *found, rd_slice value) {
    rd_slice expectation;

    while (rd_field_next_element(&value, &expectation)) {
        if (expectation.len == 0) continue;
        if (!rd_field_is_word(expectation, RD_SLICE("100-continue"))) return RD_ERR_EXPECTATION;
        found->expectation = true;
    }
    return 0;
}

static int read_field(rd_head *head, found *found, const char *buf, const rd_header *header) {
    const rd_slice value = rd_header_value(header, buf);

    switch (header->id) {
    case RD_HEADER_HOST:
        return read_host(head, found, buf, header);
    case RD_HEADER_CONTENT_LENGTH:
        return read_length(head, found, value);
    case RD_HEADER_TRANSFER_ENCODING:
        return read_coding(head, found, value);
    case RD_HEADER_CONNECTION:
        read_connection(found, value);
        return 0;
    case RD_HEADER_EXPECT:
        return read_expect(found, value);
    default:
        return 0;
    }
}

int rd_http1_framing_decide(rd_head *head, const rd_head_limits *limits, const char *buf) {
    const rd_http_version *version = &rd_http_versions[head->version];
    found found = {.limits = limits};
    bool has_body;
    int rc;

    for (unsigned i = 0; i < head->header_count; i++) {
        if (head->headers[i].id - 1u >= RD_HEADER_LAST_FRAMING) continue;
        rc = read_field(head, &found, buf, &head->headers[i]);
        if (rc < 0) return rc;
    }
    if (head->version != RD_HTTP_1_0 && !found.host) return RD_ERR_HOST_MISSING;
    if (found.length && found.coding) return RD_ERR_LENGTH_AND_CODING;

    if (found.length) head->framing = RD_FRAMING_LENGTH;
    if (found.coding) head->framing = RD_FRAMING_CHUNKED;
    has_body = found.coding || head->content_length > 0;
    head->keep_alive = !found.close && (version->keeps_alive || found.keep_alive);
    head->expect_continue = found.expectation && version->has_interim && has_body;
    return 0;
}
