# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Rows 14-22: Host, field lines, names that must not reach the environment, limits, PROXY protocol.
# RFC 9112 sections 3.2 and 5, RFC 9110 section 5, RFC 3875 for the names of the environment.

HttpRules.define do
  row 14, "Host"
  host = ->(value) { "GET / HTTP/1.1\r\nHost:#{value}\r\n\r\n" }
  refuse 400, "GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nX: y\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nhOST: b\r\n\r\n", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
         "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
  refuse 400, *["", " ", " u@a", " u:p@a", " a/b", " a/", " a,b", " a, a", " a b", " a\x01", " a\x7F", " a:x", " a:99999",
                " a:-1", " a:+80", " a:80x", " a:8 0", " a:80:80", " :80", " [::1", " [zz]", " ::1", " [::1]x",
                " [::1]:x", " a?b", " a#b", " a\\b", " <a>", " http://a", " a\tb", " \"a\"", " a%", " a\xFF", " []",
                " a:65536", " [::1]:99999", " a\0"].map(&host)
  accept host.call(" a:80"), "HTTP_HOST" => "a:80", server: "a", "SERVER_PORT" => "80"
  accept host.call("a"), "HTTP_HOST" => "a", server: "a"
  accept host.call("\ta.example.org \t"), "HTTP_HOST" => "a.example.org"
  accept host.call(" [::1]:8080"), "HTTP_HOST" => "[::1]:8080", "SERVER_PORT" => "8080"
  accept host.call(" 192.0.2.1"), "HTTP_HOST" => "192.0.2.1", server: "192.0.2.1"
  accept host.call(" a_b-c.d~"), "HTTP_HOST" => "a_b-c.d~"
  accept "GET / HTTP/1.1\r\nhOsT: a\r\n\r\n", "HTTP_HOST" => "a"
  accept "GET / HTTP/1.1\r\nX: y\r\nHost: a\r\n\r\n", "HTTP_HOST" => "a"
  accept "GET / HTTP/1.0\r\n\r\n", "HTTP_HOST" => nil, ends: :closed
  accept "GET / HTTP/1.0\r\nHost: a\r\n\r\n", "HTTP_HOST" => "a", ends: :closed

  row 15, "form of a field line"
  refuse 400, get("X : y\r\n"), get("X\t: y\r\n"), get("Content-Length : 0\r\n"), get("Host : b\r\n"),
         "GET / HTTP/1.1\r\n Host: a\r\n\r\n", "GET / HTTP/1.1\r\n\tHost: a\r\n\r\n",
         "GET / HTTP/1.1\r\n X: y\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n",
         get("X: y\r\n z\r\n"), get("X: y\r\n\tz\r\n"), get("X: y\r\n \r\n"), get("X:\r\n y\r\n"),
         "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", get("Transfer-Encoding:\r\n chunked\r\n"),
         get("X\r\n"), get("X y\r\n"), get(": y\r\n"), get(":\r\n"), get(" : y\r\n"), get("=\r\n"),
         get("GET / HTTP/1.1\r\n"), get("X: y\r\nnocolon\r\n")
  refuse 400, *["\t", "[", "]", "(", ")", "<", ">", "@", ",", ";", "\\", "\"", "/", "?", "=", "{", "}", "\0", "\x01", "\x7F",
                "\x85", "\xA0", "\xFF", " "].map { |byte| get("X#{byte}Y: z\r\n") }
  accept get("X!\#$%&'*+-.^`|~9: y\r\n"), "HTTP_HOST" => "a"
  accept get("X:y\r\n"), "HTTP_X" => "y"
  accept get("X: a:b: c\r\n"), "HTTP_X" => "a:b: c"
  accept get("X:\r\n"), "HTTP_X" => ""
  accept get("X:  \t \r\n"), "HTTP_X" => ""

  row 16, "bytes of a value"
  refuse 400, *[0x00, 0x01, 0x02, 0x07, 0x08, 0x0B, 0x0C, 0x0E, 0x1B, 0x1F, 0x7F].map { |byte| get("X: y#{byte.chr}z\r\n") },
         get("X: \0\r\n"), get("X: y\0\r\n"), get("X: y\rz\r\n"), get("X:\0y\r\n")
  accept get("X: a\tb\r\n"), "HTTP_X" => "a\tb"
  accept get("X: \x80\xFF\xC3\xA9\r\n"), "HTTP_X" => "\x80\xFF\xC3\xA9"
  accept get("X: \"<>\\^`{|}#,;=\"\r\n"), "HTTP_X" => "\"<>\\^`{|}#,;=\""

  row 17, "optional whitespace is SP and HTAB only"
  accept get("X: \t y \t\r\n"), "HTTP_X" => "y"
  accept get("X: \xA0y\xA0\r\n"), "HTTP_X" => "\xA0y\xA0"
  accept get("X: \x85y\x85\r\n"), "HTTP_X" => "\x85y\x85"
  refuse 400, get("X: \vy\r\n"), get("X: y\v\r\n"), get("X: \fy\r\n"), get("X: y\f\r\n")
  refuse 400, get("Content-Length: \xA00\r\n"), get("Content-Length: 0\x85\r\n"), get("Content-Length: 0\v\r\n"),
         get("Host:\xA0b\r\n")
  accept get("Content-Length: \t0 \t\r\n"), path: "/"

  row 18, "underscore in a name"
  accept get("X_Forwarded_For: 6.6.6.6\r\n"), "HTTP_X_FORWARDED_FOR" => nil
  accept get("X-Forwarded-For: 1.1.1.1\r\nX_Forwarded_For: 6.6.6.6\r\n"), "HTTP_X_FORWARDED_FOR" => "1.1.1.1"
  accept get("X_Forwarded_For: 6.6.6.6\r\nX-Forwarded-For: 1.1.1.1\r\n"), "HTTP_X_FORWARDED_FOR" => "1.1.1.1"
  accept get("X_Forwarded-For: 6.6.6.6\r\n"), "HTTP_X_FORWARDED_FOR" => nil
  accept get("_: 1\r\n_x: 1\r\nx_: 1\r\n"), "HTTP__" => nil, "HTTP__X" => nil, "HTTP_X_" => nil
  accept get("Content_Length: 5\r\n"), "CONTENT_LENGTH" => nil, "HTTP_CONTENT_LENGTH" => nil, body: ""
  accept get("Transfer_Encoding: chunked\r\n"), "HTTP_TRANSFER_ENCODING" => nil, body: ""
  accept get("Content_Type: evil\r\nContent-Type: good\r\n"), "CONTENT_TYPE" => "good", "HTTP_CONTENT_TYPE" => nil
  accept get("Host_: b\r\n"), "HTTP_HOST" => "a"
  answers get("Content_Length: 5\r\n") + "hello\r\n\r\n", { body: "" }, 400, ends: :closed
  answers get("Transfer_Encoding: chunked\r\n") + "0\r\n\r\n", { body: "" }, 400, ends: :closed
  refuse 400, "GET / HTTP/1.1\r\nHost_: a\r\n\r\n"
  with allow_underscore_headers: true do
    accept get("X_Under: 1\r\n"), "HTTP_X_UNDER" => "1"
    accept get("X_A: under\r\nX-A: dash\r\n"), "HTTP_X_A" => "dash"
    accept get("X-A: dash\r\nX_A: under\r\n"), "HTTP_X_A" => "dash"
    accept get("X_A: 1\r\nX-A: 2\r\nX_A: 3\r\nX-A: 4\r\n"), "HTTP_X_A" => "2, 4"
    accept get("Content_Length: 5\r\n"), "CONTENT_LENGTH" => nil, body: ""
    accept get("Content_Type: evil\r\n"), "CONTENT_TYPE" => nil
    accept get("Transfer_Encoding: chunked\r\n"), body: ""
    answers get("Content_Length: 5\r\n") + "hello\r\n\r\n", { body: "" }, 400, ends: :closed
    accept get("Host_: b\r\nHO_ST: c\r\n"), "HTTP_HOST" => "a"
  end

  row 19, "names the server keeps for itself"
  accept get("Proxy: http://evil/\r\n"), "HTTP_PROXY" => nil
  accept get("PROXY: http://evil/\r\n"), "HTTP_PROXY" => nil
  accept get("Content-Type: text/plain\r\n"), "CONTENT_TYPE" => "text/plain", "HTTP_CONTENT_TYPE" => nil
  accept post("Content-Length: 2\r\n", "ab"), "CONTENT_LENGTH" => "2", "HTTP_CONTENT_LENGTH" => nil, body: "ab"
  accept get("Server-Name: x\r\nServer-Port: 1\r\nServer-Protocol: y\r\n"), server: "a", protocol: "HTTP/1.1"
  accept get("Request-Method: PUT\r\nPath-Info: /x\r\nScript-Name: /y\r\nQuery-String: z\r\n"),
         method: "GET", path: "/", query: "", "SCRIPT_NAME" => ""
  accept get("Remote-Addr: 6.6.6.6\r\n"), "REMOTE_ADDR" => "127.0.0.1", "HTTP_REMOTE_ADDR" => "6.6.6.6", tcp_only: true
  accept get("rack.url_scheme: evil\r\nRack.Url-Scheme: evil\r\n"), scheme: "http"
  accept get("X-Forwarded-Proto: https\r\nX-Forwarded-For: 6.6.6.6\r\nForwarded: for=6.6.6.6;proto=https\r\n"),
         scheme: "http", "REMOTE_ADDR" => "127.0.0.1", tcp_only: true

  row 20, "repeated fields"
  accept get("X: a\r\nX: b\r\n"), "HTTP_X" => "a, b"
  accept get("X: a\r\nY: 1\r\nx: b\r\nX: c\r\n"), "HTTP_X" => "a, b, c", "HTTP_Y" => "1"
  accept get("Cookie: a=1\r\nCookie: b=2\r\n"), "HTTP_COOKIE" => "a=1; b=2"
  accept get("cookie: a=1\r\nCOOKIE: b=2\r\ncookie: c=3\r\n"), "HTTP_COOKIE" => "a=1; b=2; c=3"
  accept get("Accept: a\r\nAccept: b\r\n"), "HTTP_ACCEPT" => "a, b"
  accept get("X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 2.2.2.2\r\n"), "HTTP_X_FORWARDED_FOR" => "1.1.1.1, 2.2.2.2"

  row 21, "too much head"
  accept get("#{"n" * 256}: y\r\n"), "HTTP_#{"N" * 256}" => "y"
  refuse 431, get("#{"n" * 257}: y\r\n"), get("#{"n" * 5000}: y\r\n"), "GET / HTTP/1.1\r\nHost: a\r\n#{"n" * 5000}"
  accept get("X:#{"v" * 81_920}\r\n"), "HTTP_X" => "v" * 81_920
  refuse 431, get("X: #{"v" * 81_920}\r\n"), "GET / HTTP/1.1\r\nHost: a\r\nX: #{"v" * 200_000}"
  accept get((1..127).map { |i| "X-#{i}: #{i}\r\n" }.join), "HTTP_X_127" => "127"
  refuse 431, get((1..128).map { |i| "X-#{i}: #{i}\r\n" }.join), get("X: y\r\n" * 128), get("X_Y: y\r\n" * 2000)
  refuse 431, "GET / HTTP/1.1\r\nHost: a\r\n#{(1..200).map { |i| "X-#{i}: #{i}\r\n" }.join}"
  refuse 431, get((1..3).map { |i| "X-#{i}: #{"v" * 50_000}\r\n" }.join)
  with max_head_bytes: 1024, max_header_count: 8, max_header_name_bytes: 16, max_header_value_bytes: 256 do
    accept get((1..7).map { |i| "X-#{i}: #{i}\r\n" }.join), "HTTP_X_7" => "7"
    refuse 431, get((1..8).map { |i| "X-#{i}: #{i}\r\n" }.join), "GET / HTTP/1.1\r\nHost: a\r\n#{"X: y\r\n" * 20}"
    accept get("#{"n" * 16}: y\r\n"), "HTTP_#{"N" * 16}" => "y"
    refuse 431, get("#{"n" * 17}: y\r\n"), "GET / HTTP/1.1\r\nHost: a\r\n#{"n" * 40}"
    accept get("X:#{"v" * 256}\r\n"), "HTTP_X" => "v" * 256
    refuse 431, get("X: #{"v" * 256}\r\n"), "GET / HTTP/1.1\r\nHost: a\r\nX: #{"v" * 600}"
    accept get((1..4).map { |i| "X-#{i}: #{"v" * 200}\r\n" }.join), "HTTP_X_4" => "v" * 200
    refuse 431, get((1..5).map { |i| "X-#{i}: #{"v" * 200}\r\n" }.join), "GET / HTTP/1.1\r\nHost: a\r\n#{(1..6).map { |i| "X-#{i}: #{"v" * 200}\r\n" }.join}"
  end

  row 22, "PROXY protocol"
  text = "PROXY TCP4 192.0.2.1 192.0.2.2 1234 80\r\n"
  signature = "\r\n\r\n\0\r\nQUIT\n"
  binary = "#{signature}\x21\x11\0\x0C\xC0\0\2\1\xC0\0\2\2\x04\xD2\0\x50".b
  refuse [400, :none], text + get, "PROXY UNKNOWN\r\n#{get}", binary + get, tcp_only: true
  with proxy_protocol_from: ["192.0.2.77"] do
    refuse [400, :none], text + get, binary + get, tcp_only: true
    accept get, "REMOTE_ADDR" => "127.0.0.1", tcp_only: true
  end
  with proxy_protocol_from: ["127.0.0.0/8"] do
    accept text + get, "REMOTE_ADDR" => "192.0.2.1", path: "/", tcp_only: true
    accept "PROXY TCP6 2001:db8::1 2001:db8::2 1234 80\r\n#{get}", "REMOTE_ADDR" => "2001:db8::1", tcp_only: true
    accept "PROXY UNKNOWN\r\n#{get}", "REMOTE_ADDR" => "127.0.0.1", tcp_only: true
    accept "PROXY UNKNOWN 1 2 3 4\r\n#{get}", "REMOTE_ADDR" => "127.0.0.1", tcp_only: true
    answers text + get(path: "/1") + get(path: "/2"), { path: "/1", "REMOTE_ADDR" => "192.0.2.1" },
            { path: "/2", "REMOTE_ADDR" => "192.0.2.1" }, tcp_only: true
    accept text + get("X-Forwarded-For: 6.6.6.6\r\n"), "REMOTE_ADDR" => "192.0.2.1", tcp_only: true
    accept binary + get, "REMOTE_ADDR" => "192.0.2.1", path: "/", tcp_only: true
    accept "#{signature}\x21\x21\0\x24".b + "\x20\x01\x0D\xB8#{"\0" * 11}\1".b + "\x20\x01\x0D\xB8#{"\0" * 11}\2".b + "\x04\xD2\0\x50" + get,
           "REMOTE_ADDR" => "2001:db8::1", tcp_only: true
    accept "#{signature}\x20\0\0\0#{get}", "REMOTE_ADDR" => "127.0.0.1", tcp_only: true
    accept "#{signature}\x21\x11\0\x10\xC0\0\2\1\xC0\0\2\2\x04\xD2\0\x50\x04\0\1\0".b + get, "REMOTE_ADDR" => "192.0.2.1", tcp_only: true
    bad = ["PROXY\r\n", "PROXY TCP4\r\n", "PROXY TCP5 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1\r\n",
           "PROXY TCP4 192.0.2.1 192.0.2.2 1 99999\r\n", "PROXY TCP4 192.0.2.999 192.0.2.2 1 2\r\n",
           "PROXY TCP4 2001:db8::1 192.0.2.2 1 2\r\n", "PROXY  TCP4 192.0.2.1 192.0.2.2 1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2\n",
           "PROXY TCP4 192.0.2.1 192.0.2.2 -1 2\r\n", "PROXY TCP4 192.0.2.1 192.0.2.2 1 2 \r\n", "proxy tcp4 192.0.2.1 192.0.2.2 1 2\r\n",
           "PROXY UNKNOWN #{"x" * 100}\r\n", "PROXY UNKNOWN #{"x" * 1000}", "PROXY TCP4 #{"1" * 200}",
           "#{signature}\x31\x11\0\x0C\xC0\0\2\1\xC0\0\2\2\x04\xD2\0\x50", "#{signature}\x22\x11\0\x0C\xC0\0\2\1\xC0\0\2\2\x04\xD2\0\x50",
           "#{signature}\x21\x11\0\4\xC0\0\2\1", "\r\n\r\n\0\r\nQUIX\n\x21\x11\0\0"]
    refuse [400, :none], *bad.map { |header| header.b + get }, front: false, tcp_only: true
    refuse [400, :none], text + text + get, binary + text + get, text + binary + get, front: false, tcp_only: true
    answers text + get(path: "/1") + text + get(path: "/2"), { path: "/1", "REMOTE_ADDR" => "192.0.2.1" }, 400, ends: :closed, tcp_only: true
  end
end
