/* SPDX-License-Identifier: MIT
 *
 * The opening handshake of WebSockets; see websocket_handshake.h.
 */
#include "endpoint/websocket_handshake.h"

#include <assert.h>
#include <string.h>

#include "http/base64.h"
#include "base/sha1.h"
#include "http/field.h"

/* RFC 6455, section 1.3 */
static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

enum { KEY_LEN = 24 };

/* Whether a field with this id has the word as an element of its list. */
static bool has_element(const rd_head *head, const char *buf, unsigned id, rd_slice word) {
    rd_slice list, element;

    if (!rd_head_has(head, id)) return false;
    for (unsigned i = 0; i < head->header_count; i++) {
        if (head->headers[i].id != id) continue;
        list = rd_header_value(&head->headers[i], buf);
        while (rd_field_next_element(&list, &element))
            if (rd_field_is_word(element, word)) return true;
    }
    return false;
}

/* The value of a field that may come only once. NULL when there is none, or more than one. */
static rd_slice only_value(const rd_head *head, const char *buf, unsigned id) {
    rd_slice value = {NULL, 0};

    if (!rd_head_has(head, id)) return value;
    for (unsigned i = 0; i < head->header_count; i++) {
        if (head->headers[i].id != id) continue;
        if (value.ptr) return (rd_slice){NULL, 0};
        value = rd_header_value(&head->headers[i], buf);
    }
    return value;
}

/* Whether it is 22 letters of base64 and "==", which is 16 bytes; only two bits of the last letter
 * are used. */
static bool is_key(rd_slice text) {
    if (text.len != KEY_LEN || memcmp(text.ptr + KEY_LEN - 2, "==", 2) != 0) return false;
    for (size_t i = 0; i < KEY_LEN - 2; i++)
        if (rd_base64_value(text.ptr[i]) < 0) return false;
    return strchr("AQgw", text.ptr[KEY_LEN - 3]) != NULL;
}

int rd_ws_handshake_check(const rd_head *head, const char *buf, rd_slice *key) {
    rd_slice version;

    if (!has_element(head, buf, RD_HEADER_UPGRADE, RD_SLICE("websocket"))) return 0;
    if (head->method_id != RD_METHOD_GET || head->version == RD_HTTP_1_0) return 0;
    if (!has_element(head, buf, RD_HEADER_CONNECTION, RD_SLICE("upgrade"))) return 0;

    version = only_value(head, buf, RD_HEADER_SEC_WEBSOCKET_VERSION);
    if (!version.ptr || !rd_slice_equal(version, RD_SLICE(RD_WS_VERSION))) return RD_ERR_WS_VERSION;
    *key = only_value(head, buf, RD_HEADER_SEC_WEBSOCKET_KEY);
    if (!key->ptr || !is_key(*key)) return RD_ERR_WS_KEY;
    /* One reader would take what follows the head for a body, another one for frames. */
    if (rd_head_has_open_body(head) || head->content_length > 0) return RD_ERR_WS_BODY;
    return 1;
}

void rd_ws_handshake_accept(rd_slice key, char accept[RD_WS_ACCEPT_LEN]) {
    char text[KEY_LEN + sizeof guid - 1];
    uint8_t digest[RD_SHA1_LEN];

    assert(key.len == KEY_LEN);
    memcpy(text, key.ptr, KEY_LEN);
    memcpy(text + KEY_LEN, guid, sizeof guid - 1);
    rd_sha1(text, sizeof text, digest);
    rd_base64_encode(digest, sizeof digest, accept);
}

static bool is_offered(const rd_head *head, const char *buf, rd_slice protocol) {
    rd_slice list, element;

    if (!rd_head_has(head, RD_HEADER_SEC_WEBSOCKET_PROTOCOL)) return false;
    for (unsigned i = 0; i < head->header_count; i++) {
        if (head->headers[i].id != RD_HEADER_SEC_WEBSOCKET_PROTOCOL) continue;
        list = rd_header_value(&head->headers[i], buf);
        while (rd_field_next_element(&list, &element))
            if (rd_slice_equal(element, protocol)) return true;
    }
    return false;
}

/* The first of the names that the client offers, or an empty slice. */
static rd_slice first_offered(const rd_head *head, const char *buf, rd_slice names) {
    rd_slice name;

    while (rd_field_next_element(&names, &name))
        if (name.len > 0 && is_offered(head, buf, name)) return name;
    return (rd_slice){"", 0};
}

size_t rd_ws_handshake_choose(const rd_head *head, const char *buf, rd_field *fields,
                              size_t count) {
    size_t kept = 0;
    bool chosen = false;

    for (size_t i = 0; i < count; i++) {
        rd_field field = fields[i];

        if (rd_field_is_word(field.name, RD_SLICE("sec-websocket-protocol"))) {
            if (!chosen) field.value = first_offered(head, buf, field.value);
            if (chosen || field.value.len == 0) continue;
            chosen = true;
        }
        fields[kept++] = field;
    }
    return kept;
}
