# frozen_string_literal: true

# WebSocket (RFC 8441) and event streams on streams of HTTP/2.
# SPDX-License-Identifier: MIT

require "json"
require_relative "http2_case"

class HTTP2PushTest < HTTP2Case
  # Frames of a client by hand: node's http2 knows no WebSocket.
  SOCKET = <<~JS
    const frame = (opcode, text) => {
      const payload = Buffer.from(text), mask = Buffer.from([1, 2, 3, 4]), long = payload.length > 125;
      const head = long ? Buffer.from([0x80 | opcode, 0xfe, payload.length >> 8, payload.length & 255])
                        : Buffer.from([0x80 | opcode, 0x80 | payload.length]);
      return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ mask[at % 4])]);
    };
    const open = (more) => session.request({ ":method": "CONNECT", ":protocol": "websocket", ":path": "/socket",
                                             "sec-websocket-version": "13", ...more }, { endStream: false });
    const text = (bytes) => bytes[1] < 126 ? bytes.subarray(2, 2 + bytes[1]).toString() : bytes.subarray(4).toString();
  JS

  def test_websocket
    script = SOCKET + <<~JS
      session.once("remoteSettings", (settings) => {
        console.log(settings.enableConnectProtocol);
        const stream = open({});
        stream.on("response", (head) => {
          console.log(head[":status"], head["x-version"], head["sec-websocket-accept"], head["upgrade"]);
          stream.write(frame(1, "hello"));
        });
        stream.on("data", (bytes) => {
          if ((bytes[0] & 15) === 8) { console.log("close " + bytes.readUInt16BE(2)); stream.end(); return; }
          console.log(text(bytes));
          stream.write(frame(8, Buffer.from([3, 232])));
        });
        stream.on("close", () => { console.log("closed " + stream.rstCode); session.close(); });
      });
    JS
    result = node(serve, script)
    assert_equal "true\n200 HTTP/2 undefined undefined\necho hello\nclose 1000\nclosed 0\n", result.out, result.err
  end

  # Bytes for the socket may come before the answer, and more of them than the first window has.
  def test_a_client_that_does_not_wait
    script = SOCKET + <<~JS
      session.once("remoteSettings", () => {
        const stream = open({});
        let got = Buffer.alloc(0);
        for (let i = 0; i < 40; i++) stream.write(frame(1, "x".repeat(1000)));
        stream.on("data", (bytes) => {
          got = Buffer.concat([got, bytes]);
          if (got.length >= 40 * 1009) { console.log(got.length); stream.close(); session.close(); }
        });
      });
    JS
    result = node(serve, script)
    assert_equal "40360\n", result.out, result.err
  end

  def test_another_protocol
    script = "session.once('remoteSettings', async () => { #{SOCKET}; const stream = open({ ':protocol': 'tcp' }); " \
             "stream.on('response', (head) => { console.log(head[':status']); stream.close(); session.close(); }); });"
    result = node(serve, script)
    assert_equal "501\n", result.out, result.err
  end

  # Asks /hands, says `lines`, and prints what comes: the status and fields of the head, the bytes, how the stream ended.
  def hands(server, beginning, *lines)
    script = SOCKET + <<~JS
      session.once("remoteSettings", () => {
        const stream = open({ ":path": "/hands?" + encodeURIComponent(#{beginning.to_json}) });
        #{lines.to_json}.forEach((line) => stream.write(line));
        let text = "";
        stream.on("response", (head) => {
          const names = Object.keys(head).filter((name) => !name.startsWith(":") && name !== "date");
          console.log(head[":status"], names.map((name) => name + "=" + head[name]).join(" "));
        });
        stream.setEncoding("utf8");
        stream.on("data", (part) => {
          text += part;
          if (text.split("heard").length > #{lines.size}) stream.end();
        });
        stream.on("error", () => {});
        stream.on("close", async () => {
          console.log(JSON.stringify(text), stream.rstCode);
          console.log((await ask({ ":path": "/" }))[1]);
          session.close();
        });
      });
    JS
    result = node(server, script)
    assert_empty result.err
    result.out.lines.map(&:chomp)
  end

  # What an application writes over HTTP/1.1 it writes here, too: its head of 101 becomes one of 200, whatever its bytes are cut into, and
  # bytes of the client that came before it are not lost.
  def test_a_websocket_by_hand
    head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" \
           "Sec-WebSocket-Accept: abc=\r\nSet-Cookie: a=b\r\nX-Own: 1\r\n\r\n"
    assert_equal ["200 set-cookie=a=b x-own=1", '"firstheard one\nheard two\n" 0', "hello"],
                 hands(serve, "#{head}first", "one\n", "two\n")
  end

  # The answer of an application that refuses.
  def test_a_websocket_by_hand_that_is_refused
    head = "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\nConnection: close\r\n\r\n"
    assert_equal ["403 content-length=2", '"no" 0', "hello"], hands(serve, "#{head}no")
  end

  def test_a_websocket_by_hand_without_a_head
    server = serve
    ["no head\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
     "HTTP/1.1 101 Switching Protocols\r\nX-Long: |66000", "HTTP/1.1 101 |end"].each do |beginning|
      out = hands(server, beginning)
      assert_equal ['"" 8', "hello"], out, beginning[0, 60]
    end
    server.wait_for_log(/No whole answer for 127\.0\.0\.1: the application that took the stream .* did not begin with the head/)
  end

  # Nothing offers it, and a client that asks all the same loses its stream, not its connection.
  def test_switched_off
    write "off.rb", "http2_websocket false\n"
    script = SOCKET + <<~JS
      session.once("remoteSettings", (settings) => {
        console.log(settings.enableConnectProtocol === true);
        const stream = open({});
        stream.on("error", (error) => console.log(error.code));
        stream.on("close", async () => {
          console.log(stream.rstCode);
          console.log((await ask({ ":path": "/" }))[1]);
          session.close();
        });
      });
    JS
    result = node(start("-C", "off.rb", binds: ["tcp://127.0.0.1:0"]), script)
    assert_equal "false\nERR_HTTP2_STREAM_ERROR\n1\nhello\n", result.out, result.err
  end

  LEAVING = <<~RUBY
    class Leaving
      def on_open(client) = client.write("open").then { warn "told: open" }
      def on_shutdown(client) = client.write("last words")
      def on_close(client) = warn("told: close")
    end
    class Slow
      def on_open(client)
        client.subscribe("flood")
        Thread.new { Rondo.publish("flood", "x" * 8000) while client.open? }
      end
      def on_close(client) = warn("told: close")
    end
    run lambda { |env|
      env["rack.upgrade"] = env["PATH_INFO"] == "/slow" ? Slow.new : Leaving.new if env["rack.upgrade?"]
      [200, { "content-type" => "text/plain" }, ["hello"]]
    }
  RUBY

  # One connection has event streams and a WebSocket when its worker ends.
  STREAMS = SOCKET + <<~JS
    const events = () => session.request({ ":path": "/", "accept": "text/event-stream" });
    const told = (stream) => new Promise((done) => {
      let got = Buffer.alloc(0);
      stream.on("data", (part) => {
        got = Buffer.concat([got, part]);
        if (got.includes(Buffer.from([0x88, 12, 3, 233]))) { stream.write(frame(8, Buffer.from([3, 233]))); stream.end(); }
      });
      stream.on("close", () => done(got.toString("latin1").replace(/[^ -~]/g, ".") + " " + stream.rstCode));
    });
    session.once("remoteSettings", async () => {
      const streams = [events(), events(), open({ ":path": "/" })];
      console.log((await Promise.all(streams.map(told))).join("|"));
      session.close();
    });
  JS

  def check_last_words(signal, *words)
    write "config.ru", LEAVING
    server = serve(*words)
    client = Thread.new { node(server, STREAMS) }
    server.wait_for_log(/(told: open.*){3}/m)
    server.signal(signal)
    events = "data: open..data: last words.. 0"
    assert_equal "#{events}|#{events}|..open..last words....going away 0\n", client.value.out, client.value.err
    server.wait_for_log(/(told: close.*){3}/m)
  end

  def test_last_words_at_the_end_of_the_server
    check_last_words("TERM")
  end

  def test_last_words_in_a_phased_restart
    check_last_words("USR1", "-w", "1")
  end

  # It is closed, and its connection goes on.
  def test_an_event_stream_that_is_not_read
    write "config.ru", LEAVING
    write "http2.rb", "http2 true\nmax_pending_bytes 65_536\n"
    server = serve
    result = node(server, <<~JS)
      session.once("remoteSettings", () => {
        const stream = session.request({ ":path": "/slow", "accept": "text/event-stream" });
        stream.on("error", () => {});
        stream.on("close", async () => {
          console.log(stream.rstCode, (await ask({ ":path": "/" }))[1]);
          session.close();
        });
      });
    JS
    assert_equal "2 hello\n", result.out, result.err
    server.wait_for_log(/told: close/)
  end

  def test_event_stream
    got = curl2(serve, "/events", "-N", "-H", "accept: text/event-stream").out
    assert_equal "data: event 0\n\ndata: event 1\n\n", got
  end
end
