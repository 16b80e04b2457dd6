/* SPDX-License-Identifier: MIT
 *
 * Decoded fields as the text of a head (http2/http2_head.c): a name, a zero byte, a value and a
 * zero byte, again and again. Holds: a text that is accepted ends with its only empty line, and the
 * parser of HTTP/1.1, if it takes it, takes all of it and finds the fields that came, no others.
 */
#include "fuzz.h"

#include "protocol/http1_parser.h"
#include "http2/http2_head.h"

#define OWN_LINES 4 /* Host, and those of an upgrade */

static rd_head_limits limits;
static unsigned fields, crumbs, hosts;

static void add(rd_http2_head *head, const char *name, size_t name_len, const char *value,
                size_t value_len) {
    char *own_name = fuzz_copy(name, name_len), *own_value = fuzz_copy(value, value_len);
    const rd_slice key = rd_slice_of(own_name, name_len);
    if (name_len > 0 && name[0] == ':') {
    } else if (rd_slice_equal(key, RD_SLICE("cookie"))) {
        crumbs++;
    } else if (rd_slice_equal(key, RD_SLICE("host"))) {
        hosts++;
    } else {
        fields++;
    }
    rd_http2_head_add(head, &limits, key, rd_slice_of(own_value, value_len));
    free(own_name);
    free(own_value);
}

static size_t until_zero(const char *bytes, size_t len) {
    const char *end = memchr(bytes, '\0', len);
    return end != NULL ? (size_t)(end - bytes) : len;
}

static void check_text(rd_slice text) {
    rd_http1_parser parser;
    rd_head head;
    for (size_t i = 0; i + 4 < text.len; i++) {
        FUZZ_CHECK(memcmp(text.ptr + i, "\r\n\r\n", 4) != 0);
    }
    char *own = fuzz_copy(text.ptr, text.len);
    rd_http1_parser_init(&parser);
    parser.expected = NULL;
    rd_head_init(&head);
    const int used = rd_http1_parse(&parser, &head, &limits, own, text.len);
    FUZZ_CHECK(used < 0 || used == (int)text.len);
    if (used > 0) {
        FUZZ_CHECK(head.header_count <= fields + (crumbs > 0) + OWN_LINES);
        FUZZ_CHECK(hosts <= 1);
    }
    rd_head_clear(&head);
    free(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len) {
    rd_settings settings;
    rd_http2_head head = {0};
    static rd_buffer spare[RD_HTTP2_HEAD_BUFFERS];
    const char *at = (const char *)bytes;
    rd_settings_init(&settings);
    rd_head_limits_init(&limits, &settings);
    fields = crumbs = hosts = 0;
    rd_http2_head_begin(&head, spare);
    while (len > 0) {
        const size_t name = until_zero(at, len);
        const size_t rest = len - name - (name < len);
        const char *value = at + name + (name < len);
        const size_t value_len = until_zero(value, rest);
        add(&head, at, name, value, value_len);
        const size_t used = value_len + (value_len < rest);
        at = value + used;
        len = rest - used;
    }
    rd_slice text;
    const int code = rd_http2_head_finish(&head, &text);
    FUZZ_CHECK(code <= 0);
    if (code == 0) check_text(text);
    rd_http2_head_end(&head, spare);
    return 0;
}
