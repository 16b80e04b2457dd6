# frozen_string_literal: true

# What a master tells its molds for their plugins.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/cluster/message_socket"
require "rondo/puma/cluster_plugins"

class ClusterPluginsPartTest < Minitest::Test
  # A master without processes.
  class Master
    include Rondo::ClusterPlugins

    def initialize(urls, control)
      @slots = Struct.new(:urls).new(urls)
      @board = Rondo::Scoreboard.new(2)
      @control = control
    end
  end

  Mold = Struct.new(:socket, :plugins)

  # @yieldparam master [Master]
  # @yieldparam mold [Mold]
  # @return [Rondo::MessageSocket::Message]
  def told(urls: [], control: nil)
    own, other = Rondo::MessageSocket.pair
    yield Master.new(urls, control), Mold.new(own, false)
    other.receive_now
  ensure
    [own, other].each(&:close)
  end

  def test_addresses
    urls = ["http://127.0.0.1:1", "unix:///a b"]
    assert_equal urls.join("\n"), told(urls: urls) { |master, mold| master.notify_booted(mold) }[:urls]
    message = told(urls: ["unix:///#{"a" * 100}"] * 1000) { |master, mold| master.notify_booted(mold) }
    assert_equal [:booted, ""], [message.kind, message[:urls]]
  end

  def test_the_control_server
    control = Struct.new(:url, :token).new("unix:///c", "t")
    message = told(control: control) { |master, mold| master.introduce(mold) }
    assert_equal [:control, "unix:///c", "t"], [message.kind, message[:url], message[:token]]
    assert_equal "", told { |master, mold| master.introduce(mold) }[:url].to_s
  end

  # A mold has got a signal. If the master has got it, too, its stop begins later, and this is no second signal.
  def test_a_signal_that_a_mold_has_got_as_well
    [[true, []], [false, [:stop]]].each do |leaving, done|
      master = Master.new([], nil)
      happened = []
      master.instance_variable_set(:@loop, Class.new { def after(_seconds) = yield }.new)
      master.define_singleton_method(:leaving?) { leaving }
      master.define_singleton_method(:stop_now) { happened << :stop }
      master.asked("interrupt")
      assert_equal done, happened
    end
  end
end
