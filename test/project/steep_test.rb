# frozen_string_literal: true

# Steep checks the examples by the signatures of sig/ (Steepfile), and refuses what the methods refuse.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "open3"
require "tmpdir"

class SteepTest < Minitest::Test
  ROOT = File.expand_path("../..", __dir__)

  # A line that ends with "# wrong" is refused, and no other one.
  PROGRAM = <<~RUBY
    class Shout
      def on_open(client)
        client.subscribe("news", since: 0)
      end

      def on_message(client, data)
        client.write(data)
        client.write(1) # wrong
        client.close("1000") # wrong
      end
    end
    Rondo.publish("news", { text: "one" })
    Rondo.publish(1, "one") # wrong
    Rondo.subscribe("news*", match: :redis, as: :text) { |channel, message, _| channel + message }
    Rondo.subscribe("news*", match: :glob) { |channel| channel } # wrong
    Rondo.run_after("soon") { 1 } # wrong
    task = Rondo.run_every(1000) { 1 }
    task.cancel
    task.stop # wrong
    Rondo.connect("ws://127.0.0.1", handler: Shout.new, timeout: 1.5)
    Rondo.connect("ws://127.0.0.1", handler: 12) # wrong
    lengths = Rondo.fibers(limit: 2) { |all| all.map(%w[a b]) { |text| text.size } }
    lengths.upcase # wrong
    Rondo.offload { "one" }.upcase
    server = Rondo::Server.new(->(_env) { [200, {}, ["yes"]] }, max_threads: 5)
    server.listen("tcp://127.0.0.1:0").upcase
    server.stop(force: true)
    server.halt # wrong
    Rondo::PubSub.default = Shout.new # wrong
    Rondo::PubSub.history("news", size: 10, ttl: 3600)
    Rondo::PubSub.history("news", ttl: 3600) # wrong
  RUBY
  SIGNATURE = <<~RBS
    class Shout
      def on_open: (Rondo::Client client) -> void
      def on_message: (Rondo::Client client, String data) -> void
    end
  RBS

  VERBS = <<~RUBY
    # @type self: Rondo::Configuration::Verbs
    port 3000
    workers :auto
    threads 1, 5
    threads nil # wrong
    max_head_bytes "64k"
    max_head_bytes # wrong
    persistent_timeout 20
    before_worker_boot { |index| index }
    bind :here # wrong
    no_such_verb 1 # wrong
    listen("tcp://127.0.0.1:3001") { |_env| [200, {}, ["yes"]] }
    cluster { max_requests 1000 }
  RUBY

  OTHER_GEMS = <<~RUBY
    Iodine.threads = 5
    Iodine.workers = "two" # wrong
    Iodine.listen(service: :http, handler: ->(_env) { [200, {}, ["yes"]] })
    Iodine.on_state(:on_start) { Iodine.run_every(1000) { 1 } }
    Iodine.on_state(:started) { 1 } # wrong
    Iodine.subscribe("news*", match: :redis) { |channel, message| channel + message }
    Iodine.publish(to: "news", message: "one")
    Iodine.publish("news", { text: "one" }) # wrong
    redis = Iodine::PubSub::Redis.new("redis://localhost/", ping: 10)
    redis.cmd("SET", :key, 1) { |reply| puts reply }
    Iodine::PubSub.default = redis
    Iodine::PubSub.attach("redis") # wrong
    tls = Iodine::TLS.new("localhost")
    tls.use_certificate(certificate: "cert.pem", private_key: "key.pem").trust("ca.pem")
    Iodine.connect(url: "wss://localhost/", tls: tls).start
    Iodine::Mustache.new(template: "{{a}}").render({ a: 1 }).upcase
    Iodine::JSON.parse(1) # wrong
    Up.publish("news", { text: "one" })
    Up.publish("news") # wrong
  RUBY

  def test_the_examples_keep_to_the_signatures
    output, status = check(ROOT)
    assert status.success?, output
  end

  def test_what_a_method_refuses_is_refused_before
    Dir.mktmpdir do |folder|
      { "sig" => "sig", "gems/rondo-iodine/sig" => "iodine", "gems/rondo-up/sig" => "up" }.each do |from, to|
        FileUtils.cp_r(File.join(ROOT, from), File.join(folder, to))
      end
      programs = { "other_gems.rb" => OTHER_GEMS, "program.rb" => PROGRAM, "rondo.rb" => VERBS }
      programs.merge("shout.rbs" => SIGNATURE, "Steepfile" => <<~RUBY).each { |name, text| File.write(File.join(folder, name), text) }
        target(:all) { signature "sig", "iodine", "up", "shout.rbs"; check #{programs.keys.inspect[1..-2]} }
      RUBY
      output, = check(folder)
      assert_equal programs.flat_map { |name, text| marked(name, text) }, refused(output), output
    end
  end

  private

  def check(folder)
    Open3.capture2e(RbConfig.ruby, Gem.bin_path("steep", "steep"), "check", "--jobs=1", chdir: folder)
  end

  def refused(output)
    places = output.scan(/^(\w+\.rb):(\d+):\d+: \[error\]/).uniq
    places.map { |file, line| [file, line.to_i] }.sort
  end

  def marked(file, text)
    text.lines.each_index.select { |index| text.lines[index].end_with?("# wrong\n") }.map { |index| [file, index + 1] }
  end
end
