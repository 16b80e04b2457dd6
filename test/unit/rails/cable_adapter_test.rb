# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "open3"
require "rbconfig"
require "support/server_process"
require "tmpdir"

# `adapter: rondo` in a process without a server, and streams of a server of Action Cable that has restarted. Active
# Support changes much, so it is loaded in a process of its own.
class RailsCableAdapterTest < Minitest::Test
  SCRIPT = <<~RUBY
    require "active_support/all"
    require "action_cable"
    require "rondo"
    require "rondo/rails/cable/cable"
    require "rondo/rails/cable/listener"
    require "stringio"

    LOG = StringIO.new
    SAYS = {}

    def server(adapter)
      config = ActionCable::Server::Configuration.new
      config.logger = Logger.new(LOG)
      config.cable = { "adapter" => adapter, "socket_folder" => ARGV.first, channel_prefix: "app" }.with_indifferent_access
      ActionCable::Server::Base.new(config: config)
    end

    # Stands for the socket of a client.
    class Listening
      def join(_member) = true
      def leave(_member) = nil
    end

    3.times { |number| server("rondo").tap { |one| 2.times { one.broadcast("room", { number: number }) } } }
    SAYS[:no_server] = LOG.string.lines(chomp: true).filter_map { |line| line[/!.*/] }

    adapter = server("rondo").pubsub.class
    SAYS[:names] = [adapter.channel("room"), adapter.channel("x" * 2000) == adapter.channel(adapter.shorten("x" * 2000)),
                    adapter.channel("x" * 2000).bytesize < 1024]

    File.chmod(0o755, ARGV.first)
    SAYS[:foreign] = begin
      server("rondo").broadcast("room", 1)
    rescue Rondo::Rails::Cable::Undelivered => e
      e.message
    end

    again = server("async")
    fan_out = Rondo::Rails::Cable::FanOut.new(again)
    member = fan_out.join("room", "{}", Listening.new)
    member.entry.when_subscribed { |error| SAYS[:error] = error }
    fan_out.close
    again.restart
    SAYS[:closed] = fan_out.join("room", "{}", Listening.new)
    member.leave
    SAYS[:left] = again.pubsub.send(:subscriber_map).instance_variable_get(:@subscribers)

    ActionCable::Server::Base.config.cable = { "adapter" => "async" }
    Rondo::Rails::Cable.attach(Struct.new(:max_cable_subscriptions, :cable_history).new(10, {}))
    ActionCable::Channel::TestCase # loads what follows
    channel = ActionCable::Channel::Base.new(ActionCable::Channel::ConnectionStub.new, "id", {})
    channel.singleton_class.include(ActionCable::Channel::ChannelStub)
    %w[one two three].each { |name| channel.stream_from(name) }
    channel.stop_stream_from("two")
    SAYS[:streams] = channel.streams
    puts JSON.generate(SAYS)
  RUBY

  # Seeds and consoles broadcast, and nobody is there. A folder that is not private is another thing. What begins to
  # stream at a server that restarts is told to ask again, and the adapter of now hears nothing of the old streams.
  # Tests of applications (ActionCable::Channel::TestCase) have neither a connection nor streams of the server.
  def test_in_a_process_without_a_server
    Dir.mktmpdir do |folder|
      says = run_script(folder)
      line = "! Action Cable: no server listens in #{folder}: a broadcast went to nobody"
      assert_equal [line] * 3, says["no_server"] # one for each adapter
      assert_equal ["\0rondo:cable:room", true, true], says["names"]
      assert_equal "#{folder} must belong to this user, and to nobody else (mode 0700)", says["foreign"]
      assert_equal %w[one three], says["streams"]
      assert_equal [nil, nil, {}], says.values_at("error", "closed", "left")
    end
  end

  def run_script(folder)
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{File.join(ServerProcess::ROOT, "lib")}", "-e", SCRIPT, folder)
    assert_predicate status, :success?, output
    JSON.parse(output)
  end
end
