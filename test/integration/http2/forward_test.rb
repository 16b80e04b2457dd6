# frozen_string_literal: true

# Requests on streams of a worker that is stuck: another worker answers them, through the stuck one.
# SPDX-License-Identifier: MIT

require_relative "http2_case"
require "support/gate"

class HTTP2ForwardTest < HTTP2Case
  include Gate

  FORWARD = <<~RUBY
    UNTIL_THERE = ->(name) { IO.select(nil, nil, nil, 0.01) until File.exist?(name) }
    SEEN = %w[SERVER_PROTOCOL rack.url_scheme HTTPS HTTP_HOST REMOTE_ADDR HTTP_COOKIE CONTENT_LENGTH rack.hijack?]
    run lambda { |env|
      File.write("inside", "") if env["PATH_INFO"].match?(%r{\\A/(?:loop|c|sleep)})
      case env["PATH_INFO"]
      when "/sleep" then UNTIL_THERE.call("go")
      when "/loop" then nil until File.exist?("go")
      when "/c" then GATE.call
      when "/held"
        File.write("began", "")
        UNTIL_THERE.call("answer")
      when "/env" then next [200, {}, [env.values_at(*SEEN).inspect]]
      when "/size" then next [200, {}, ["\#{env["rack.input"].read.bytesize} \#{env["CONTENT_LENGTH"].inspect}"]]
      when "/early"
        env["rack.early_hints"].call("link" => "</a.css>")
      when "/parts" then next [200, { "X-Upper" => "a", "Connection" => "close" }, Enumerator.new { |y| 3.times { |n| y << "part \#{n} " } }]
      when "/none" then next [204, {}, []]
      when "/endless"
        body = Enumerator.new { |y| loop { y << "x" * 65_536 } }
        body.define_singleton_method(:close) { File.write("closed", "") }
        next [200, {}, body]
      when "/kill" then Process.kill("KILL", Process.pid)
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  # Connects until two connections are with one worker; one stream of the first of them pins it.
  STUCK = <<~JS
    const fs = require("fs"), http2 = require("http2");
    const ca = fs.readFileSync(process.argv[3]);
    const open = () => new Promise((done) => {
      const client = http2.connect(process.argv[2], { ca });
      client.on("connect", () => done(client));
    });
    const on = (client, fields, body) => new Promise((done) => {
      const stream = client.request(fields, { endStream: body === undefined });
      let head, text = "", hints = 0;
      stream.setEncoding("utf8");
      stream.on("headers", () => hints++);
      stream.on("response", (fields) => head = fields).on("data", (part) => text += part);
      stream.on("error", (error) => done({ status: head && head[":status"], text, code: error.code }));
      stream.on("end", () => done({ status: head && head[":status"], head, text, hints }));
      if (body !== undefined) stream.end(body);
    });
    const at = (client, path) => on(client, { ":path": path });
    const there = async (name) => { while (!fs.existsSync(name)) await new Promise((done) => setTimeout(done, 10)); };
    const stuck = async (pin) => {
      const by = {};
      for (let tries = 0; tries < 40; tries++) {
        const client = await open(), pid = (await at(client, "/")).text;
        (by[pid] ||= []).push(client);
        if (by[pid].length >= 2 && Object.keys(by).length >= 2) {
          const [first, second] = by[pid], held = at(first, pin);
          await there("inside");
          const other = Object.keys(by).find((key) => key !== pid);
          return { first, second, held, pid, other };
        }
      }
      throw new Error("all connections are with one worker");
    };
    const go = () => fs.writeFileSync("go", "");
    const say = (...words) => console.log(...words);
  JS

  def setup
    super
    write "config.ru", Gate::APP + FORWARD
  end

  def cluster(*words, **options)
    server = serve("-w", "2", "-t", "1", *words, **options)
    server.wait_for_log(/(booted in.*){2}/m)
    server
  end

  def steps(server, script)
    write "client.js", "#{STUCK}\n(async () => {\n#{script}\n})().then(() => process.exit(0), (error) => { say(error); process.exit(1); });\n"
    run_command("node", "client.js", server.url, @certificates.authority)
  end

  %w[/loop /c /sleep].each do |path|
    define_method("test_nobody_waits_behind_a_worker_that_is_in#{path.tr("/", "_")}") do
      result = steps(cluster, <<~JS)
        const { first, second, held, pid, other } = await stuck("#{path}");
        const texts = async (client, count) => (await Promise.all(Array.from({ length: count }, () => at(client, "/")))).map((a) => a.text);
        const all = [...await texts(first, 50), ...await texts(second, 100)];
        say(new Set(all).size, all[0] === other);
        #{"go(); say((await held).text === pid);" unless path == "/c"}
      JS
      open_gate if path == "/c"
      assert_equal path == "/c" ? "1 true\n" : "1 true\ntrue\n", result.out, result.err
    end
  end

  def test_what_the_application_sees
    [{}, { binds: nil }].each do |options|
      FileUtils.rm_f(%w[go inside].map { |name| File.join(@folder, name) })
      tls = options.key?(:binds)
      server = tls ? secure("-C", "http2.rb", "-w", "2", "-t", "1") : cluster
      server.wait_for_log(/(booted in.*){2}/m)
      result = steps(server, <<~JS)
        const { first, second, held, pid, other } = await stuck("/sleep");
        const cookies = { ":path": "/env", cookie: ["a=1", "b=2"] };
        const seen = (await on(second, cookies)).text;
        say(seen);
        say((await on(second, { ":path": "/size", ":method": "POST", "content-length": "20000" }, "x".repeat(20000))).text);
        say((await on(second, { ":path": "/size", ":method": "POST" }, "x".repeat(3000))).text);
        say((await on(second, { ":path": "/size", ":method": "POST", "content-length": "0" }, "")).text);
        const parts = await at(second, "/parts");
        say(parts.text, parts.head["x-upper"], parts.head["connection"]);
        say((await at(second, "/none")).status, (await on(second, { ":path": "/", ":method": "HEAD" })).status);
        const early = await at(second, "/early");
        say(early.hints, early.text === other);
        go();
        say((await on(first, cookies)).text === seen, (await held).text === pid);
        say((await on(first, { ":path": "/size", ":method": "POST" }, "x".repeat(3000))).text);
      JS
      scheme = tls ? '"https", "on"' : '"http", nil'
      assert_equal <<~TEXT, result.out, result.err
        ["HTTP/2", #{scheme}, "127.0.0.1:#{server.port}", "127.0.0.1", "a=1; b=2", nil, false]
        20000 "20000"
        3000 "3000"
        0 "0"
        part 0 part 1 part 2  a undefined
        204 200
        1 true
        true true
        3000 "3000"
      TEXT
    end
  end

  # What may become an upgrade waits, and others pass it.
  def test_what_stays
    result = steps(cluster, <<~JS)
      const { second, held, pid, other } = await stuck("/sleep");
      const events = on(second, { ":path": "/", accept: "text/event-stream" });
      say((await at(second, "/")).text === other);
      go();
      say((await events).text === pid, (await held).text === pid);
    JS
    assert_equal "true\ntrue true\n", result.out, result.err
  end

  def test_a_stream_that_is_reset
    result = steps(cluster, <<~JS)
      const { second, held, pid, other } = await stuck("/sleep");
      const stream = second.request({ ":path": "/endless" });
      stream.on("error", () => {});
      await new Promise((done) => stream.once("data", done));
      stream.close(8);
      await there("closed");
      say((await at(second, "/")).text === other);
      go();
      say((await held).text === pid);
    JS
    assert_equal "true\ntrue\n", result.out, result.err
  end

  def test_a_sibling_that_is_killed
    result = steps(cluster, <<~JS)
      const { second, held, pid } = await stuck("/sleep");
      const killed = await at(second, "/kill");
      say(killed.status, killed.text.trim());
      go();
      say((await held).text === pid);
    JS
    assert_equal "502 the worker that answered the request has ended\ntrue\n", result.out, result.err
  end

  # The answer comes from a worker that stops, by way of another one that stops.
  def test_all_workers_stop_meanwhile
    server = cluster
    result = steps(server, <<~JS)
      const { second, held, pid, other } = await stuck("/sleep");
      const slow = at(second, "/held");
      await there("began");
      process.kill(#{server.pid}, "SIGTERM");
      go();
      say((await held).text === pid);
      fs.writeFileSync("answer", "");
      say((await slow).text === other);
    JS
    assert_equal "true\ntrue\n", result.out, result.err
  end
end
