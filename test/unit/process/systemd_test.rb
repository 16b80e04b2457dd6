# frozen_string_literal: true

# The notifications for systemd, and how often they are sent.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/process/systemd"
require "tmpdir"

class SystemdTest < Minitest::Test
  def systemd(env = {})
    Rondo::Systemd.new({ "NOTIFY_SOCKET" => "/nowhere" }.merge(env))
  end

  def test_whether_anybody_listens
    assert_predicate systemd, :wanted?
    refute_predicate systemd("NOTIFY_SOCKET" => ""), :wanted?
    refute_predicate systemd("PUMA_SKIP_SYSTEMD" => "1"), :wanted?
    refute_predicate Rondo::Systemd.new({}), :wanted?
  end

  def test_the_watchdog_is_for_the_process_that_is_named
    { { "WATCHDOG_USEC" => "3000000" } => 1.5,
      { "WATCHDOG_USEC" => "3000000", "WATCHDOG_PID" => Process.pid.to_s } => 1.5,
      { "WATCHDOG_USEC" => "3000000", "WATCHDOG_PID" => "1" } => nil,
      { "WATCHDOG_USEC" => "x" } => nil, { "WATCHDOG_USEC" => "-5" } => nil, {} => nil,
      { "WATCHDOG_USEC" => "3000000", "NOTIFY_SOCKET" => "" } => nil }.each do |env, seconds|
      seconds ? assert_equal(seconds, systemd(env).watchdog_period) : assert_nil(systemd(env).watchdog_period)
    end
  end

  def test_what_it_is_told
    Dir.mktmpdir do |folder|
      socket = Socket.new(:UNIX, :DGRAM)
      socket.bind(Addrinfo.unix(File.join(folder, "notify")))
      told = systemd("NOTIFY_SOCKET" => File.join(folder, "notify"))
      told.reloading
      told.sign_of_life
      assert_match(/\ARELOADING=1\nMONOTONIC_USEC=\d+\z/, socket.recv_nonblock(100))
      assert_equal "WATCHDOG=1", socket.recv_nonblock(100)
    ensure
      socket&.close
    end
  end
end
