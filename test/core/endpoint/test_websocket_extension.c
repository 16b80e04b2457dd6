/* SPDX-License-Identifier: MIT
 *
 * endpoint/websocket_extension: which offers are agreed to, and in which words.
 */
#include "check.h"
#include "default_limits.h"

#include <stdlib.h>

#include "protocol/http1_parser.h"
#include "endpoint/websocket_extension.h"

#define AGREED "permessage-deflate; server_no_context_takeover; client_no_context_takeover"
#define BITS   "; server_max_window_bits="
#define PD     "permessage-deflate"

typedef struct row {
    const char *offer, *answer; /* "": none */
} row;

static const row rows[] = {
    {PD, AGREED},
    {PD "; client_max_window_bits", AGREED}, /* browsers */
    {"  " PD "  ;\tclient_max_window_bits  ", AGREED},
    {PD ";client_max_window_bits=8", AGREED},
    {PD "; client_max_window_bits=15", AGREED},
    {PD "; client_max_window_bits=\"12\"", AGREED},
    {PD "; server_no_context_takeover", AGREED},
    {PD "; client_no_context_takeover", AGREED},
    {PD "; server_no_context_takeover; client_no_context_takeover", AGREED},
    {PD "; server_max_window_bits=9", AGREED BITS "9"},
    {PD "; server_max_window_bits=15", AGREED BITS "15"},
    {PD "; server_max_window_bits = 10", AGREED BITS "10"},
    {PD "; server_max_window_bits=\"1\\2\"", AGREED BITS "12"},
    {PD "; client_max_window_bits=9; server_max_window_bits=11; client_no_context_takeover",
     AGREED BITS "11"},
    /* offers that the server cannot keep */
    {PD "; server_max_window_bits=8", AGREED BITS "8"},
    {PD "; server_max_window_bits=8, " PD, AGREED BITS "8"},
    {PD "; server_max_window_bits=7, " PD "; server_max_window_bits=10", AGREED BITS "10"},
    /* invalid values */
    {PD "; server_max_window_bits", ""},
    {PD "; server_max_window_bits=", ""},
    {PD "; server_max_window_bits=\"\"", ""},
    {PD "; server_max_window_bits=0", ""},
    {PD "; server_max_window_bits=7", ""},
    {PD "; server_max_window_bits=16", ""},
    {PD "; server_max_window_bits=09", ""},
    {PD "; server_max_window_bits=\"010\"", ""},
    {PD "; server_max_window_bits=010", ""},
    {PD "; server_max_window_bits=1e1", ""},
    {PD "; server_max_window_bits=+9", ""},
    {PD "; server_max_window_bits=-9", ""},
    {PD "; server_max_window_bits=9.", ""},
    {PD "; server_max_window_bits=99999999999999999999", ""},
    {PD "; server_max_window_bits=4294967305", ""},
    {PD "; client_max_window_bits=", ""},
    {PD "; client_max_window_bits=0", ""},
    {PD "; client_max_window_bits=7", ""},
    {PD "; client_max_window_bits=16", ""},
    {PD "; client_max_window_bits=\"8", ""},
    {PD "; client_max_window_bits=\"8\\", ""},
    {PD "; server_no_context_takeover=true", ""},
    {PD "; server_no_context_takeover=", ""},
    {PD "; client_no_context_takeover=1", ""},
    {PD "; client_no_context_takeover=\"\"", ""},
    /* unknown parameters, or one parameter twice */
    {PD "; x", ""},
    {PD "; x=1", ""},
    {PD "; Server_No_Context_Takeover", ""},
    {PD "; server_no_context_takeover; server_no_context_takeover", ""},
    {PD "; client_no_context_takeover; client_no_context_takeover", ""},
    {PD "; client_max_window_bits; client_max_window_bits=10", ""},
    {PD "; server_max_window_bits=10; server_max_window_bits=10", ""},
    {PD "; server_max_window_bits=10; x, " PD, AGREED},
    /* lists, and invalid offers */
    {"", ""},
    {",", ""},
    {";", ""},
    {"=", ""},
    {"\"", ""},
    {"permessage-bzip2", ""},
    {"x-webkit-deflate-frame", ""},
    {PD "d", ""},
    {"\"" PD "\"", ""},
    {PD "=1", ""},
    {PD " " PD, ""},
    {PD ";", ""},
    {PD ";;client_max_window_bits", ""},
    {PD "; client_max_window_bits;", ""},
    {PD "; client_max_window_bits x", ""},
    {PD "; =1", ""},
    {PD "; \"client_max_window_bits\"", ""},
    {", , " PD " ,", AGREED},
    {"permessage-bzip2; x=y, " PD, AGREED},
    {"x; y=\"a, " PD "\"", ""},
    {"x; y=\"a, \\\", " PD "; server_max_window_bits=9\", " PD, AGREED},
    {"x; y=\"a, " PD, ""},
    {"()<>@:, " PD, AGREED},
    {"\"a\" \"b, c\" " PD ", " PD "; server_max_window_bits=9", AGREED BITS "9"},
    {PD "; server_max_window_bits=9, " PD "; server_max_window_bits=12", AGREED BITS "9"},
    {PD "; server_max_window_bits=12, " PD, AGREED BITS "12"},
    /* several fields are one list */
    {"x\r\nSec-WebSocket-Extensions: " PD, AGREED},
    {PD ";\r\nSec-WebSocket-Extensions: " PD "; server_max_window_bits=9", AGREED BITS "9"},
    {"x; y=\"\r\nSec-WebSocket-Extensions: " PD, AGREED},
};

static void check_offer(const char *fields, const char *answer) {
    const size_t room = strlen(fields) + 64;
    char *request = malloc(room), text[RD_WS_EXTENSION_MAX];
    const int len = snprintf(request, room, "GET / HTTP/1.1\r\nHost: a\r\n%s\r\n", fields);
    rd_http1_parser parser;
    rd_head head;

    rd_http1_parser_init(&parser);
    rd_head_init(&head);
    if (CHECK_INT(rd_http1_parse(&parser, &head, &default_limits, request, (size_t)len), len)) {
        const rd_ws_extension extension = rd_ws_extension_choose(&head, request);
        const size_t written = rd_ws_extension_write(&extension, text);

        CHECK(written <= sizeof text);
        CHECK_SAYS(written == strlen(answer) && memcmp(text, answer, written) == 0,
                   "%s: \"%.*s\" instead of \"%s\"", fields, (int)written, text, answer);
    }
    rd_head_clear(&head);
    free(request);
}

int main(void) {
    char fields[512];

    check_offer("", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        snprintf(fields, sizeof fields, "Sec-WebSocket-Extensions: %s\r\n", rows[i].offer);
        check_offer(fields, rows[i].answer);
    }
    return check_summary();
}
