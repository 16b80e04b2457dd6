# frozen_string_literal: true

# WebSocket (RFC 8441) and event streams on streams of HTTP/2.
# SPDX-License-Identifier: MIT

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

  def test_event_stream
    got = curl2(serve, "/events", "-N", "-H", "accept: text/event-stream").out
    assert_equal "data: event 0\n\ndata: event 1\n\n", got
  end
end
