# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Rows 1-13: line ends, request line, request target. RFC 9112 sections 2 and 3.

HttpRules.define do
  row 1, "bare LF as a line end"
  line_feeds = [
    "GET / HTTP/1.1\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\n",
    "GET / HTTP/1.1\nHost: a\n\n",
    "GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: y\n\nGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX:\n\r\n"
  ]
  refuse 400, *line_feeds, "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "\n"
  with lenient_line_feeds: true do
    accept line_feeds[0], path: "/", "HTTP_HOST" => "a"
    accept line_feeds[1], path: "/", "HTTP_HOST" => "a"
    accept line_feeds[2], path: "/", "HTTP_HOST" => "a"
    accept line_feeds[3], path: "/", "HTTP_HOST" => "a"
    accept line_feeds[4], "HTTP_X" => "y"
    accept get("Content-Length: 5\n") + "hello", body: "hello"
    refuse 400, "GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n"
  end

  row 2, "bare CR"
  refuse 400,
         "GET / HTTP/1.1\rHost: a\r\n\r\n",
         "GET / HTTP/1.1\r\rHost: a\r\n\r\n",
         "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
         "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET\r / HTTP/1.1\r\nHost: a\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\rX: y\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\n\rX: y\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\nX\r: y\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\nX: \ry\r\n\r\n",
         "GET / HTTP/1.1\r\nHost: a\r\n\rGET /hidden HTTP/1.1\r\nHost: a\r\n\r\n",
         "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n"

  row 3, "empty lines before a request"
  accept "\r\n#{get}", path: "/"
  answers "#{get(path: "/1")}\r\n#{get(path: "/2")}", { path: "/1" }, { path: "/2" }
  answers "#{post("Content-Length: 2\r\n", "ab")}\r\n#{get(path: "/2")}", { body: "ab" }, { path: "/2" }
  refuse 400, "\r\n" * 100, ("\r\n" * 100) + get, " \r\n", " \r\n#{get}", "\t\r\n#{get}", " #{get}",
         "   \t  \r\n\r\n", "\r\n #{get}", "\0#{get}", "\r\n\0"

  row 4, "blanks between the parts of the request line"
  refuse 400,
         line("GET  / HTTP/1.1"), line("GET /  HTTP/1.1"), line("GET\t/ HTTP/1.1"),
         line("GET /\tHTTP/1.1"), line("GET\v/ HTTP/1.1"), line("GET /\vHTTP/1.1"),
         line("GET\f/ HTTP/1.1"), line("GET /\fHTTP/1.1"), line("GET / HTTP/1.1 "),
         line("GET / HTTP/1.1\t"), line("GET /a b HTTP/1.1"), line("GET /a b c HTTP/1.1"),
         line("GET HTTP/1.1"), line("GET  HTTP/1.1"), line("GET"), line("GET "), line("GET\0/ HTTP/1.1"),
         line("GET /\0HTTP/1.1"), line("GET /\xA0HTTP/1.1"), line("GET / \tHTTP/1.1"),
         line("GET / GET / HTTP/1.1")

  row 5, "protocol version"
  refuse 400, *%w[
    HTTP/1 HTTP/01.1 HTTP/1.10 http/1.1 Http/1.1 HTTP/1.1x HTTP/1.32 HTTP/1. HTTP/.1 HTTP/11 HTTP/1,1
    HTTP/1.1.1 HTTP/-1.1 HTTP/+1.1 HTTP/1.-1 HTTP/1.a HTTP/0x1.1 HTTPS/1.1 HTTP\\1.1 HTP/1.1 HTTP/ HTTP/x.y
    HTTP/11.1 XHTTP/1.1 HTTP/1.1/ H
  ].map { |version| line("GET / #{version}") }
  refuse 400, line("GET / HTTP/ 1.1"), line("GET / HTTP/1. 1"), line("GET / HTTP /1.1"),
         line("GET / HTTP/1.1\0"), line("GET / HTTP/#{"1" * 40}.1"), line("GET / HTTP/1.#{"1" * 40}"),
         line("GET / HTTP/\xB1.1"), line("GET / HTTP/4294967297.1")
  refuse 505, line("GET / HTTP/2.0"), line("GET / HTTP/9.9"), line("GET / HTTP/3.0"), line("GET / HTTP/2.1")
  refuse [400, 505], line("GET / HTTP/0.9"), line("GET / HTTP/0.0")
  accept line("GET / HTTP/1.2"), path: "/"
  accept line("GET / HTTP/1.9"), path: "/"
  accept line("GET / HTTP/1.1"), protocol: "HTTP/1.1"

  row 6, "HTTP/0.9"
  refuse 400, "GET /\r\n", "GET /\r\n\r\n", "POST /\r\n\r\n", "GET /x?y\r\nHost: a\r\n\r\n"

  row 7, "method"
  refuse 400, line(" / HTTP/1.1"), line("/ HTTP/1.1")
  refuse [400, 501], *["G@T", "G(T)", "GET:", "G\x80T", "G\0T", "\"GET\"", "GE,T", "[GET]", "{GET}", "G/T",
                       "GET=", "G\\T", "G;T", "G\x7FT", "<GET>", "A" * 25, "A" * 200].map { |method| line("#{method} / HTTP/1.1") }
  refuse [400, 501], "A" * 30, "A" * 70_000
  ["get", "PROPFIND", "M-SEARCH", "X!\#$%&'*+-.^_`|~1", "A" * 24, "PATCH", "TRACE", "BREW", "G"].each do |method|
    accept line("#{method} / HTTP/1.1"), method: method, path: "/"
  end

  row 8, "CONNECT, authority-form and asterisk-form"
  refuse [405, 501], line("CONNECT a:443 HTTP/1.1"), line("CONNECT [::1]:443 HTTP/1.1")
  refuse [400, 405, 501], line("CONNECT / HTTP/1.1"), line("CONNECT http://a/ HTTP/1.1"), line("CONNECT * HTTP/1.1")
  refuse [400, 405, 501], line("GET a:80 HTTP/1.1"), line("GET a HTTP/1.1"), line("GET ?x HTTP/1.1"),
         line("GET %2F HTTP/1.1"), line("GET ../x HTTP/1.1"), line("OPTIONS a:80 HTTP/1.1")
  refuse 400, line("GET * HTTP/1.1"), line("POST * HTTP/1.1"), line("HEAD * HTTP/1.1"),
         line("OPTIONS *x HTTP/1.1"), line("OPTIONS *?x HTTP/1.1"), line("OPTIONS ** HTTP/1.1")
  accept line("OPTIONS * HTTP/1.1"), method: "OPTIONS", path: "*", query: ""
  accept line("OPTIONS /x HTTP/1.1"), method: "OPTIONS", path: "/x"
  with allow_connect: true do
    accept "CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", status: 403, method: "CONNECT", ends: :any
    refuse 400, line("CONNECT / HTTP/1.1"), line("CONNECT a HTTP/1.1"), line("CONNECT a:x HTTP/1.1"),
           line("CONNECT u@a:1 HTTP/1.1"), line("CONNECT http://a/ HTTP/1.1")
  end

  row 9, "absolute-form"
  accept line("GET http://b/x?y HTTP/1.1"), path: "/x", query: "y", "HTTP_HOST" => "b", server: "b"
  accept line("GET http://b HTTP/1.1"), path: "/", query: "", "HTTP_HOST" => "b"
  accept line("GET http://b?q HTTP/1.1"), path: "/", query: "q", "HTTP_HOST" => "b"
  accept line("GET http://b:81/x HTTP/1.1"), path: "/x", "HTTP_HOST" => "b:81", server: "b", "SERVER_PORT" => "81"
  accept line("GET HTTP://b/x HTTP/1.1"), path: "/x", "HTTP_HOST" => "b"
  accept line("GET http://[::1]:82/x HTTP/1.1"), path: "/x", "HTTP_HOST" => "[::1]:82"
  accept "GET http://b/x HTTP/1.0\r\n\r\n", path: "/x", ends: :closed
  accept line("GET //b/x HTTP/1.1"), path: "//b/x", "HTTP_HOST" => "a"
  accept line("GET /http://b/x HTTP/1.1"), path: "/http://b/x", "HTTP_HOST" => "a"
  accept line("GET http://b/http://c/ HTTP/1.1"), path: "/http://c/", "HTTP_HOST" => "b"
  refuse 400, line("GET ftp://b/ HTTP/1.1"), line("GET ws://b/ HTTP/1.1"), line("GET file:///etc HTTP/1.1"),
         line("GET http://u@b/ HTTP/1.1"), line("GET http://u:p@b/ HTTP/1.1"), line("GET http:///x HTTP/1.1"),
         line("GET http:// HTTP/1.1"), line("GET http://:80/ HTTP/1.1"), line("GET http:/b/ HTTP/1.1"),
         line("GET http:b HTTP/1.1"), line("GET http://b:x/ HTTP/1.1"), line("GET http://b:99999/ HTTP/1.1"),
         line("GET http://b,c/ HTTP/1.1"), line("GET http://b#f HTTP/1.1"), line("GET http://b\\c/ HTTP/1.1"),
         line("GET http://[::1/ HTTP/1.1"), line("GET javascript:x HTTP/1.1"), line("GET http//b/ HTTP/1.1"),
         "GET http://b/ HTTP/1.1\r\n\r\n", "GET http://b/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"

  row 10, "bytes of the target"
  refuse 400, line("GET /a#b HTTP/1.1"), line("GET # HTTP/1.1"), line("GET /?a#b HTTP/1.1"),
         *[0x00, 0x01, 0x07, 0x08, 0x0B, 0x1B, 0x1F, 0x7F].map { |byte| line("GET /a#{byte.chr}b HTTP/1.1") }
  raw = [0x80, 0xA0, 0xC3, 0xFF].map { |byte| byte.chr(Encoding::BINARY) }
  punctuation = %w[< > " \\ ^ ` { | }]
  refuse 400, *(raw + punctuation).map { |byte| "GET /a".b + byte + " HTTP/1.1\r\nHost: a\r\n\r\n".b },
         line("GET /?a={b} HTTP/1.1"), "GET /?\xC3\xA9 HTTP/1.1\r\nHost: a\r\n\r\n"
  accept line("GET /a:b@c!$&'()*+,;=-._~%41/?a=/?:@!$&'()*+,;=-._~&b=%5B%5D HTTP/1.1"),
         path: "/a:b@c!$&'()*+,;=-._~%41/", query: "a=/?:@!$&'()*+,;=-._~&b=%5B%5D"
  with lenient_target_bytes: true do
    (raw + punctuation).each do |byte|
      accept "GET /a".b + byte + "?q".b + byte + " HTTP/1.1\r\nHost: a\r\n\r\n".b, path: "/a".b + byte, query: "q".b + byte
    end
    refuse 400, line("GET /a\0b HTTP/1.1"), line("GET /a#b HTTP/1.1"), line("GET /a b HTTP/1.1")
  end

  row 11, "percent-encoding is the application's"
  %w[/%00 /a%0d%0ab /%2e%2e%2fetc /%252e /%c0%af /%zz /% /%4 /a%2Fb /../x /./x /a//b /a;b=c /%41].each do |path|
    accept line("GET #{path} HTTP/1.1"), path: path, query: ""
  end
  accept line("GET /?a=%0d%0a&b=%00&+ HTTP/1.1"), path: "/", query: "a=%0d%0a&b=%00&+"
  accept line("GET /x? HTTP/1.1"), path: "/x", query: ""
  accept line("GET /x?? HTTP/1.1"), path: "/x", query: "?"

  row 12, "HTTP/2 preface without HTTP/2"
  with http2: false do
    refuse [400, 505], "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
           "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0\0\0\5\1\5\0\0\0\1\x82\x86\x84\x41\x01a"
  end

  row 13, "target over the limit"
  accept line("GET /#{"a" * 7999} HTTP/1.1"), path: "/#{"a" * 7999}"
  accept line("GET /#{"a" * 12_287} HTTP/1.1"), path: "/#{"a" * 12_287}"
  refuse 414, line("GET /#{"a" * 12_288} HTTP/1.1"), line("GET /?#{"a" * 20_000} HTTP/1.1"), "GET /#{"a" * 200_000}"
  with max_target_bytes: 256 do
    accept line("GET /#{"a" * 255} HTTP/1.1"), path: "/#{"a" * 255}"
    refuse 414, line("GET /#{"a" * 256} HTTP/1.1"), "GET /#{"a" * 256}", line("GET /?#{"a" * 255} HTTP/1.1"),
           line("GET http://b/#{"a" * 250} HTTP/1.1"), line("OPTIONS /#{"a" * 300} HTTP/1.1")
  end
end
