# frozen_string_literal: true

# Which slots have sockets: those that have a worker, and no others.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/cluster/slots"
require "rondo/config/settings"
require "tmpdir"
require "support/certificates"

class SlotsTest < Minitest::Test
  def setup
    @slots = Rondo::Slots.new(Rondo::Settings::Resolved.new({}), room: 4)
  end

  def teardown
    @slots.close_all
  end

  def listen(count, uri: "tcp://127.0.0.1:0", inherited: Rondo::Inherited.new([]))
    @slots.listen(uri, inherited, count)
  end

  def port_of(io)
    socket = Socket.for_fd(io.fileno)
    socket.autoclose = false # it belongs to the slots
    socket.local_address.ip_port
  end

  def with_sockets
    (0...4).reject { |index| @slots.own_listeners(index).empty? }
  end

  def test_a_socket_for_each_slot_at_the_same_place
    listen(3)
    assert_equal [0, 1, 2], with_sockets
    ports = (0...3).flat_map { |index| @slots.listeners(index).map { |io| port_of(io) } }
    assert_equal ["http://127.0.0.1:#{ports.first}"], @slots.urls
    assert_equal 1, ports.uniq.size
  end

  def test_what_is_spoken_on_each
    Dir.mktmpdir do |folder|
      listen(2)
      listen(2, uri: "unix://#{File.join(folder, "https:")}")
      assert_equal "http http", @slots.schemes(@slots.listeners(0))
      assert_equal "http", @slots.schemes(@slots.own_listeners(1))
      assert_equal "", @slots.schemes([])
    end
  end

  # The master has read them: what a worker gets does not depend on the files any more.
  def test_certificates_and_keys_of_each
    Dir.mktmpdir do |folder|
      pair = Certificates.new(folder).pair("server")
      listen(1)
      listen(2, uri: "ssl://127.0.0.1:0?#{pair.query}")
      key = File.read(pair.key)
      FileUtils.rm([pair.certificate, pair.key])
      @slots.grow([2])
      assert_equal "http https", @slots.schemes(@slots.listeners(0))
      plain, tls = Rondo::TLS.take(@slots.secrets(@slots.listeners(0)))
      assert_nil plain
      assert_equal key, tls[:certificates].first[:key]
      refute_includes @slots.inspect, key.lines[1].chomp
      assert_match(/\Ahttps:/, @slots.urls.last)
    end
  end

  def test_certificates_that_replace_others
    Dir.mktmpdir do |folder|
      pair = Certificates.new(folder).pair("server")
      uri = "ssl://127.0.0.1:0?#{pair.query}"
      listen(1, uri: uri)
      listen(1)
      name = Rondo::TLS.name(Rondo::Address.parse(uri)[:tls])
      others = %w[other] + [name]
      @slots.show_certificates(others.map { |each| Rondo::TLS::Material.new.update(name: each, ca: "new") })
      tls, plain = Rondo::TLS.take(@slots.secrets(@slots.listeners(0)))
      assert_equal [name, "new"], tls.values_at(:name, :ca)
      assert_nil plain
    end
  end

  def test_nothing_secret
    listen(1)
    assert_nil @slots.secrets(@slots.listeners(0))
  end

  def test_an_inherited_port_for_tls_needs_certificates_that_fit
    Dir.mktmpdir do |folder|
      certificates = Certificates.new(folder)
      TCPServer.open("127.0.0.1", 0) do |server|
        server.autoclose = false # the slots close it
        inherited = Rondo::Inherited.new([["ssl://127.0.0.1:#{server.addr[1]}", server.fileno]])
        uri = "ssl://127.0.0.1:#{server.addr[1]}?cert=#{certificates.pair("a").certificate}&key=#{certificates.pair("b").key}"
        error = assert_raises(Rondo::AddressError) { listen(1, uri: uri, inherited: inherited) }
        assert_match(/cannot listen on ssl:\S+: \S+b.key.pem is not the key of \S+a.pem\z/, error.message)
      end
    end
  end

  def test_only_the_slot_that_grows_gets_one
    listen(3)
    [0, 1].each { |index| @slots.close(index) }
    @slots.grow([0])
    assert_equal [0, 2], with_sockets
    assert_equal [nil, nil], [@slots.descriptors(1).values.first, @slots.listeners(1).first]
  end

  def test_a_unix_socket_is_everybodys_and_its_file_goes_at_the_end
    Dir.mktmpdir do |folder|
      path = File.join(folder, "s")
      listen(2, uri: "unix://#{path}")
      assert_equal @slots.listeners(0), @slots.listeners(3)
      assert_empty with_sockets
      @slots.close_all
      refute_path_exists path
    end
  end

  def test_a_file_that_somebody_else_has_put_there_stays
    Dir.mktmpdir do |folder|
      path = File.join(folder, "s")
      listen(1, uri: "unix://#{path}")
      File.delete(path)
      UNIXServer.open(path) do
        @slots.close_all
        assert_path_exists path
      end
    end
  end

  def test_what_was_inherited_is_used_and_the_rest_is_opened
    first = Socket.new(:INET, :STREAM).tap { |socket| socket.setsockopt(:SOCKET, :REUSEPORT, true) }
    first.bind(Addrinfo.tcp("127.0.0.1", 0))
    first.listen(5)
    first.autoclose = false
    uri = "tcp://127.0.0.1:#{first.local_address.ip_port}"
    listen(2, uri: uri, inherited: Rondo::Inherited.new([[uri, first.fileno]]))
    assert_equal first.fileno, @slots.listeners(0).first.fileno
    assert_equal [0, 1], with_sockets
    assert_equal 2, @slots.all.size
    assert_empty @slots.foreign
  end

  def test_more_than_there_are_descriptors_for
    before = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, 64, before.last)
    error = assert_raises(Rondo::Error) { Rondo::Slots.new(Rondo::Settings::Resolved.new({}), room: 64) }
    assert_equal "cannot open the sockets of 64 workers: Too many open files", error.message
  ensure
    Process.setrlimit(:NOFILE, *before)
  end

  def test_inboxes_are_pairs
    @slots.outboxes[2].send("x", 0)
    assert_equal "x", @slots.inbox(2).recv(1)
  end
end
