# frozen_string_literal: true

# Requests and answers over HTTP/2, by clients that are not ours.
# SPDX-License-Identifier: MIT

require_relative "http2_case"

class HTTP2ClientsTest < HTTP2Case
  VERSION = ["-o", "/dev/null", "-w", "%{http_version} %{http_code}"].freeze

  def test_both_versions_on_a_plain_port
    server = serve
    assert_equal "2 200", curl2(server, "/", *VERSION).out
    assert_equal "HTTP/1.1", Net::HTTP.get(URI("#{server.url}/env"))[/^SERVER_PROTOCOL=(.*)$/, 1]
  end

  def test_both_versions_over_tls
    server = serve(binds: ["ssl://127.0.0.1:0?#{@pair.query}"])
    assert_equal "2 200", curl(server, "/", *VERSION).out
    assert_equal "1.1 200", curl(server, "/", "--http1.1", *VERSION).out
    env = curl(server, "/env").out
    assert_equal %w[HTTP/2 https on], [env[/^SERVER_PROTOCOL=(.*)$/, 1], env[/^rack.url_scheme=(.*)$/, 1], env[/^HTTPS=(.*)$/, 1]]
    assert_equal "0123456789" * 300_000, curl(server, "/big").out
  end

  def test_on_unless_it_is_switched_off
    server = start(binds: ["tcp://127.0.0.1:0"])
    assert_equal "2 200", curl2(server, "/", *VERSION).out
    write "http2.rb", "http2 false\n"
    refute_equal "2 200", curl2(serve, "/", *VERSION).out
    secure = serve(binds: ["ssl://127.0.0.1:0?#{@pair.query}"])
    assert_equal "1.1 200", curl(secure, "/", "--http2", *VERSION).out
  end

  def test_env
    env = curl2(serve, "/env?a=b", "-H", "cookie: a=1", "-H", "x-y: z").out.lines(chomp: true).to_h { |line| line.split("=", 2) }
    assert_equal ["HTTP/2", "/env", "a=b", "a=1", "z", "127.0.0.1", "http", "false"],
                 env.values_at("SERVER_PROTOCOL", "PATH_INFO", "QUERY_STRING", "HTTP_COOKIE", "HTTP_X_Y", "REMOTE_ADDR",
                               "rack.url_scheme", "rack.hijack?")
    assert_match(/\A127\.0\.0\.1:\d+\z/, env["HTTP_HOST"])
    refute env.key?("HTTP_CONNECTION")
  end

  def test_answers
    server = serve
    assert_equal "0123456789" * 300_000, curl2(server, "/big").out
    assert_equal "part 0 part 1 part 2 ", curl2(server, "/parts").out
    assert_match(%r{\AHTTP/2 204 \r\ndate: [^\r]+\r\n\r\n\z}, curl2(server, "/none", "-i").out)
    assert_match(%r{\AHTTP/2 200 \r\n.*content-length: 5\r\n}m, curl2(server, "/", "-I").out)
    assert_match(%r{\AHTTP/2 200 \r\nx-upper: a\r\nset-cookie: a=b\r\ncontent-length: 6\r\ndate}, curl2(server, "/upper", "-i").out)
    assert_match(%r{\AHTTP/2 103 \r\nlink: </a.css>; rel=preload\r\n\r\nHTTP/2 200 \r\n.*hinted\z}m, curl2(server, "/hints", "-i").out)
  end

  # curl says 92 for a stream that was reset. What came before the reset it may drop, and so may node.
  def test_answers_that_are_cut
    server = serve
    %w[/short /raises].each { |path| assert_equal 92, curl2(server, path).code, path }
    assert_equal "hello", curl2(server).out
  end

  def test_uploads
    server = serve
    write "upload", "x" * 20_000_000
    assert_equal "20000000", curl2(server, "/size", "-T", "upload").out
    assert_equal "20000000", curl2(server, "/size", "-T", "-", stdin: "upload").out
    assert_equal "5", curl2(server, "/size", "-d", "12345", "-H", "expect: 100-continue").out
    script = 'ask({ ":path": "/early", ":method": "POST" }, "x".repeat(5000000)).then((answer) => { console.log(answer[1]); session.close(); });'
    assert_equal "not read\n", node(server, script).out
  end

  # The answer is whole, and the connection serves on.
  def test_a_body_that_is_too_large
    write "http2.rb", "max_body_bytes 1000\n"
    script = <<~JS
      const post = { ":path": "/size", ":method": "POST" }, body = "x".repeat(2000);
      (async () => {
        for (const fields of [post, { ...post, "content-length": "2000" }]) console.log(JSON.stringify(await ask(fields, body)));
        console.log(JSON.stringify(await ask({ ":path": "/" })));
        session.close();
      })();
    JS
    result = node(serve, script)
    assert_equal %([413,"body is too large\\n"]\n) * 2 + %([200,"hello"]\n), result.out, result.err
  end

  def test_files
    write "public/file.txt", "0123456789" * 10_000
    server = serve("--public", "public")
    assert_equal "0123456789" * 10_000, curl2(server, "/file.txt").out
    assert_equal "345", curl2(server, "/file.txt", "-r", "3-5").out
  end

  def test_hijacks
    server = serve
    assert_equal "over HTTP/2 only WebSockets have a full hijack: use a streaming body", curl2(server, "/taken").out
    assert_equal "written by hand", curl2(server, "/partial").out
  end

  def test_many_streams
    server = serve
    result = run_command("h2load", "-c4", "-m50", "-n2000", server.url)
    assert_match(/^status codes: 2000 2xx, 0 3xx, 0 4xx, 0 5xx$/, result.out)
    assert_equal "hello", run_command("nghttp", server.url).out
  end

  def test_node
    script = <<~JS
      (async () => {
        console.log(JSON.stringify(await Promise.all([ask({ ":path": "/" }), ask({ ":path": "/size", ":method": "POST" }, "12345"),
                                                      ask({ ":path": "/raises" })])));
        session.close();
      })();
    JS
    result = node(serve, script)
    assert_match(/\A\[\[200,"hello"\],\[200,"5"\],\[(?:200|null),"(?:half)?","ERR_HTTP2_STREAM_ERROR"\]\]\n\z/, result.out, result.err)
  end

  ILLEGAL = <<~TEXT
    DATA on no stream: PROTOCOL_ERROR
    DATA on a stream that is idle: PROTOCOL_ERROR
    HEADERS on a stream of the server: PROTOCOL_ERROR
    HEADERS that are no HPACK: COMPRESSION_ERROR
    SETTINGS of five bytes: FRAME_SIZE_ERROR
    PING of seven bytes: FRAME_SIZE_ERROR
    WINDOW_UPDATE by nothing: PROTOCOL_ERROR
    WINDOW_UPDATE beyond 2^31: FLOW_CONTROL_ERROR
    PUSH_PROMISE: PROTOCOL_ERROR
    CONTINUATION of nothing: PROTOCOL_ERROR
  TEXT

  # An illegal frame ends its own connection; another one, opened before, serves on.
  def test_python_h2
    server = serve
    result = run_command("/usr/bin/python3", File.join(__dir__, "client.py"), "127.0.0.1", server.port.to_s)
    assert_equal "200 hello 200 5 200 part 0 part 1 part 2 \n3000004\n#{ILLEGAL}200 hello\n", result.out, result.err
  end

  VARNISH = <<~TEXT
    varnishtest "a client of HTTP/2 that is not ours"
    client c1 -connect "127.0.0.1 PORT" {
      txpri
      stream 0 {
        rxsettings
        txsettings
        txsettings -ack
        rxwinup
        rxsettings
      } -run
      stream 1 {
        txreq -req GET -url "/" -scheme http -hdr host a
        rxresp
        expect resp.status == 200
        expect resp.body == "hello"
      } -run
      stream 3 {
        txreq -req POST -url "/size" -scheme http -hdr host a -body "12345"
        rxresp
        expect resp.status == 200
        expect resp.body == "5"
      } -run
      stream 0 {
        txping -data "01234567"
        rxping
        expect ping.data == "01234567"
        expect ping.ack == "true"
      } -run
      stream 5 {
        txdata -data "on a stream that is idle"
      } -run
      stream 0 {
        rxgoaway
        expect goaway.err == PROTOCOL_ERROR
      } -run
    } -run
  TEXT

  def test_varnishtest
    skip "varnishtest is not there (package varnish)" unless system("command -v varnishtest >/dev/null")
    server = serve
    write "client.vtc", VARNISH.sub("PORT", server.port.to_s)
    result = run_command("varnishtest", "client.vtc")
    assert_equal 0, result.code, result.out
  end

  def test_a_client_that_cancels
    server = serve
    script = <<~JS
      const stream = session.request({ ":path": "/endless" });
      stream.on("error", () => {});
      stream.once("data", () => stream.close(http2.constants.NGHTTP2_CANCEL));
      stream.on("close", async () => { console.log((await ask({ ":path": "/" }))[1]); session.close(); });
    JS
    assert_equal "hello\n", node(server, script).out
    server.wait_for_log(/^the body is closed$/)
  end

  def test_wrong_options
    [0, 2000].each do |seats|
      write "wrong.rb", "http2_seats #{seats}\n"
      result = rondo("-C", "wrong.rb")
      assert_equal 1, result.code
      assert_match(/\Arondo: .*http2_seats.*\n\z/, result.err)
    end
  end
end
