# frozen_string_literal: true

# What the tests of HTTP/2 share: a server that speaks it, on a port for TLS or a plain one, and clients that are not
# ours: curl, nghttp, h2load, node.
# SPDX-License-Identifier: MIT

require_relative "../tls/tls_case"

class HTTP2Case < TLSCase
  APP = <<~RUBY
    class Echo
      def on_message(client, data) = client.write("echo " + data)
    end
    class Twice
      def on_open(client) = 2.times { |n| client.write("event \#{n}") }.then { client.close }
    end
    run lambda { |env|
      plain = { "content-type" => "text/plain" }
      case env["PATH_INFO"]
      when "/env" then [200, plain, env.filter_map { |key, value| "\#{key}=\#{value}\n" if key.match?(/\\A[A-Z_]+\\z|hijack\\?|url_scheme/) }]
      when "/size" then [200, plain, [env["rack.input"].read.bytesize.to_s]]
      when "/early" then [200, plain, ["not read"]]
      when "/big" then [200, plain, ["0123456789" * 300_000]]
      when "/parts" then [200, plain, Enumerator.new { |y| 3.times { |n| y << "part \#{n} " } }]
      when "/upper" then [200, { "X-Upper" => "a", "Connection" => "close", "Set-Cookie" => "a=b" }, ["fields"]]
      when "/none" then [204, {}, []]
      when "/short" then [200, { "content-length" => "8" }, ["half"]]
      when "/raises" then [200, plain, Enumerator.new { |y| y << "half"; raise "no more" }]
      when "/hints"
        env["rack.early_hints"].call("link" => "</a.css>; rel=preload")
        [200, plain, ["hinted"]]
      when "/taken"
        begin
          env["rack.hijack"].call
        rescue IOError => e
          [200, plain, [e.message]]
        end
      when "/hands" # a WebSocket by hand: what the query says becomes the beginning
        io = env["rack.hijack"].call
        beginning, zeros = Rack::Utils.unescape(env["QUERY_STRING"]).split("|")
        Thread.new do
          beginning.each_char { |byte| io.write(byte) }
          io.write("0" * zeros.to_i)
          while zeros != "end" && (line = io.gets)
            io.write("heard " + line)
          end
          io.close
        rescue SystemCallError # the client has left
          io.close
        end
        [-1, {}, []]
      when "/partial" then [200, plain.merge("rack.hijack" => ->(io) { io.write("written by hand"); io.close }), []]
      when "/endless"
        body = Enumerator.new { |y| loop { y << "x" * 1000; sleep 0.01 } }
        body.define_singleton_method(:close) { warn "the body is closed" }
        [200, plain, body]
      when "/socket"
        env["rack.upgrade"] = Echo.new if env["rack.upgrade?"] == :websocket
        [200, { "x-version" => env["SERVER_PROTOCOL"] }, []]
      when "/events"
        env["rack.upgrade"] = Twice.new if env["rack.upgrade?"] == :sse
        [200, {}, []]
      when "/gate"
        warn "at the gate"
        File.read("gate")
        [200, plain, ["through"]]
      else [200, plain, ["hello"]]
      end
    }
  RUBY

  def setup
    super
    write "config.ru", APP
    write "http2.rb", "early_hints true\n"
  end

  # A server with HTTP/2 on a plain port, unless `binds` say more.
  def serve(*words, binds: ["tcp://127.0.0.1:0"], **options)
    start("-C", "http2.rb", *words, binds: binds, **options)
  end

  # curl on a plain port, by HTTP/2 from the first byte on.
  # @return [Result]
  def curl2(server, path = "/", *words, stdin: nil)
    run_command("curl", "-sS", "--max-time", PATIENCE.to_s, "--http2-prior-knowledge", *words, "#{server.url}#{path}", stdin: stdin)
  end

  # Runs a script of node with the functions of CLIENT.
  def node(server, script)
    write "client.js", CLIENT + script
    run_command("node", "client.js", server.url)
  end

  CLIENT = <<~JS
    const http2 = require("http2");
    const session = http2.connect(process.argv[2]);
    session.on("error", (error) => { console.log("session: " + error.code); process.exit(1); });
    const ask = (fields, body) => new Promise((done) => {
      const stream = session.request(fields, { endStream: body === undefined });
      let head, text = "";
      stream.setEncoding("utf8");
      stream.on("response", (fields) => head = fields).on("data", (part) => text += part);
      stream.on("error", (error) => done([head && head[":status"], text, error.code]));
      stream.on("end", () => done([head[":status"], text]));
      if (body !== undefined) stream.end(body);
    });
  JS
end
