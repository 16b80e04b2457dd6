# encoding: ascii-8bit
# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Other kinds of requests: methods, forms of the target, bodies, versions, pipelines; and the pages for errors.

FilesRules.define do
  row "methods", "other methods are the application's, for whatever path"
  on(:app, :alone) do
    %w[POST PUT DELETE PATCH OPTIONS TRACE PROPFIND get Head GETT].each do |method|
      gives request(method, "/plain.txt"), nothing("/plain.txt", method)
    end
    %w[/ /dir /dir/ /nothing /.env /out.txt /%2e%2e/x /fifo].each do |target|
      gives request("POST", target, "Content-Length: 0"), nothing(target, "POST")
    end
    gives request("OPTIONS", "*"), nothing("*", "OPTIONS")
  end
  on(:pages) { gives request("POST", "/plain.txt", "Content-Length: 0"), not_allowed }

  row "bodies", "a request's body is read, whoever answers"
  chunks = "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
  on(:app, :alone) do
    gives request("POST", "/plain.txt", "Content-Length: 5", body: "hello"), nothing("/plain.txt", "POST", "hello")
    gives request("PUT", "/plain.txt", "Transfer-Encoding: chunked", body: chunks), nothing("/plain.txt", "PUT", "hello")
    gives request("GET", "/plain.txt", "Content-Length: 5", body: "hello"), file("plain.txt")
    gives request("GET", "/plain.txt", "Content-Length: 0"), file("plain.txt")
    gives request("GET", "/plain.txt", "Transfer-Encoding: chunked", body: chunks), file("plain.txt")
    gives request("HEAD", "/plain.txt", "Content-Length: 5", body: "hello"), file("plain.txt").to_head
    gives request("GET", "/nothing", "Content-Length: 5", body: "hello"), nothing("/nothing", "GET", "hello")
    gives request("GET", "/plain.txt", "Content-Length: 5", body: "GET /") + get("/size-1.txt"), file("plain.txt"), file("size-1.txt")
    gives request("GET", "/large.bin", "Content-Length: 30000", body: "x" * 30_000), file("large.bin")
    gives request("GET", "/dir", "Content-Length: 5", body: "hello"), moved("/dir/")
    gives request("GET", "/plain.txt", "If-None-Match: *", "Content-Length: 5", body: "hello"), not_modified("plain.txt")
  end

  row "bodies_refused", "what is no request is none for a file"
  on(:app, :alone) do
    gives request("GET", "/plain.txt", "Content-Length: 20000000000"), refused(413), ends: :closed
    gives request("GET", "/plain.txt", "Transfer-Encoding: chunked", body: "zz\r\n"), refused(400), ends: :closed
    gives request("GET", "/plain.txt", "Transfer-Encoding: chunked", "Content-Length: 1", body: chunks), refused(400), ends: :closed
    gives request("GET", "/plain.txt", "Transfer-Encoding: gzip", body: chunks), refused([400, 501]), ends: :closed
    gives request("GET", "/plain.txt", "Content-Length: 1", "Content-Length: 2", body: "ab"), refused(400), ends: :closed
    gives request("GET", "/plain.txt", "Expect: 100-continue", "Content-Length: 5", body: "hello"), file("plain.txt"), ends: :any
    gives request("GET", "/plain.txt", " folded"), refused(400), ends: :closed
    gives request("GET", "/plain.txt", "Host: b"), refused(400), ends: :closed
  end

  row "absolute", "a target with a scheme and a host"
  on(:app, :alone) do
    ["http://a/plain.txt", "http://other.example/plain.txt", "HTTP://a:81/plain.txt?x", "http://[::1]/plain.txt",
     "https://a/plain.txt"].each do |target|
      gives get(target), file("plain.txt")
    end
    gives get("http://a"), file("index.html")
    gives get("http://a/"), file("index.html")
    gives get("http://a?x"), file("index.html")
    gives get("http://a/dir/"), file("dir/index.html")
    gives get("http://a/nothing"), nothing("/nothing")
    gives get("http://a//plain.txt"), nothing("//plain.txt")
    gives get("http://a/../outside.txt"), nothing("/../outside.txt")
    gives get("http://a/%2e%2e/outside.txt"), nothing("/%2e%2e/outside.txt")
    gives get("/http://a/plain.txt"), nothing("/http://a/plain.txt")
  end

  row "absent_head", "a HEAD of nothing"
  on(:app, :alone) do
    %w[/nothing /.env /bare/ /out.txt /%2e%2e/x].each { |target| gives head(target), nothing(target, "HEAD").to_head }
  end

  row "fields", "fields that say nothing to a file"
  ["Cookie: a=b", "Authorization: Basic eDp5", "Accept: application/json", "Accept: text/html;q=0", "Accept-Language: de",
   "Cache-Control: no-cache", "Pragma: no-cache", "X-Sendfile: /etc/passwd", "X-Accel-Redirect: /etc/passwd", "X-Original-URL: /.env",
   "X-Rewrite-URL: /.env", "X-HTTP-Method-Override: DELETE", "Origin: http://b", "TE: trailers", "DNT: 1",
   "X-Sendfile-Type: X-Accel-Redirect", "X-Accel-Mapping: /=/", "Last-Event-ID: 1", "Accept: text/event-stream"].each do |line|
    gives get("/plain.txt", line), file("plain.txt")
  end
  gives get("/plain.txt", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="), file("plain.txt")
  gives get("/plain.txt", "Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAAA"), file("plain.txt")

  row "pipeline", "several requests in one go, answered in order"
  on(:app, :alone) do
    gives get("/plain.txt") + get("/size-1.txt") + get("/size-0.txt") + get("/nothing"),
          file("plain.txt"), file("size-1.txt"), file("size-0.txt"), nothing("/nothing")
    gives get("/nothing") + get("/plain.txt") + get("/also-nothing") + get("/plain.txt"),
          nothing("/nothing"), file("plain.txt"), nothing("/also-nothing"), file("plain.txt")
    gives get("/large.bin") + get("/plain.txt") + get("/nothing"), file("large.bin"), file("plain.txt"), nothing("/nothing")
    gives get("/size-16385.txt") + get("/size-16384.txt") + get("/size-16383.txt") + get("/nothing"),
          file("size-16385.txt"), file("size-16384.txt"), file("size-16383.txt"), nothing("/nothing")
    gives head("/large.bin") + get("/size-1.txt") + head("/nothing-either") + get("/size-1.txt"),
          file("large.bin").to_head, file("size-1.txt"), nothing("/nothing-either", "HEAD").to_head, file("size-1.txt")
    gives get("/dir") + get("/dir/") + get("/plain.txt", "Range: bytes=0-1") + get("/plain.txt", "Range: bytes=99-") +
          get("/plain.txt", "If-None-Match: *") + get("/plain.txt", "If-Match: \"a\"") + get("/plain.txt", "Range: bytes=0-0,2-2"),
          moved("/dir/"), file("dir/index.html"), part("plain.txt", 0..1), unsatisfiable("plain.txt"), not_modified("plain.txt"),
          failed, parts("plain.txt", [0..0, 2..2])
    gives request("POST", "/nothing", "Content-Length: 5", body: "hello") + get("/plain.txt"),
          nothing("/nothing", "POST", "hello"), file("plain.txt")
    gives get("/plain.txt") + request("DELETE", "/plain.txt") + get("/plain.txt"),
          file("plain.txt"), nothing("/plain.txt", "DELETE"), file("plain.txt")
    gives get("/all.js", "Accept-Encoding: gzip") + get("/all.js") + get("/all.js", "Accept-Encoding: br"),
          file("all.js", "gz"), file("all.js", vary: true), file("all.js", "br")
    gives get("/plain.txt", "Connection: close") + get("/size-1.txt"), file("plain.txt"), ends: :closed
    gives get("/plain.txt") + get("/large.bin", "Connection: close"), file("plain.txt"), file("large.bin"), ends: :closed
    gives get("/plain.txt") + "GET /plain.txt HTTP/1.1\r\n\r\n", file("plain.txt"), refused(400), ends: :closed
    gives "#{get("/plain.txt")}\r\n#{get("/size-1.txt")}", file("plain.txt"), file("size-1.txt")
  end
  gives get("/plain.txt") * 60, *([file("plain.txt")] * 60)
  gives (get("/size-1.txt") + get("/nothing")) * 20, *([file("size-1.txt"), nothing("/nothing")] * 20)
  gives get("/large.bin") * 4, *([file("large.bin")] * 4)

  row "half", "a client that has said all"
  gives get("/plain.txt"), file("plain.txt"), half_close: true
  gives get("/large.bin"), file("large.bin"), half_close: true
  gives get("/large.bin") + get("/nothing"), file("large.bin"), nothing("/nothing"), half_close: true

  row "old", "HTTP/1.0"
  on(:app, :alone) do
    stay = { "connection" => "keep-alive" }
    gives "GET /plain.txt HTTP/1.0\r\n\r\n", file("plain.txt"), ends: :closed
    gives "HEAD /plain.txt HTTP/1.0\r\n\r\n", file("plain.txt").to_head, ends: :closed
    gives "GET /large.bin HTTP/1.0\r\n\r\n", file("large.bin"), ends: :closed
    gives "GET /dir HTTP/1.0\r\n\r\n", moved("/dir/"), ends: :closed
    gives "GET /plain.txt HTTP/1.0\r\nRange: bytes=0-1\r\n\r\n", part("plain.txt", 0..1), ends: :closed
    gives "GET /plain.txt HTTP/1.0\r\nIf-None-Match: *\r\n\r\n", not_modified("plain.txt"), ends: :closed
    gives "GET /nothing HTTP/1.0\r\n\r\n", nothing("/nothing"), ends: :closed
    gives request("GET", "/plain.txt", "Connection: keep-alive", minor: 0), file("plain.txt").with(stay)
    gives request("HEAD", "/plain.txt", "Connection: keep-alive", minor: 0), file("plain.txt").with(stay).to_head
    gives request("GET", "/large.bin", "Connection: keep-alive", minor: 0) * 2, *([file("large.bin").with(stay)] * 2)
    gives request("GET", "/dir", "Connection: keep-alive", minor: 0), moved("/dir/").with(stay)
    gives request("GET", "/nothing", "Connection: keep-alive", minor: 0), nothing("/nothing").with(stay)
    gives request("GET", "/plain.txt", "If-None-Match: *", "Connection: keep-alive", minor: 0), not_modified("plain.txt").with(stay)
    gives request("GET", "/plain.txt", "Range: bytes=0-1,4-5", "Connection: keep-alive", minor: 0),
          parts("plain.txt", [0..1, 4..5]).with(stay)
    gives request("GET", "/plain.txt", "Connection: keep-alive", minor: 0) + request("GET", "/size-1.txt", minor: 0),
          file("plain.txt").with(stay), file("size-1.txt"), ends: :closed
  end

  row "pages", "the folder's own pages for errors"
  on(:pages) do
    %w[/nothing / /dir /dir/ /.env /%2e%2e/x /a%2Fb //plain.txt].each do |target|
      gives get(target), page(404)
      gives head(target), page(404).to_head
    end
    gives get("/nothing", "If-None-Match: *", "Range: bytes=0-1", "Accept-Encoding: gzip"), page(404)
    gives get("/404.html"), file("404.html")
    gives get("/404.html", "Range: bytes=0-1"), part("404.html", 0..1)
    gives get("/nothing") + get("/plain.txt"), page(404), file("plain.txt")
  end
  on(:failing) do
    own = refused([404, 500]).with("content-type" => "text/plain")
    own.body = "the application's own"
    gives get("/app-404") + get("/app-500"), own, own
    gives get("/raise"), page(500)
    gives head("/raise"), page(500).to_head
    gives get("/nothing"), nothing("/nothing")
  end
end
