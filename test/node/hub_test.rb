# frozen_string_literal: true

# The ways between the processes of the Node engine, when nobody is at their other end (engine/hub.js, engine/bus.js).
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"

class NodeHubTest < Minitest::Test
  ENGINE = File.expand_path("../../node/lib/rondo/node/engine", __dir__)
  SCRIPTS = {
    # More than hub_queue_bytes to a process that is gone: nothing of it counts.
    "sends" => <<~JS,
      const link = new Link();
      for (let count = 0; count < 200; count += 1) {
        if (link.send({ channel: "a", data: "x".repeat(1e6) })) process.exit(1);
      }
      console.log(link.channel.waiting);
    JS
    # A peer whose `send` throws.
    "throws" => <<~JS,
      const link = new Link();
      link.channel.peer = { send() { throw new Error("closed"); } };
      link.channel.isThere = () => true;
      console.log(link.send({ channel: "a", data: "x" }), link.channel.waiting);
    JS
    # A subscriber that asks for the past gets what comes, and nothing waits for an answer.
    "replays" => <<~JS
      const bus = new Bus(new Link());
      const heard = [];
      bus.subscribeBlock("a", false, { id: 0 }, { $call: (channel, text) => heard.push(text) });
      bus.deliver("a", "now", 0);
      setImmediate(() => console.log(bus.waiting.size, heard.join()));
    JS
  }.freeze
  EXPECTED = { "sends" => "0\n", "throws" => "false 0\n", "replays" => "0 now\n" }.freeze

  SCRIPTS.each do |name, script|
    define_method("test_#{name}") do
      head = "const { Link } = require('#{ENGINE}/hub.js'); const { Bus } = require('#{ENGINE}/bus.js');\n"
      output, = Open3.capture2e("node", "-e", head + script)
      assert_equal EXPECTED[name], output
    end
  end
end
