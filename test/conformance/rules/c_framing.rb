# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Rows 23-35: where a message ends, what follows it, and what the connection does then. RFC 9112
# sections 6, 7 and 9, RFC 9110 sections 7.8, 8.6, 9 and 10.1.1.

HttpRules.define do
  row 23, "Content-Length"
  lengths = ["+5", "-1", "-0", "0x5", "0o5", "0b1", "1_0", "1 0", "1Z", "5,", ",5", "", " ", "5.0", "5e0", "five", "\"5\"",
             "5;", "0\0", "5\t5", "\x35\x80", "--5", "5-", "0x", "NaN", "5,6", "5, 6", "1" * 200, "9223372036854775808",
             "18446744073709551616", "18446744073709551621", "99999999999999999999"]
  refuse 400, *lengths.map { |value| post("Content-Length: #{value}\r\n", "hello") }
  refuse 413, post("Content-Length: 1073741825\r\n"), post("Content-Length: 9223372036854775807\r\n"),
         post("Content-Length: 1073741825\r\n", "hello")
  accept post("Content-Length: 5\r\n", "hello"), body: "hello", "CONTENT_LENGTH" => "5"
  accept post("Content-Length:5\r\n", "hello"), body: "hello"
  accept post("content-length: 5 \r\n", "hello"), body: "hello"
  accept post("Content-Length: 0\r\n"), body: ""
  accept post("X: y\r\n"), body: ""
  accept post("Content-Length: 00\r\n"), body: ""
  with max_body_bytes: 100 do
    accept post("Content-Length: 100\r\n", "b" * 100), body: "b" * 100
    refuse 413, post("Content-Length: 101\r\n"), post("Content-Length: 101\r\n", "b" * 101), post("Content-Length: 9999999999\r\n")
    refuse 413, chunked("65\r\n#{"b" * 101}\r\n0\r\n\r\n"), chunked("65\r\n"), chunked("40\r\n#{"b" * 64}\r\n40\r\n")
    refuse 413, chunked("1\r\nb\r\n" * 101), chunked("7FFFFFFF\r\n")
    accept chunked("40\r\n#{"b" * 64}\r\n24\r\n#{"c" * 36}\r\n0\r\n\r\n"), body: ("b" * 64) + ("c" * 36)
  end

  row 24, "repeated Content-Length"
  refuse 400,
         post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"), post("Content-Length: 6\r\nContent-Length: 5\r\n", "hello!"),
         post("Content-Length: 5\r\nX: y\r\ncontent-length: 0\r\n", "hello"), post("Content-Length: 0\r\nContent-Length: 5\r\n", "hello"),
         post("Content-Length: 5, 5\r\n", "hello"), post("Content-Length: 5,5\r\n", "hello"), post("Content-Length: 5, 0\r\n", "hello"),
         post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), post("Content-Length: 5\r\nContent-Length:\r\n", "hello"),
         post("Content-Length: 5\r\nContent-Length: x\r\n", "hello"), post("Content-Length: 5\r\nContent-Length: 05\r\nContent-Length: 6\r\n", "hello"),
         "POST / HTTP/1.0\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"
  accept post("Content-Length: 010\r\n", "0123456789"), body: "0123456789"
  accept post("Content-Length: 05\r\n", "hello"), body: "hello"
  with lenient_duplicate_length: true do
    accept post("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"), body: "hello"
    refuse 400, post("Content-Length: 5\r\nContent-Length: 6\r\n", "hello!"), post("Content-Length: 5\r\nContent-Length: 5\r\nContent-Length: 4\r\n", "hello"),
           post("Content-Length: 5, 6\r\n", "hello"), post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n", "hello")
  end

  # The server may give a decoded body its length, as in the algorithm of RFC 9112 section 7.1.3.
  row 25, "Transfer-Encoding"
  last = "0\r\n\r\n"
  refuse 400,
         post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", last), post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", last),
         post("Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", last), post("Transfer-Encoding: chunked\r\nX: y\r\nContent-Length: 0\r\n", last),
         post("Content-Length: 5\r\nTransfer-Encoding: CHUNKED\r\n", last), get("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + last,
         "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n#{last}", "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n#{last}",
         post("Transfer-Encoding : chunked\r\n", last), post("Transfer-Encoding\t: chunked\r\n", last), post(" Transfer-Encoding: chunked\r\n", last),
         post("X: y\r\n Transfer-Encoding: chunked\r\n", last), post("Transfer-Encoding\xA0: chunked\r\n", last),
         post("X: y\nTransfer-Encoding: chunked\r\n", last), post("X: y\rTransfer-Encoding: chunked\r\n", last),
         post("\0Transfer-Encoding: chunked\r\n", last), post("Transfer-Encoding:\0chunked\r\n", last)
  codings = ["xchunked", "identity", "chunked, identity", "identity, chunked", "gzip", "chunked, gzip", "chunked, chunked", "chunked,chunked",
             ",chunked", "chunked,", ", chunked", "chunked ,", "chunked;q=1", "chunked; q=1", "\"chunked\"", "'chunked'", "chunked\v", "chunked\f",
             "\vchunked", "chunked\xA0", "\xA0chunked", "chunked\x85", "chunked\0", "chunked chunked", "chunk", "chunkedd", "c hunked", "",
             "chunked\tchunked", "[chunked]", "x", "cow", "compress", "deflate", "trailers", "\x00", "chunked\x7F", "\xEF\xBB\xBFchunked"]
  refuse [400, 501], *codings.map { |coding| post("Transfer-Encoding: #{coding}\r\n", last) }
  refuse 501, post("Transfer-Encoding: gzip, chunked\r\n", last), post("Transfer-Encoding: deflate, chunked\r\n", last)
  refuse [400, 501], post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", last), post("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", last),
         post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", last), post("Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n", last),
         post("Transfer-Encoding: gzip\r\nContent-Length: 5\r\n", "hello"), post("Transfer-Encoding: identity\r\nContent-Length: 5\r\n", "hello"),
         post("Transfer-Encoding:\r\nTransfer-Encoding: chunked\r\n", last), post("Transfer-Encoding: \r\nContent-Length: 5\r\n", "hello"),
         "POST / HTTP/1.0\r\nTransfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello"
  ["chunked", "CHUNKED", "Chunked", "cHuNkEd", "\tchunked", "chunked \t", "  chunked"].each do |coding|
    accept post("Transfer-Encoding:#{coding}\r\n", "5\r\nhello\r\n0\r\n\r\n"), body: "hello", "CONTENT_LENGTH" => [nil, "5"]
  end
  accept post("tRANSFER-eNCODING: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), body: "hello"
  accept post("TE: trailers, gzip\r\nContent-Length: 5\r\n", "hello"), body: "hello"

  row 26, "chunk size"
  ["0x5", "+5", "-5", "5_0", " 5", "5 ", "\t5", "5\t", "g", "", "00000000000000005", "0" * 100, "x5", "5h", "5.", "5,", "0x", "-0", "+0", "\x805",
   "5\0", "5\x0B", "\u0665", "\"5\"", "5 5", "#", "-1", "0X5", "1_"].each do |size|
    refuse 400, chunked("#{size}\r\nhello\r\n0\r\n\r\n")
  end
  sizes = ["FFFFFFFFFFFFFFFF", "10000000000000005", "8000000000000000", "7FFFFFFFFFFFFFFF", "FFFFFFFFFFFFFFFB", "100000000000000000000005", "fffffffffffffffff"]
  refuse [400, 413], *sizes.map { |size| chunked("#{size}\r\nhello\r\n0\r\n\r\n") }
  refuse 400, chunked("5\r\nhello\r\n \r\n\r\n"), chunked("5\r\nhello\r\n\r\n\r\n"), chunked("5\r\nhello\r\n0 \r\n\r\n"), chunked("5\r\nhello\r\n-0\r\n\r\n"),
         chunked("5\r\nhello\r\n0x0\r\n\r\n"), chunked("\r\n5\r\nhello\r\n0\r\n\r\n"), chunked("zz\r\n")
  accept chunked("5\r\nhello\r\n0\r\n\r\n"), body: "hello"
  accept chunked("0\r\n\r\n"), body: ""
  accept chunked("a\r\n0123456789\r\n0\r\n\r\n"), body: "0123456789"
  accept chunked("A\r\n0123456789\r\n00\r\n\r\n"), body: "0123456789"
  accept chunked("0000000000000005\r\nhello\r\n0000000000000000\r\n\r\n"), body: "hello"
  accept chunked("1\r\na\r\n2\r\nbc\r\n3\r\ndef\r\n0\r\n\r\n"), body: "abcdef"
  accept chunked("4\r\n\r\n\r\n\r\n0\r\n\r\n"), body: "\r\n\r\n"
  accept chunked("5\r\n0\r\n\r\n\r\n0\r\n\r\n"), body: "0\r\n\r\n"
  accept chunked("400\r\n#{"k" * 1024}\r\n0\r\n\r\n"), body: "k" * 1024
  accept chunked("1\r\na\r\n" * 300 + "0\r\n\r\n"), body: "a" * 300

  row 27, "ends of chunk lines and data"
  refuse 400, *["5\nhello\r\n0\r\n\r\n", "5\rhello\r\n0\r\n\r\n", "5\rX\nhello\r\n0\r\n\r\n", "5\r\nhello\n0\r\n\r\n", "5\r\nhello\r0\r\n\r\n", "5\r\nhelloX\r\n0\r\n\r\n",
                "5\r\nhelloXX0\r\n\r\n", "5\r\nhello\rX0\r\n\r\n", "5\r\nhello0\r\n\r\n", "4\r\nhello\r\n0\r\n\r\n", "6\r\nhello\r\n0\r\n\r\n", "5\r\nhello\r\n0\n\r\n",
                "5\r\nhello\r\n0\r\n\n", "5\r\nhello\r\n0\r\r\n", "5\r\nhello\r\n0\rX\r\n\r\n", "5\r\nhello\r\n0\r\n\rX", "5\r\nhello\r\n0\n\n", "5\n\nhello\n0\n\n",
                "5\r\n\r\nhello\r\n0\r\n\r\n", "5\r\nhello\n\r0\r\n\r\n", "5\r\nhello\r\n\n0\r\n\r\n", "5\r\r\nhello\r\n0\r\n\r\n", "5;a\nhello\r\n0\r\n\r\n",
                "0\r\nXX\r\n\r\n", "0\r\n\0"].map { |body| chunked(body) }
  accept chunked("0\r\nXX: y\r\n\r\n"), body: "", "HTTP_XX" => nil
  answers chunked("5\r\nhello\r\n0\r\n\r\nXX"), { body: "hello" }, ends: :any, half_close: true

  row 28, "chunk extensions"
  refuse 400, *["5;\r\nhello", "5;;a\r\nhello", "5; \r\nhello", "5;a\0b\r\nhello", "5;a=\x01\r\nhello", "5;a\nb\r\nhello", "5;a\rb\r\nhello", "5;a\x7F\r\nhello",
                "5;a=\"b\r\nhello", "5;=\r\nhello", "5;=b\r\nhello", "5 ;a=b\r\nhello", "5;\0\r\nhello", "5a;\r\nhello", "5;a=b\v\r\nhello"].map { |chunk| chunked("#{chunk}\r\n0\r\n\r\n") }
  refuse 400, chunked("5\r\nhello\r\n0;\r\n\r\n"), chunked("5\r\nhello\r\n0;a\n\r\n"), chunked("5\r\nhello\r\n0;\x01\r\n\r\n")
  accept chunked("5;a\r\nhello\r\n0\r\n\r\n"), body: "hello"
  accept chunked("5;a=b\r\nhello\r\n0;last=1\r\n\r\n"), body: "hello"
  accept chunked("5;a=\"b c;d\"\r\nhello\r\n0\r\n\r\n"), body: "hello"
  accept chunked("5;a=b;c=d;e\r\nhello\r\n0\r\n\r\n"), body: "hello"
  refuse [400, 413, 431], chunked("5;a=#{"b" * 5000}\r\nhello\r\n0\r\n\r\n"), chunked("5;a=#{"b" * 200_000}"), chunked("1;a=#{"b" * 3000}\r\nx\r\n" * 8 + "0\r\n\r\n"),
         chunked("5#{";a=b" * 1100}\r\nhello\r\n0\r\n\r\n")
  # The framing is more than half a megabyte, and five times what it frames. The first string goes on for more than the
  # server reads behind its refusal.
  refuse [400, 413], chunked("1\r\nx\r\n" * 150_000), front: false, ends: :dropped
  refuse [400, 413], chunked("1\r\nx\r\n" * 106_000), front: false
  with max_chunk_line_bytes: 64, max_chunk_extension_bytes: 100 do
    accept chunked("5;a=#{"b" * 40}\r\nhello\r\n0\r\n\r\n"), body: "hello"
    refuse [400, 413, 431], chunked("5;a=#{"b" * 80}\r\nhello\r\n0\r\n\r\n"), chunked("5;a=#{"b" * 80}"), chunked("1;a=#{"b" * 40}\r\nx\r\n" * 4 + "0\r\n\r\n"), chunked("0" * 80)
  end

  row 29, "trailers"
  end_of = ->(trailers) { chunked("5\r\nhello\r\n0\r\n#{trailers}\r\n") }
  accept end_of.call("X: y\r\n"), body: "hello", "HTTP_X" => nil
  accept end_of.call("X: y\r\nZ: w\r\n"), body: "hello", "HTTP_X" => nil, "HTTP_Z" => nil
  accept end_of.call("Content-Length: 7\r\n"), body: "hello", "CONTENT_LENGTH" => [nil, "5"], "HTTP_CONTENT_LENGTH" => nil
  accept end_of.call("Transfer-Encoding: gzip\r\n"), body: "hello"
  accept end_of.call("Host: b\r\n"), body: "hello", "HTTP_HOST" => "a", server: "a"
  accept end_of.call("Authorization: Basic eA==\r\n"), body: "hello", "HTTP_AUTHORIZATION" => nil
  accept end_of.call("Content-Type: text/evil\r\n"), body: "hello", "CONTENT_TYPE" => nil
  accept chunked("5\r\nhello\r\n0\r\nX: trailer\r\n\r\n", "X: head\r\nTrailer: X\r\n"), "HTTP_X" => "head"
  accept chunked("0\r\nConnection: close\r\n\r\n"), body: ""
  refuse 400, *["X\r\n", "X : y\r\n", " X: y\r\n", "\tX: y\r\n", "X: y\r\n z\r\n", "X: y\n", "X: \0\r\n", "X: a\rb\r\n", "X: \x01\r\n", ": y\r\n", "X[: y\r\n", "X: \x7F\r\n",
                "X\xA0: y\r\n", "GET /hidden HTTP/1.1\r\n", "X: y\r\n\0"].map(&end_of)
  refuse [400, 413, 431], end_of.call("X: #{"v" * 17_000}\r\n"), end_of.call("X: #{"v" * 1000}\r\n" * 20), end_of.call("#{"n" * 300}: y\r\n"), end_of.call("X: y\r\n" * 200),
         chunked("0\r\nX: #{"v" * 200_000}")
  with max_trailer_bytes: 256 do
    accept end_of.call("X: #{"v" * 200}\r\n"), body: "hello"
    refuse [400, 413, 431], end_of.call("X: #{"v" * 300}\r\n"), end_of.call("X: y\r\n" * 60), chunked("0\r\nX: #{"v" * 400}")
  end

  row 30, "end of the stream inside a body"
  cut_short = [post("Content-Length: 10\r\n", "hello"), post("Content-Length: 10\r\n"), post("Content-Length: 1\r\n"), chunked("5\r\nhel"), chunked("5\r\nhello\r\n"),
               chunked("5\r\nhello\r\n0\r\n"), chunked("5"), chunked(""), chunked("5\r\nhello\r\n0\r\nX: y\r\n"), chunked("5\r\nhello"), chunked("5\r\nhello\r")]
  refuse [400, 408, 500, :none], *cut_short, half_close: true
  refuse [400, 408, :none], "GET", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: a\r\n", "GET / HTTP/1.1\r\nHost: a\r\nContent-Le", half_close: true

  row 31, "bodies of GET, HEAD, DELETE, OPTIONS; unread bodies"
  %w[GET DELETE OPTIONS PUT PATCH PROPFIND get].each do |method|
    accept "#{method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", method: method, body: "hello"
    accept "#{method} / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", method: method, body: "hello"
  end
  answers "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello#{get(path: "/2")}", { head: true }, { path: "/2" }
  answers "HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n#{get(path: "/2")}", { head: true }, { path: "/2" }
  answers post("Content-Length: 5\r\n", "hello", path: "/unread"), 200
  answers chunked("5\r\nhello\r\n0\r\n\r\n", path: "/unread"), 200
  answers post("Content-Length: 37\r\n", "GET /hidden HTTP/1.1\r\nHost: hidden\r\n\r\n"[0, 37], path: "/unread") + get(path: "/2"), 200, { path: "/2" }
  answers post("Content-Length: 300000\r\n", "u" * 300_000, path: "/unread"), 200, ends: :any

  row 32, "pipelining"
  answers get(path: "/1") + get(path: "/2") + get(path: "/3"), { path: "/1" }, { path: "/2" }, { path: "/3" }
  answers (1..40).map { |i| get(path: "/#{i}") }.join, *(1..40).map { |i| { path: "/#{i}" } }
  answers get(path: "/1") + post("Content-Length: 3\r\n", "abc", path: "/2") + get(path: "/3"), { path: "/1" }, { path: "/2", body: "abc" }, { path: "/3" }
  answers chunked("5\r\nhello\r\n0\r\n\r\n", path: "/1") + get(path: "/2"), { path: "/1", body: "hello" }, { path: "/2" }
  answers chunked("0\r\nX: y\r\n\r\n", path: "/1") + chunked("1\r\nz\r\n0\r\n\r\n", path: "/2"), { path: "/1", body: "" }, { path: "/2", body: "z" }
  answers post("Content-Length: 0\r\n", path: "/1") + get(path: "/2"), { path: "/1" }, { path: "/2" }
  answers "HEAD /1 HTTP/1.1\r\nHost: a\r\n\r\n" + get(path: "/2"), { head: true }, { path: "/2" }
  answers get(path: "/204") + get(path: "/304") + get(path: "/3"), 204, 304, { path: "/3" }
  answers get(path: "/raise") + get(path: "/2"), 500, { path: "/2" }, ends: :any
  answers get(path: "/parts") + get(path: "/2"), 200, { path: "/2" }
  answers get("Connection: close\r\n", path: "/1") + get(path: "/2"), { path: "/1" }, ends: :closed
  answers get("Connection: close\r\n", path: "/1") + "\0garbage", { path: "/1" }, ends: :closed
  answers "GET /1 HTTP/1.0\r\n\r\n" + get(path: "/2"), { path: "/1" }, ends: :closed
  answers get(path: "/1") + get(path: "/2") + "\0\1\2", { path: "/1" }, { path: "/2" }, 400, ends: :closed
  answers post("Content-Length: 5\r\n", "hello", path: "/1") + "xx yy\r\n\r\n", { path: "/1" }, 400, ends: :closed
  answers get(path: "/1") + "GET /2 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + get(path: "/3"), { path: "/1" }, 400, ends: :closed
  answers post("Content-Length: 4\r\n", "helloGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n", path: "/1"), { path: "/1", body: "hell" }, { path: "/hidden", method: "oGET" }
  answers chunked("5\r\nhello\r\n0\r\n\r\n", path: "/1") + "0\r\n\r\n", { path: "/1" }, 400, ends: :closed
  with max_keep_alive: 2 do
    answers get(path: "/1") + get(path: "/2") + get(path: "/3"), { path: "/1" }, { path: "/2" }, ends: :closed
  end
  with keep_alive: false do
    answers get(path: "/1") + get(path: "/2"), { path: "/1" }, ends: :closed
  end

  row 33, "Expect"
  accept post("Expect: 100-continue\r\nContent-Length: 5\r\n", "hello"), body: "hello"
  accept post("Expect: 100-Continue\r\nContent-Length: 5\r\n", "hello"), body: "hello"
  accept post("Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n", "5\r\nhello\r\n0\r\n\r\n"), body: "hello"
  accept "POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello", body: "hello", ends: :closed
  accept get("Expect: 100-continue\r\n"), path: "/"
  answers get("Expect: 200-ok\r\n"), 417, ends: :any
  answers get("Expect: x\r\n"), 417, ends: :any
  answers post("Expect: 100-continue, x\r\nContent-Length: 0\r\n"), 417, ends: :any
  refuse 413, post("Expect: 100-continue\r\nContent-Length: 1073741825\r\n")

  # WebSocket handshakes (426, bad key) belong to the table of that protocol.
  row 34, "Upgrade"
  accept get("Connection: Upgrade\r\nUpgrade: foo/2\r\n"), path: "/"
  accept get("Upgrade: websocket\r\n"), path: "/"
  accept get("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"), path: "/"
  accept post("Connection: Upgrade\r\nUpgrade: foo\r\nContent-Length: 5\r\n", "hello"), body: "hello"
  accept "GET / HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: foo\r\n\r\n", path: "/", ends: :closed

  row 35, "HTTP/1.0 and Connection"
  accept "GET / HTTP/1.0\r\n\r\n", path: "/", protocol: "HTTP/1.0", ends: :closed
  accept "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", path: "/", fields: { "connection" => "keep-alive" }
  accept "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", path: "/"
  accept "GET / HTTP/1.0\r\nConnection: close\r\n\r\n", path: "/", ends: :closed
  accept "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", path: "/", ends: :closed
  accept "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", body: "hello", ends: :closed
  answers "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello#{get(path: "/2")}", { body: "hello" }, { path: "/2" }
  accept get("Connection: close\r\n"), fields: { "connection" => "close" }, ends: :closed
  accept get("Connection: Close\r\n"), ends: :closed
  accept get("Connection: CLOSE\r\n"), ends: :closed
  accept get("Connection: foo, close\r\n"), ends: :closed
  accept get("Connection: foo,close ,bar\r\n"), ends: :closed
  accept get("Connection: foo\r\nConnection: close\r\n"), ends: :closed
  accept get("Connection: keep-alive, close\r\n"), ends: :closed
  accept get("Connection: closed\r\n"), path: "/"
  accept get("Connection: xclose, close-x\r\n"), path: "/"
  accept get("Connection: keep-alive\r\n"), path: "/"
  accept get("Connection: \r\n"), path: "/"
  answers "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n", { head: true }
  answers "HEAD / HTTP/1.0\r\n\r\n", { head: true }, ends: :closed
  answers "HEAD /204 HTTP/1.1\r\nHost: a\r\n\r\n", { status: 204, head: true }
end
