# frozen_string_literal: true

# Rondo::Scheduler with what Ruby has for child processes and names. Nothing here depends on time: the children of all
# fibers run at once, or the test does not end.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "socket"
require "tmpdir"
require "support/waiting_clients"

class FibersProcessesTest < Minitest::Test
  MANY = 5

  # Children say that they run, and wait until nobody holds the other end.
  def with_children
    said, says = IO.pipe
    hears, held = IO.pipe
    keeper = Thread.new { said.read(MANY) && held.close }
    yield "echo -n x >&3; read -r line <&4; echo ended", { 3 => says, 4 => hears }
  ensure
    keeper&.kill
    [said, says, hears, held].each { |io| io&.close }
  end

  def test_system
    with_children do |command, streams|
      results = WaitingClients.in_fibers { |all| all.map(1..MANY) { |n| system("#{command}; exit #{n % 2}", out: File::NULL, **streams) } }
      assert_equal [false, true, false, true, false], results
    end
  end

  def test_wait
    with_children do |command, streams|
      results = WaitingClients.in_fibers do |all|
        all.map(1..MANY) { |n| Process.wait2(spawn("#{command}; exit #{n}", out: File::NULL, **streams))[1].exitstatus }
      end
      assert_equal (1..MANY).to_a, results
    end
  end

  def test_the_output_of_commands
    with_children do |command, streams|
      results = WaitingClients.in_fibers { |all| all.map(1..MANY) { IO.popen(command, **streams, &:read) } }
      assert_equal ["ended\n"] * MANY, results
    end
  end

  # Backticks pass on only the standard streams, so the children use files.
  def test_backticks
    Dir.mktmpdir do |folder|
      command = "touch #{folder}/$$; until test -e #{folder}/end; do sleep 0.01; done; echo ended"
      results = WaitingClients.in_fibers do |all|
        running = Array.new(MANY) { all.start { `#{command}` } }
        sleep 0.001 until Dir.children(folder).size == MANY
        File.write(File.join(folder, "end"), "")
        running.map(&:value)
      end
      assert_equal ["ended\n"] * MANY, results
    end
  end
end

class FibersNamesTest < Minitest::Test
  def test_addresses
    assert_equal %i[other call], WaitingClients.order_of_lookup { Addrinfo.getaddrinfo("localhost", 80).any? }
  end

  def test_connecting_to_a_name
    TCPServer.open("localhost", 0) do |listener|
      order = WaitingClients.order_of_lookup { TCPSocket.open("localhost", listener.addr[1]).close || true }
      assert_equal %i[other call], order
    end
  end
end
