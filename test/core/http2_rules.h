/* SPDX-License-Identifier: MIT
 *
 * The rules of HTTP/2 (RFC 9113, 7541, 9218) as data: what a client sends (http2_script.h) and what
 * must come of it. Knows no sockets: test_http2_rules.c delivers the rows.
 *
 * A row begins behind the preface and an empty SETTINGS, unless its first line is BARE. With
 * "WRONG 5" there its preface has a wrong byte at that offset, with "OFF http2" or "OFF websocket"
 * it is for a server with that setting off. More lines:
 *
 *   < 1=200 3!PROTOCOL     what must have come by now, and no more than that; the last line is the
 *                          result
 *   LATER 2000             so many milliseconds pass
 *   EOF                    the client sends no more
 *   STOP, PONG             the server begins to stop; the client answers the server's last PING
 *
 * What is expected:
 *   1=200, 1=200:/p, 1=200@5   an answer that is complete; its body; the length of that
 *   1~200@5, 1-103             an answer, or its first head only, that is not
 *   1!PROTOCOL                 RST_STREAM       C!PROTOCOL   GOAWAY, and the end of the connection
 *   GOAWAY=7                   a GOAWAY with this last stream    END   the connection is closed
 *   ACKS=2 PONGS=1 PINGS=1     frames of the connection
 *   S3=100                     a setting of the server
 *   W1=4000                    what the window of stream 1 grew by; W0 is that of the connection
 *   PONG<DATA                  a PING was answered before the last DATA
 *   tls:…, plain:…             only there
 * A stream that is not mentioned has heard nothing. A connection that is not ended answers one more
 * request, whose head needs the table of HPACK as it has to be.
 */
#ifndef HTTP2_RULES_H
#define HTTP2_RULES_H

#include <stddef.h>

typedef struct http2_rule {
    const char *number, *name, *script;
} http2_rule;

/* Heads. The certificate is for a.test. */
#define ON(method, path)   ":method " method "|:scheme http|:path " path "|:authority a.test"
#define ASK_FOR(id, path)  "HEADERS " id " eh =" ON("GET", path) "\n"
#define ASK(id)            ASK_FOR(id, "/p")
#define ASK_WITH(fields)   "HEADERS 1 eh =" fields "\n"
#define WITH(fields)       ASK_WITH(ON("GET", "/p") "|" fields)
#define OPEN_FOR(id, path) "HEADERS " id " h =" ON("POST", path) "\n"
#define OPEN(id)           OPEN_FOR(id, "/body")
#define OPEN_WITH(fields)  "HEADERS 1 h =" ON("POST", "/body") "|" fields "\n"
#define CONNECT_FOR(name)                                                                          \
    ASK_WITH(":method CONNECT|:protocol " name "|:scheme http|:path /p|:authority a.test|"         \
             "sec-websocket-version 13")
#define BREAKS(code)  "< C!" code
#define IS_NO_PREFACE "< plain:END|C!PROTOCOL tls:C!PROTOCOL"
#define IS_MALFORMED  "< 1!PROTOCOL"

/* clang-format off */
static const http2_rule http2_rules[] = {
    /* ---- 1: the opening ---- */
    {"1", "no SETTINGS", "BARE\n" ASK("1") BREAKS("PROTOCOL")},
    {"1", "PING before SETTINGS", "BARE\nPING 0 - #0102030405060708\n" BREAKS("PROTOCOL")},
    {"1", "SETTINGS that only acknowledge", "BARE\nSETTINGS 0 e\n" BREAKS("PROTOCOL")},
    {"1", "a wrong byte of the preface, the first", "WRONG 0\n" IS_NO_PREFACE},
    {"1", "a wrong byte of the preface, a blank", "WRONG 3\n" IS_NO_PREFACE},
    {"1", "a wrong byte of the preface, the version", "WRONG 11\n" IS_NO_PREFACE},
    {"1", "a wrong byte of the preface, behind the line", "WRONG 15\n" IS_NO_PREFACE},
    {"1", "a wrong byte of the preface, SM", "WRONG 18\n" IS_NO_PREFACE},
    {"1", "a wrong byte of the preface, the last", "WRONG 23\n" IS_NO_PREFACE},
    {"1", "HTTP/2 switched off", "OFF http2\n< END"},
    {"1", "settings of the server", "< S3=100 S4=8192 S6=4096 S8=1 S9=1 ACKS=1"},

    /* ---- 2: SETTINGS ---- */
    {"2", "on a stream", "SETTINGS 1 -\n" BREAKS("PROTOCOL")},
    {"2", "five bytes", "SETTINGS 0 - #0003000000\n" BREAKS("FRAME_SIZE")},
    {"2", "an acknowledgement with a payload", "SETTINGS 0 e #000300000001\n" BREAKS("FRAME_SIZE")},
    {"2", "ENABLE_PUSH 2", "SETTINGS 0 - #000200000002\n" BREAKS("PROTOCOL")},
    {"2", "MAX_FRAME_SIZE too small", "SETTINGS 0 - #000500003fff\n" BREAKS("PROTOCOL")},
    {"2", "MAX_FRAME_SIZE too large", "SETTINGS 0 - #000501000000\n" BREAKS("PROTOCOL")},
    {"2", "a window too large", "SETTINGS 0 - #000480000000\n" BREAKS("FLOW_CONTROL")},
    {"2", "an unknown one", "SETTINGS 0 - #00ff00000001\n< ACKS=2"},
    {"2", "each is acknowledged",
     "SETTINGS 0 - #000300000001\nSETTINGS 0 - #000200000000\n< ACKS=3"},

    /* ---- 3: frames ---- */
    {"3", "a frame too long", "RAW #004001 00 00 00000001\n" BREAKS("FRAME_SIZE")},
    {"3", "PING of 7 bytes", "PING 0 - #01020304050607\n" BREAKS("FRAME_SIZE")},
    {"3", "RST_STREAM of 3 bytes", OPEN("1") "RST 1 - #000000\n" BREAKS("FRAME_SIZE")},
    {"3", "WINDOW_UPDATE of 3 bytes", "WINDOW 0 - #000001\n" BREAKS("FRAME_SIZE")},
    {"3", "PRIORITY of 4 bytes", OPEN("1") "PRIORITY 1 - #00000000\n" BREAKS("FRAME_SIZE")},
    {"3", "GOAWAY of 7 bytes", "GOAWAY 0 - #00000000000000\n" BREAKS("FRAME_SIZE")},
    {"3", "an unknown type", "UNKNOWN 1 - #abcd\n" ASK("1") "< 1=200"},
    {"3", "the reserved bit",
     "HEADERS 1 ehr =" ON("GET", "/p") "\nPING 0 r #0102030405060708\n< 1=200 PONGS=1"},
    {"3", "unknown flags", "RAW #000008 06 fe 00000000 0102030405060708\n< PONGS=1"},
    {"3", "a PING inside a head",
     "HEADERS 1 e #828486\nPING 0 - #0102030405060708\n" BREAKS("PROTOCOL")},
    {"3", "an unknown frame inside a head",
     "HEADERS 1 e #828486\nUNKNOWN 1 -\n" BREAKS("PROTOCOL")},
    {"3", "DATA inside a head", "HEADERS 1 e #828486\nDATA 1 - \"x\n" BREAKS("PROTOCOL")},
    {"3", "another stream goes on with a head",
     "HEADERS 1 e #828486\nCONT 3 h\n" BREAKS("PROTOCOL")},
    {"3", "a CONTINUATION of nothing", "CONT 1 h\n" BREAKS("PROTOCOL")},
    {"3", "a head in pieces",
     "HEADERS 1 e #82\nCONT 1 -\nCONT 1 - #8486\nCONT 1 h =:authority a.test\n< 1=200:/"},
    {"3", "PUSH_PROMISE", OPEN("1") "PROMISE 1 h #00000002 82\n" BREAKS("PROTOCOL")},
    {"3", "padding as long as the frame", "HEADERS 1 ehp #01\n" BREAKS("PROTOCOL")},
    {"3", "padding longer than DATA", OPEN("1") "DATA 1 p #0261\n" BREAKS("PROTOCOL")},
    {"3", "padding", OPEN("1") "DATA 1 ep #02 6162 0000\n< 1=200:ab"},
    {"3", "PING on a stream", "PING 1 - #0102030405060708\n" BREAKS("PROTOCOL")},
    {"3", "GOAWAY on a stream", "GOAWAY 1 - #0000000000000000\n" BREAKS("PROTOCOL")},
    {"3", "an answer to no PING", "PING 0 e #0102030405060708\n< "},
    {"3", "PING", "PING 0 - #0102030405060708\n< PONGS=1"},
    {"3", "PING beside a large answer",
     "SETTINGS 0 - #0004000f4240\nWINDOW 0 - #000f4240\n" ASK_FOR("1", "/big")
     "PING 0 - #0102030405060708\n< 1=200@600000 ACKS=2 PONG<DATA"},

    /* ---- 4: streams ---- */
    {"4", "DATA on stream 0", "DATA 0 - \"x\n" BREAKS("PROTOCOL")},
    {"4", "HEADERS on stream 0", ASK("0") BREAKS("PROTOCOL")},
    {"4", "PRIORITY on stream 0", "PRIORITY 0 - #0000000010\n" BREAKS("PROTOCOL")},
    {"4", "RST_STREAM on stream 0", "RST 0 - #00000008\n" BREAKS("PROTOCOL")},
    {"4", "CONTINUATION on stream 0", "CONT 0 h\n" BREAKS("PROTOCOL")},
    {"4", "an even stream", ASK("2") BREAKS("PROTOCOL")},
    {"4", "DATA on an idle stream", "DATA 5 - \"x\n" BREAKS("PROTOCOL")},
    {"4", "DATA on an even stream", "DATA 6 - \"x\n" BREAKS("PROTOCOL")},
    {"4", "RST_STREAM on an idle stream", "RST 5 - #00000008\n" BREAKS("PROTOCOL")},
    {"4", "WINDOW_UPDATE on an idle stream", "WINDOW 5 - #00000001\n" BREAKS("PROTOCOL")},
    {"4", "PRIORITY on an idle stream", "PRIORITY 5 - #0000000010\n< "},
    {"4", "PRIORITY on itself", OPEN("1") "PRIORITY 1 - #0000000110\n< "},
    {"4", "HEADERS on a lower stream that never was",
     ASK("5") "< 5=200\n" ASK("3") "< 5=200 C!PROTOCOL"},
    {"4", "at once", OPEN("5") ASK("3") "< C!PROTOCOL"},
    {"4", "DATA on a lower stream that never was",
     ASK("5") "< 5=200\nDATA 3 - \"x\n< 5=200 C!STREAM_CLOSED"},
    {"4", "DATA after END_STREAM", ASK_FOR("1", "/held") "DATA 1 - \"x\n< C!STREAM_CLOSED"},
    {"4", "DATA after the answer", ASK("1") "< 1=200\nDATA 1 - \"x\n< 1=200 C!STREAM_CLOSED"},
    {"4", "HEADERS after END_STREAM", ASK_FOR("1", "/held") ASK("1") "< C!STREAM_CLOSED"},
    {"4", "HEADERS after the answer", ASK("1") "< 1=200\n" ASK("1") "< 1=200 C!STREAM_CLOSED"},
    {"4", "frames that may come after the answer",
     ASK("1")
     "< 1=200\nWINDOW 1 - #00000001\nRST 1 - #00000008\nPRIORITY 1 - #0000000010\n< 1=200"},
    {"4", "DATA after END_STREAM and our RST_STREAM",
     ASK_WITH(":method GET") IS_MALFORMED "\nDATA 1 - \"x\n< 1!PROTOCOL C!STREAM_CLOSED"},
    {"4", "DATA after our RST_STREAM",
     "HEADERS 1 h =:method GET\n" IS_MALFORMED "\nDATA 1 - \"x\nDATA 1 e \"x\n" IS_MALFORMED},
    {"4", "that leaves the window of the connection as it was",
     "SETTINGS 0 e\nHEADERS 1 h =:method GET\nDATA 1x60 - %16384\n" IS_MALFORMED
     "\nDATA 1x60 - %16384\n< 1!PROTOCOL W0>3000000"},
    {"4", "trailers after our RST_STREAM, for the table of HPACK",
     "HEADERS 1 h =:method GET\n" IS_MALFORMED "\nHEADERS 1 eh =+:path /kept\n"
     "HEADERS 3 eh =:method GET|:scheme http|*62|:authority a.test\n< 1!PROTOCOL 3=200:/kept"},
    {"4", "RST_STREAM by the client, then HEADERS",
     OPEN("1") "RST 1 - #00000008\nHEADERS 1 eh =x y\n< C!STREAM_CLOSED"},

    /* ---- priorities (RFC 9218) ---- */
    {"P", "an update", ASK_FOR("1", "/held") "PRIORITY_UPDATE 0 - #00000001 753d30\n< "},
    {"P", "an update before its stream",
     "PRIORITY_UPDATE 0 - #00000001 753d30\n" ASK("1") "< 1=200"},
    {"P", "an update after its stream",
     ASK("1") "< 1=200\nPRIORITY_UPDATE 0 - #00000001 753d30\n< 1=200"},
    {"P", "an update that is no list",
     ASK_FOR("1", "/held") "PRIORITY_UPDATE 0 - #00000001 ff2c\n< "},
    {"P", "an update on a stream",
     OPEN("1") "PRIORITY_UPDATE 1 - #00000001 753d30\n" BREAKS("PROTOCOL")},
    {"P", "an update of stream 0", "PRIORITY_UPDATE 0 - #00000000 753d30\n" BREAKS("PROTOCOL")},
    {"P", "an update of an even stream",
     "PRIORITY_UPDATE 0 - #00000002 753d30\n" BREAKS("PROTOCOL")},
    {"P", "an update of three bytes", "PRIORITY_UPDATE 0 - #000000\n" BREAKS("FRAME_SIZE")},

    /* ---- 5: limits and windows ---- */
    {"5", "stream 101",
     "HEADERS 1*100 h =" ON("POST", "/body") "\n" ASK("201")
     "< 201!REFUSED_STREAM\nRST 1*2 - #00000008\n< 201!REFUSED_STREAM"},
    {"5", "stream 101, and our settings are acknowledged",
     "SETTINGS 0 e\nHEADERS 1*100 h =" ON("POST", "/body") "\n" ASK("201") BREAKS("PROTOCOL")},
    {"5", "WINDOW_UPDATE of 0 for the connection", "WINDOW 0 - #00000000\n" BREAKS("PROTOCOL")},
    {"5", "WINDOW_UPDATE of 0 for a stream", OPEN("1") "WINDOW 1 - #00000000\n" BREAKS("PROTOCOL")},
    {"5", "the window of the connection overflows",
     "WINDOW 0 - #7fffffff\n" BREAKS("FLOW_CONTROL")},
    {"5", "the window of a stream overflows", OPEN("1") "WINDOW 1 - #7fffffff\n< 1!FLOW_CONTROL"},
    {"5", "SETTINGS make the window of a stream overflow",
     OPEN("1") "WINDOW 1 - #7fff0000\nSETTINGS 0 - #000400020000\n< 1!FLOW_CONTROL"},
    {"5", "a window below zero",
     "SETTINGS 0 - #00040000000a\n" ASK_FOR("1", "/big")
     "< 1~200@10 ACKS=2\nSETTINGS 0 - #000400000000\nWINDOW 1 - #0000000a\n< 1~200@10 ACKS=3\n"
     "WINDOW 1 - #00000001\n< 1~200@11 ACKS=3\nSETTINGS 0 - #000400000064\n< 1~200@111 ACKS=4"},
    {"5", "a client that sends more than its window",
     "SETTINGS 0 e\nHEADERS 1*9 h =" ON("POST", "/held")
     "\nDATA 17 - %8193\n< 17!FLOW_CONTROL|W17>0"},

    /* ---- 6: HPACK ---- */
    {"6", "index 0", "HEADERS 1 eh #80\n" BREAKS("COMPRESSION")},
    {"6", "an index beyond the table", "HEADERS 1 eh #be\n" BREAKS("COMPRESSION")},
    {"6", "a name beyond the table", "HEADERS 1 eh #7f00 0161\n" BREAKS("COMPRESSION")},
    {"6", "an index that overflows", "HEADERS 1 eh #ffffffffffffffffff7f\n" BREAKS("COMPRESSION")},
    {"6", "a length that overflows", "HEADERS 1 eh #007fffffffffffffff7f\n" BREAKS("COMPRESSION")},
    {"6", "a string longer than its head", "HEADERS 1 eh #000578\n" BREAKS("COMPRESSION")},
    {"6", "an index that does not end", "HEADERS 1 eh #82ff\n" BREAKS("COMPRESSION")},
    {"6", "EOS in a Huffman code", "HEADERS 1 eh #0084ffffffff00\n" BREAKS("COMPRESSION")},
    {"6", "eight bits of padding", "HEADERS 1 eh #00821fff00\n" BREAKS("COMPRESSION")},
    {"6", "padding of zeros", "HEADERS 1 eh #00811800\n" BREAKS("COMPRESSION")},
    {"6", "a late update of the size", "HEADERS 1 eh #8220\n" BREAKS("COMPRESSION")},
    {"6", "an update that is too large", "HEADERS 1 eh #3fe1ff03\n" BREAKS("COMPRESSION")},
    {"6", "an update of the size",
     "HEADERS 1 eh #20828486\nHEADERS 3 eh #3fe11f82 84 86 41 06612e74657374\n"
     "< 1!PROTOCOL 3=200:/"},
    {"6", "Huffman codes", "HEADERS 1 eh #828684 41841ae92a13\n< 1=200:/"},
    {"6", "an evicted field",
     "HEADERS 1 eh #20 3f21 82 86 04022f61 40 0178 0179 40 0178 0179 be\n< 1!PROTOCOL"},
};

static const size_t http2_rule_count = sizeof(http2_rules) / sizeof(http2_rules[0]);

/* ---- 7 and 8: heads ---- */

static const http2_rule http2_head_rules[] = {
    {"7", "a request", ASK("1") "< 1=200:/p"},
    {"7", "host in place of :authority",
     ASK_WITH(":method GET|:scheme http|:path /p|host a.test") "< 1=200"},
    {"7", "both, equal", WITH("host a.test") "< 1=200"},
    {"7", "both, different", WITH("host b.test") "< 1=400"},
    {"7", "neither", ASK_WITH(":method GET|:scheme http|:path /p") IS_MALFORMED},
    {"7", "no method", ASK_WITH(":scheme http|:path /p|:authority a.test") IS_MALFORMED},
    {"7", "no scheme", ASK_WITH(":method GET|:path /p|:authority a.test") IS_MALFORMED},
    {"7", "no path", ASK_WITH(":method GET|:scheme http|:authority a.test") IS_MALFORMED},
    {"7", "nothing", "HEADERS 1 eh\n" IS_MALFORMED},
    {"7", "method twice", WITH(":method GET") IS_MALFORMED},
    {"7", "two methods", ASK_WITH(":method GET|" ON("GET", "/p")) IS_MALFORMED},
    {"7", "two paths", ASK_WITH(":path /q|" ON("GET", "/p")) IS_MALFORMED},
    {"7", "two schemes", ASK_WITH(":scheme http|" ON("GET", "/p")) IS_MALFORMED},
    {"7", "two authorities", ASK_WITH(":authority a.test|" ON("GET", "/p")) IS_MALFORMED},
    {"7", "an unknown pseudo-field", ASK_WITH(":color red|" ON("GET", "/p")) IS_MALFORMED},
    {"7", "a pseudo-field of an answer", ASK_WITH(":status 200|" ON("GET", "/p")) IS_MALFORMED},
    {"7", "a pseudo-field after a field",
     ASK_WITH(":method GET|:scheme http|x y|:path /p|:authority a.test") IS_MALFORMED},
    {"7", "a pseudo-field in trailers",
     OPEN("1") "DATA 1 - \"x\nHEADERS 1 eh =:path /p\n" IS_MALFORMED},
    {"7", "an empty path", ASK_WITH(ON("GET", "")) IS_MALFORMED},
    {"7", "a path without a slash", ASK_WITH(ON("GET", "p")) IS_MALFORMED},
    {"7", "a URL as path", ASK_WITH(ON("GET", "http://a.test/")) IS_MALFORMED},
    {"7", "a fragment", ASK_WITH(ON("GET", "/p#q")) "< 1=400"},
    {"7", "a control byte in the path", ASK_WITH(ON("GET", "/p\x01q")) IS_MALFORMED},
    {"7", "DEL in the path", ASK_WITH(ON("GET", "/p\x7fq")) IS_MALFORMED},
    {"7", "a blank in the path", ASK_WITH(ON("GET", "/p q")) IS_MALFORMED},
    {"7", "a tab in the path", ASK_WITH(ON("GET", "/p\tq")) IS_MALFORMED},
    {"7", "asterisk with GET", ASK_WITH(ON("GET", "*")) IS_MALFORMED},
    {"7", "asterisk with OPTIONS", ASK_WITH(ON("OPTIONS", "*")) "< 1=200"},
    {"7", "another scheme",
     ASK_WITH(":method GET|:scheme ftp|:path /p|:authority a.test") "< 1=400"},
    {"7", "https", ASK_WITH(":method GET|:scheme https|:path /p|:authority a.test") "< 1=200"},
    {"7", "a scheme in capitals",
     ASK_WITH(":method GET|:scheme HTTP|:path /p|:authority a.test") "< 1=400"},
    {"7", "userinfo", ASK_WITH(":method GET|:scheme http|:path /p|:authority u@a.test") "< 1=400"},
    {"7", "an empty authority",
     ASK_WITH(":method GET|:scheme http|:path /p|:authority") IS_MALFORMED},
    {"7", "a method that is no token", ASK_WITH(ON("G(T", "/p")) IS_MALFORMED},
    {"7", "CONNECT", ASK_WITH(":method CONNECT|:authority a.test:80") "< 1=501"},
    {"7", "CONNECT with a path", ASK_WITH(ON("CONNECT", "/p")) IS_MALFORMED},

    {"8", "a field", WITH("x-a b") "< 1=200"},
    {"8", "an empty value", WITH("x-a") "< 1=200"},
    {"8", "an empty name", WITH(" b") IS_MALFORMED},
    {"8", "a capital", WITH("X-a b") IS_MALFORMED},
    {"8", "a tab in a name", WITH("x\ta b") IS_MALFORMED},
    {"8", "a colon in a name", WITH("x:a b") IS_MALFORMED},
    {"8", "a byte above 127 in a name", WITH("x\xc3\xa4 b") IS_MALFORMED},
    {"8", "CR in a value", WITH("x b\rc") IS_MALFORMED},
    {"8", "LF in a value",
     "HEADERS 1 eh #828486 41 06612e74657374 00 0178 03620a63\n" IS_MALFORMED},
    {"8", "NUL in a value",
     "HEADERS 1 eh #828486 41 06612e74657374 00 0178 03620063\n" IS_MALFORMED},
    {"8", "a blank before a value", WITH("x  b") IS_MALFORMED},
    {"8", "a blank behind a value", WITH("x b ") IS_MALFORMED},
    {"8", "a tab before a value", WITH("x \tb") IS_MALFORMED},
    {"8", "a tab in a value", WITH("x b\tc") "< 1=200"},
    {"8", "connection", WITH("connection close") IS_MALFORMED},
    {"8", "keep-alive", WITH("keep-alive 3") IS_MALFORMED},
    {"8", "proxy-connection", WITH("proxy-connection close") IS_MALFORMED},
    {"8", "transfer-encoding", WITH("transfer-encoding chunked") IS_MALFORMED},
    {"8", "upgrade", WITH("upgrade websocket") IS_MALFORMED},
    {"8", "te: gzip", WITH("te gzip") IS_MALFORMED},
    {"8", "te: trailers", WITH("te trailers") "< 1=200"},
    {"8", "connection in trailers", OPEN("1") "HEADERS 1 eh =connection close\n" IS_MALFORMED},
    {"8", "a capital in trailers", OPEN("1") "HEADERS 1 eh =X y\n" IS_MALFORMED},
    {"8", "an underscore is dropped", WITH("x_a b") "< 1=200"},
    {"8", "proxy is dropped", WITH("proxy b") "< 1=200"},
    {"8", "a field twice", WITH("x a|x b") "< 1=200"},
    {"8", "host twice",
     ASK_WITH(":method GET|:scheme http|:path /p|host a.test|host a.test") "< 1!PROTOCOL|1=400"},
    {"8", "a malformed head, for the table of HPACK",
     ASK_WITH(":method GET|+:path /kept|X y")
     "HEADERS 3 eh =:method GET|:scheme http|*62|:authority a.test\n< 1!PROTOCOL 3=200:/kept"},
};

static const size_t http2_head_rule_count = sizeof(http2_head_rules) / sizeof(http2_head_rules[0]);

/* ---- 9 to 16: what comes of requests; those of TLS ---- */

static const http2_rule http2_request_rules[] = {
    {"9", "a head too large", WITH("x %4100") "< 1=431"},
    {"9", "32 bytes for each field", WITH("x %1980|y %1980") "< 1=431"},
    {"9", "too many fields",
     WITH("x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y|x y")
     "< 1=431"},
    {"9", "a target too long",
     "HEADERS 1 eh =:method GET|:scheme http|:authority a.test|:path /%600\n< 1=414"},
    {"9", "a head too large that goes on, for the table of HPACK",
     "HEADERS 1 e =:method GET|x %4100\nCONT 1 h =+:path /kept\n"
     "HEADERS 3 eh =:method GET|:scheme http|*62|:authority a.test\n"
     "< 1=431|1!PROTOCOL 3=200:/kept"},
    {"9", "a body that is promised too large", OPEN_WITH("content-length 300001") "< 1=413 1!NO"},
    {"9", "a body that becomes too large", OPEN("1") "DATA 1x19 - %16000\n< 1=413 1!NO"},
    {"9", "a head too large, and its body", OPEN_WITH("x %4100") "DATA 1 - \"x\n< 1=431 1!NO"},

    {"10", "content-length twice", WITH("content-length 0|content-length 0") IS_MALFORMED},
    {"10", "content-length without digits", WITH("content-length two") IS_MALFORMED},
    {"10", "content-length below zero", WITH("content-length -1") IS_MALFORMED},
    {"10", "content-length and no body", WITH("content-length 2") IS_MALFORMED},
    {"10", "a body too short", OPEN_WITH("content-length 3") "DATA 1 e \"ab\n" IS_MALFORMED},
    {"10", "a body too long", OPEN_WITH("content-length 3") "DATA 1 e \"abcd\n" IS_MALFORMED},
    {"10", "a body too short before trailers",
     OPEN_WITH("content-length 3") "DATA 1 - \"ab\nHEADERS 1 eh =x y\n" IS_MALFORMED},
    {"10", "a body as long as promised",
     OPEN_WITH("content-length 3") "DATA 1 - \"ab\nDATA 1 e \"c\n< 1=200:abc"},
    {"10", "a body beyond its length, later",
     OPEN_WITH("content-length 3") "DATA 1 - \"abc\n< \nDATA 1 e \"d\n" IS_MALFORMED},
    {"10", "the end of a body comes later",
     OPEN_WITH("content-length 3") "DATA 1 - \"abc\n< \nDATA 1 e\n< 1=200:abc"},
    {"10", "a body that is cut off", OPEN("1") "DATA 1 - \"ab\n< \nEOF\n< 1!CANCEL END"},
    {"10", "a body of known length that is cut off",
     OPEN_WITH("content-length 3") "DATA 1 - \"ab\n< \nEOF\n< 1!CANCEL END"},
    {"10", "a request, and then the client sends no more",
     ASK_FOR("1", "/p") "EOF\n< 1=200:/p END"},
    {"10", "a body of no length", OPEN("1") "DATA 1 - \"ab\nDATA 1 -\nDATA 1 e\n< 1=200:ab"},
    {"10", "HEAD", ASK_WITH(ON("HEAD", "/p")) "< 1=200@0"},
    {"10", "204", ASK_FOR("1", "/204") "< 1=204@0"},
    {"10", "304", ASK_FOR("1", "/304") "< 1=304@0"},
    {"10", "100-continue", OPEN_WITH("expect 100-continue") "< 1-100\nDATA 1 e \"ab\n< 1=200:ab"},
    {"10", "another expectation", WITH("expect wonders") "< 1=417"},
    {"10", "trailers", OPEN("1") "DATA 1 - \"ab\nHEADERS 1 eh =x y\n< 1=200:ab"},
    {"10", "trailers that do not end", OPEN("1") "DATA 1 - \"ab\nHEADERS 1 h =x y\n" IS_MALFORMED},
    {"10", "trailers, for the table of HPACK",
     OPEN("1") "HEADERS 1 eh =+x-mark y\nHEADERS 3 eh =" ON("GET", "/p") "|*62\n< 1=200 3=200"},

    {"11", "an answer before the body",
     "HEADERS 1 h =" ON("POST", "/early") "|expect 100-continue\n< 1=200:early 1!NO"},
    {"11", "fewer bytes than promised", ASK_FOR("1", "/short") "< 1~200@4 1!INTERNAL"},
    {"11", "more bytes than promised", ASK_FOR("1", "/long") "< 1~200@2 1!INTERNAL"},
    {"11", "a head of 70 KB", ASK_FOR("1", "/head") "< 1=200"},
    {"11", "a head of more than 1 MB", ASK_FOR("1", "/heads") "< 1!INTERNAL"},

    {"12", "RST_STREAM, and another stream",
     OPEN("1") OPEN("3") "RST 1 - #00000008\nDATA 3 e \"ab\n< 3=200:ab"},
    {"12", "RST_STREAM in the application",
     ASK_FOR("1", "/held") "RST 1 - #00000008\n" ASK("3") "< 3=200"},
    {"12", "GOAWAY", OPEN("1") "GOAWAY 0 - #00000000 00000000\nDATA 1 e \"ab\n< 1=200:ab END"},

    {"13", "a stop",
     OPEN("1") "< \nSTOP\n< GOAWAY=2147483647 PINGS=1\n" ASK("3")
     "< 3=200 GOAWAY=2147483647 PINGS=1\nPONG\n< 3=200 GOAWAY=3 PINGS=1\nDATA 1 e \"ab\n"
     "< 1=200:ab 3=200 GOAWAY=3 PINGS=1 END"},
    {"13", "a stop, and the PING is not answered",
     OPEN("1")
     "< \nSTOP\n< GOAWAY=2147483647 PINGS=1\nLATER 300\n< GOAWAY=1 PINGS=1\nDATA 1 e \"ab\n"
     "< 1=200:ab GOAWAY=1 PINGS=1 END"},
    {"13", "a stop of an idle connection",
     ASK("1")
     "< 1=200\nSTOP\n< 1=200 GOAWAY=2147483647 PINGS=1\nPONG\n< 1=200 GOAWAY=1 PINGS=1 END"},

    {"13", "a stop",
     OPEN("1") "< \nSTOP\n< GOAWAY=2147483647 PINGS=1\n" ASK("3")
     "< 3=200 GOAWAY=2147483647 PINGS=1\nPONG\n< 3=200 GOAWAY=3 PINGS=1\n"
     "DATA 1 e \"ab\n< 1=200:ab 3=200 GOAWAY=3 PINGS=1 END"},
    {"13", "a stop, and the PING is not answered",
     OPEN("1") "< \nSTOP\n< GOAWAY=2147483647 PINGS=1\nLATER 300\n< GOAWAY=1 PINGS=1\n"
     "DATA 1 e \"ab\n< 1=200:ab GOAWAY=1 PINGS=1 END"},
    {"13", "a stop of an idle connection",
     ASK("1") "< 1=200\nSTOP\n< 1=200 GOAWAY=2147483647 PINGS=1\nPONG\n"
     "< 1=200 GOAWAY=1 PINGS=1 END"},

    {"14", "another protocol", CONNECT_FOR("tcp") "< 1=501"},
    {"14", "a protocol without CONNECT",
     ASK_WITH(":protocol websocket|" ON("GET", "/p")) IS_MALFORMED},
    {"14", "another protocol, and WebSockets switched off",
     "OFF websocket\n" CONNECT_FOR("tcp") IS_MALFORMED},
    {"14", "websocket, switched off", "OFF websocket\n" CONNECT_FOR("websocket") IS_MALFORMED},
    {"14", "settings of the server, switched off", "OFF websocket\n< S3=100 S8=-1 ACKS=1"},
    {"14", "websocket of another version is for the application",
     ASK_WITH(":method CONNECT|:protocol websocket|:scheme http|:path /p|:authority a.test|"
              "sec-websocket-version 12") "< 1=200"},
    {"14", "websocket without a path",
     ASK_WITH(":method CONNECT|:protocol websocket|:authority a.test") IS_MALFORMED},

    {"15", "no head", "LATER 29000\n< \nLATER 1500\n< C!NO"},
    {"15", "a head that does not end", "HEADERS 1 e #82\n< \nLATER 29000\n< \nLATER 1500\n< C!NO"},
    {"15", "a body that does not come",
     OPEN("1") "DATA 1 - \"ab\n< \nLATER 31000\n< 1=408 1!NO PINGS=1"},
    {"15", "no stream", ASK("1") "< 1=200\nLATER 64000\n< 1=200\nLATER 2000\n< 1=200 C!NO"},
    {"15", "a PING prolongs nothing",
     ASK("1") "< 1=200\nLATER 64000\nPING 0 - #0102030405060708\n< 1=200 PONGS=1\nLATER 2000\n"
     "< 1=200 PONGS=1 C!NO"},
    {"15", "silent with a stream, and the client is there",
     ASK_FOR("1", "/held") "< \nLATER 31000\n< PINGS=1\nPONG\nLATER 31000\n< PINGS=2\nPONG\n"
     "LATER 29000\n< PINGS=2"},
    {"15", "silent with a stream, and it is not",
     ASK_FOR("1", "/held") "< \nLATER 31000\n< PINGS=1\nLATER 31000\n< PINGS=2\nLATER 31000\n"
     "< PINGS=2 C!NO"},
    {"15", "silent with a stream, and the client is there",
     ASK_FOR("1", "/held")
     "< \nLATER 31000\n< PINGS=1\nPONG\nLATER 31000\n< PINGS=2\nPONG\nLATER 29000\n< PINGS=2"},
    {"15", "silent with a stream, and it is not",
     ASK_FOR("1", "/held")
     "< \nLATER 31000\n< PINGS=1\nLATER 31000\n< PINGS=2\nLATER 31000\n< PINGS=2 C!NO"},

    {"16", "a stream with a body has a window", OPEN("1") "< W1>400000"},
    {"16", "the ninth has none",
     "HEADERS 1*9 h =" ON("POST", "/body") "\n"
     "< W1>400000 W3>300000 W5>200000 W7>150000 W9>100000 W11>50000 W13>20000 W15>4000 W17=0"},

    {"T7", "an authority of another certificate",
     ASK_WITH(":method GET|:scheme https|:path /p|:authority b.test") "< tls:1=421 plain:1=200"},
    {"T7", "an authority without a certificate",
     ASK_WITH(":method GET|:scheme https|:path /p|:authority c.test:443")
     "< tls:1=421 plain:1=200"},
    {"T7", "an address",
     ASK_WITH(":method GET|:scheme https|:path /p|:authority [::1]:443") "< tls:1=421 plain:1=200"},
    {"T7", "host",
     ASK_WITH(":method GET|:scheme https|:path /p|host b.test") "< tls:1=421 plain:1=200"},
    {"T7", "a name of a wildcard",
     ASK_WITH(":method GET|:scheme https|:path /p|:authority x.A.test.:8443") "< 1=200"},
};

static const size_t http2_request_rule_count =
    sizeof(http2_request_rules) / sizeof(http2_request_rules[0]);
/* clang-format on */

#endif
