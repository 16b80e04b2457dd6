# frozen_string_literal: true

# Clients of the Node engine that do not take their answers (engine/clients.js), with real sockets and short limits.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"

class NodeClientsTest < Minitest::Test
  ENGINE = File.expand_path("../../node/lib/rondo/node/engine", __dir__)
  # Sends 50 MB to a client that reads this many times after each look; says when the client is closed.
  SCRIPT = <<~JS
    const net = require("node:net");
    const { Clients } = require(process.argv[1] + "/clients.js");
    let now = 0;
    const clients = new Clients({ writeTimeout: 30000, totalOutputBytes: Number(process.argv[3]) }, () => now);
    const server = net.createServer((socket) => {
      clients.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => { console.log("closed after " + now); process.exit(0); });
      socket.write(Buffer.alloc(50e6), () => { if (!socket.destroyed) { console.log("taken"); process.exit(0); } });
      setImmediate(look);
    });
    const look = () => {
      clients.look();
      now += 10000;
      if (now > 200000 && process.argv[2] === "0") process.exit(1);
      read(Number(process.argv[2]));
    };
    const read = (times) => {
      if (times === 0) return setTimeout(look, 1);
      return client.once("readable", () => { client.read(); read(times - 1); });
    };
    let client;
    server.listen(0, "127.0.0.1", () => {
      client = net.connect({ port: server.address().port, highWaterMark: 65536 });
      client.on("error", () => {});
      if (process.argv[2] === "0") client.pause();
    });
  JS

  def run_script(part, total)
    output, status = Open3.capture2e("node", "-e", SCRIPT, ENGINE, part.to_s, total.to_s)
    assert status.success?, output
    output
  end

  def test_a_client_that_takes_nothing
    assert_match(/took nothing for 30000 ms \(write_timeout_ms\)\nclosed after [34]0000\n/, run_script(0, 100_000_000))
  end

  def test_a_slow_client
    assert_equal "taken\n", run_script(100, 100_000_000)
  end

  def test_more_than_all_may_hold
    assert_match(/\A1 connections were closed: .*total_output_bytes.*\nclosed after [01]0*\n\z/, run_script(1, 10_000_000))
  end
end
