# frozen_string_literal: true

# Who holds a port.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require "tmpdir"
require "fileutils"
require "rondo"
require "support/held_port"

class PortHolderTest < Minitest::Test
  def test_this_process
    %w[127.0.0.1 ::1].each do |host|
      TCPServer.open(host, 0) do |server|
        name = File.read("/proc/self/comm").chomp
        assert_equal "process #{Process.pid} (#{name})", Rondo::PortHolder.find(server.addr[1])
      end
    rescue Errno::EADDRNOTAVAIL
      next # no IPv6 here
    end
  end

  def test_nobody
    HeldPort.open { |port| assert_nil Rondo::PortHolder.find(port) }
  end

  def test_connections_do_not_hold_a_port
    TCPServer.open("127.0.0.1", 0) do |server|
      client = TCPSocket.new("127.0.0.1", server.addr[1])
      assert_nil Rondo::PortHolder.find(client.local_address.ip_port)
      client.close
    end
  end

  def test_a_system_without_proc
    Dir.mktmpdir { |folder| assert_nil Rondo::PortHolder.find(80, proc_folder: folder) }
  end

  def test_a_holder_that_cannot_be_seen
    Dir.mktmpdir do |folder|
      FileUtils.mkdir_p(["#{folder}/net", "#{folder}/42/fd"])
      File.write("#{folder}/net/tcp", <<~TABLE)
        sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
         0: 0100007F:0050 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
      TABLE
      assert_nil Rondo::PortHolder.find(80, proc_folder: folder)
      File.symlink("socket:[4711]", "#{folder}/42/fd/3")
      File.write("#{folder}/42/comm", "nginx\n")
      assert_equal "process 42 (nginx)", Rondo::PortHolder.find(80, proc_folder: folder)
    end
  end

  def test_a_port_without_the_right
    denied = Rondo::AddressError.new("cannot listen on ssl://a:443: permission denied")
    assert_match(/: permission denied: a port below 1024 needs the capability CAP_NET_BIND_SERVICE/,
                 Rondo::PortHolder.explain(denied, 443).message)
    [8080, nil].each { |port| assert_same denied, Rondo::PortHolder.explain(denied, port) }
  end

  def test_the_message_of_a_server
    TCPServer.open("127.0.0.1", 0) do |taken|
      server = Rondo::Server.new(->(_env) {})
      error = assert_raises(Rondo::AddressError) { server.listen("tcp://127.0.0.1:#{taken.addr[1]}") }
      assert_match(/: address already in use by process #{Process.pid} \(/, error.message)
    end
  end
end
