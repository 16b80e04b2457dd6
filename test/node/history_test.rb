# frozen_string_literal: true

# The history of the Node engine (engine/history.js): it keeps what a simple model keeps, its limits cost the same for
# any number of channels, and what has become too old is freed.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "support/node_process"
require "support/raw_client"

class NodeHistoryTest < Minitest::Test
  APP = File.expand_path("many_channels.ru", __dir__)
  ENGINE = File.expand_path("../../node/lib/rondo/node/engine", __dir__)
  HEAD = <<~JS
    const { History } = require("#{ENGINE}/history.js");
    const limits = require("#{ENGINE}/limits.js");
  JS
  # Random messages and rules, beside a list of all messages in which nothing is fast.
  MODEL = <<~JS
    let seed = Number(process.argv[1]);
    const random = (most) => { seed = (seed * 48271) % 2147483647; return seed % most; };
    let now = 0;
    limits.historyMessages = 40;
    limits.historyBytes = 40 * 140;
    const history = new History(() => now);
    let all = [];
    const weigh = (message) => message.data.length + 128;
    const clean = () => {
      const count = new Map();
      all = all.reverse().filter((message) => {
        const rule = history.ruleOf(message.channel);
        count.set(message.channel, (count.get(message.channel) || 0) + 1);
        return rule && count.get(message.channel) <= rule.size && !(rule.ttl > 0 && message.at < now - rule.ttl);
      }).reverse();
      while (all.length > 40 || all.reduce((sum, one) => sum + weigh(one), 0) > 40 * 140) all.shift();
    };
    for (let step = 0; step < 20000; step += 1) {
      now += random(3);
      const channel = "c" + random(8);
      if (random(200) === 0) history.setRule(random(2) ? channel : "c[0-5]", random(2) === 1, random(20), random(3) * 20);
      const data = "x".repeat(random(30));
      history.look();
      const id = history.add(channel, data);
      if (id > 0) all.push({ id, channel, data, at: now });
      clean();
      const since = { id: random(history.lastId + 1) };
      const kept = history.since("*", true, since).map((message) => message.id).join();
      const expected = all.filter((message) => message.id > since.id).map((message) => message.id).join();
      if (kept !== expected || history.count !== all.length) throw new Error(`${step}: ${kept} is not ${expected}`);
      if (history.bytes !== all.reduce((sum, one) => sum + weigh(one), 0)) throw new Error(`${step}: bytes`);
      if (history.order.length > 2 * history.count + 200) throw new Error(`${step}: what has gone is kept`);
    }
    console.log("the same");
  JS
  # Nobody publishes any more. The clock is the script's: a slow machine may not let the message go at once.
  OLD = <<~JS
    let now = 0;
    const history = new History(() => now);
    history.setRule("a", false, 100, 1);
    history.add("a", "x".repeat(1000));
    console.log(history.count, history.looking !== null);
    now = 1000;
    const look = setInterval(() => {
      if (history.looking !== null) return;
      clearInterval(look);
      console.log(history.count, history.bytes, history.kept.size);
    }, 10);
    setTimeout(() => process.exit(1), 30000).unref();
  JS

  def run_script(script, *words)
    output, = Open3.capture2e("node", "-e", HEAD + script, *words)
    output
  end

  def test_it_keeps_what_the_model_keeps
    [1, 2, 3].each { |seed| assert_equal "the same\n", run_script(MODEL, seed.to_s) }
  end

  def test_what_has_become_too_old_is_freed
    assert_equal "1 true\n0 0 0\n", run_script(OLD)
  end

  def test_many_channels_beyond_the_limit
    NodeProcess.run(APP, args: ["--set", "history_messages=50000"]) do |server|
      assert_equal "50000", RawClient.open(server.url) { |client| client.request("GET / HTTP/1.1\r\nhost: a\r\n\r\n").body }
    end
  end
end
