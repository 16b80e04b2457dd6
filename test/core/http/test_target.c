/* SPDX-License-Identifier: MIT
 *
 * http/target: the four forms of a target, and which hosts and ports are well formed.
 */
#include "check.h"
#include "error_name.h"

#include "base/error.h"
#include "http/target.h"

typedef struct authority_row {
    const char *text;
    int host_len; /* negative: refused */
    int port;
} authority_row;

static const authority_row authorities[] = {
    {"example.com", 11, 0},
    {"example.com:80", 11, 80},
    {"example.com:", 11, 0},
    {"a:65535", 1, 65535},
    {"a:00080", 1, 80},
    {"127.0.0.1:3000", 9, 3000},
    {"my_host.internal", 16, 0},
    {"[::1]", 5, 0},
    {"[2001:db8::1]:8080", 13, 8080},
    {"[::ffff:1.2.3.4]", 16, 0},
    {"%41b", 4, 0},
    {"", -1, 0},
    {":80", -1, 0},
    {"a:65536", -1, 0},
    {"a:000080", -1, 0},
    {"a:+80", -1, 0},
    {"a:-1", -1, 0},
    {"a:8x", -1, 0},
    {"a:80:80", -1, 0},
    {"user@host", -1, 0},
    {"user:pass@host", -1, 0},
    {"a/b", -1, 0},
    {"a?b", -1, 0},
    {"a#b", -1, 0},
    {"a,b", -1, 0},
    {"a b", -1, 0},
    {"a\tb", -1, 0},
    {"a\\b", -1, 0},
    {"a\x80", -1, 0},
    {"%4", -1, 0},
    {"%zz", -1, 0},
    {"[]", -1, 0},
    {"[::1", -1, 0},
    {"::1", -1, 0},
    {"[::1]x", -1, 0},
    {"[::1%25eth0]", -1, 0},
    {"[v1.a]", -1, 0},
    {"[1.2.3.4]", -1, 0},
    {"[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]", -1, 0},
};

static void test_authorities(void) {
    for (size_t i = 0; i < sizeof authorities / sizeof *authorities; i++) {
        const authority_row *row = &authorities[i];
        uint32_t host_len = 0;
        uint16_t port = 0;
        const int rc = rd_authority_parse(row->text, strlen(row->text), &host_len, &port);

        CHECK_SAYS(rc == (row->host_len < 0 ? RD_ERR_HOST_INVALID : 0), "%s: %d", row->text, rc);
        if (rc < 0) continue;
        CHECK_SAYS((int)host_len == row->host_len, "%s: %u", row->text, host_len);
        CHECK_SAYS(port == row->port, "%s: %u", row->text, port);
    }
}

typedef struct target_row {
    const char *method, *text;
    int rc, form;
    const char *path, *query, *host;
} target_row;

static const target_row targets[] = {
    {"GET", "/", 0, RD_TARGET_ORIGIN, "/", "", ""},
    {"GET", "/a/b?c=d?e", 0, RD_TARGET_ORIGIN, "/a/b", "c=d?e", ""},
    {"GET", "/a?", 0, RD_TARGET_ORIGIN, "/a", "", ""},
    {"GET", "//evil/x", 0, RD_TARGET_ORIGIN, "//evil/x", "", ""},
    {"GET", "/%00%2e%2e%2f%252e%zz", 0, RD_TARGET_ORIGIN, "/%00%2e%2e%2f%252e%zz", "", ""},
    {"GET", "/http://x/", 0, RD_TARGET_ORIGIN, "/http://x/", "", ""},
    {"OPTIONS", "*", 0, RD_TARGET_ASTERISK, "*", "", ""},
    {"GET", "http://a.b/c?d", 0, RD_TARGET_ABSOLUTE, "/c", "d", "a.b"},
    {"GET", "HTTP://a.b:81", 0, RD_TARGET_ABSOLUTE, "", "", "a.b"},
    {"GET", "https://a.b?q", 0, RD_TARGET_ABSOLUTE, "", "q", "a.b"},
    {"CONNECT", "a.b:443", 0, RD_TARGET_AUTHORITY, "", "", "a.b"},
    {"GET", "*", RD_ERR_TARGET_ASTERISK, 0, "", "", ""},
    {"OPTIONS", "**", RD_ERR_TARGET_FORM, 0, "", "", ""},
    {"OPTIONS", "*?a", RD_ERR_TARGET_FORM, 0, "", "", ""},
    {"GET", "a.b:443", RD_ERR_TARGET_FORM, 0, "", "", ""},
    {"GET", "index.html", RD_ERR_TARGET_FORM, 0, "", "", ""},
    {"GET", "?a", RD_ERR_TARGET_FORM, 0, "", "", ""},
    {"GET", "mailto:a@b", RD_ERR_TARGET_FORM, 0, "", "", ""},
    {"GET", "ftp://a.b/", RD_ERR_TARGET_SCHEME, 0, "", "", ""},
    {"GET", "httpx://a.b/", RD_ERR_TARGET_SCHEME, 0, "", "", ""},
    {"GET", "httpss://a.b/", RD_ERR_TARGET_SCHEME, 0, "", "", ""},
    {"GET", "://a.b/", RD_ERR_TARGET_SCHEME, 0, "", "", ""},
    {"GET", "http:///c", RD_ERR_TARGET_AUTHORITY, 0, "", "", ""},
    {"GET", "http://", RD_ERR_TARGET_AUTHORITY, 0, "", "", ""},
    {"GET", "http:/a", RD_ERR_TARGET_FORM, 0, "", "", ""},
    {"GET", "http://u@a.b/", RD_ERR_TARGET_AUTHORITY, 0, "", "", ""},
    {"GET", "http://a.b:99999/", RD_ERR_TARGET_AUTHORITY, 0, "", "", ""},
    {"CONNECT", "a.b", RD_ERR_TARGET_AUTHORITY, 0, "", "", ""},
    {"CONNECT", "/", RD_ERR_TARGET_AUTHORITY, 0, "", "", ""},
    {"CONNECT", "http://a.b:1/", RD_ERR_TARGET_AUTHORITY, 0, "", "", ""},
};

static void test_targets(void) {
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        const target_row *row = &targets[i];
        rd_head head;
        rd_slice path, query, host;

        rd_head_init(&head);
        head.method_id = rd_method_id(row->method, strlen(row->method));
        head.target = (rd_span){0, (uint32_t)strlen(row->text)};
        const int rc = rd_target_parse(&head, row->text, true);
        CHECK_SAYS(rc == row->rc, "%s %s: %s", row->method, row->text, error_name(rc));
        if (rc < 0) continue;
        path = rd_span_slice(head.path, row->text);
        query = rd_span_slice(head.query, row->text);
        host = rd_span_slice(head.host, row->text);
        CHECK_INT(head.form, row->form);
        CHECK_BYTES(path.ptr, path.len, row->path);
        CHECK_BYTES(query.ptr, query.len, row->query);
        CHECK_BYTES(host.ptr, host.len, row->host);
    }
}

static void test_connect_is_opt_in(void) {
    rd_head head;

    rd_head_init(&head);
    head.method_id = RD_METHOD_CONNECT;
    head.target = (rd_span){0, 7};
    CHECK_INT(rd_target_parse(&head, "a.b:443", false), RD_ERR_METHOD_CONNECT);
}

int main(void) {
    test_authorities();
    test_targets();
    test_connect_is_opt_in();
    return check_summary();
}
