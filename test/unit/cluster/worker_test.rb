# frozen_string_literal: true

# How a worker uses the heirs that the master names, in messages of any version; and when it shows other certificates.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo"
require "rondo/cluster/worker"

class WorkerTest < Minitest::Test
  VERSION = Rondo::Server::Core::HANDOVER_VERSION

  # Records the heirs.
  class Server
    attr_reader :board, :inboxes, :schemes, :apps, :secrets, :shown

    def listen_fd(_descriptor, app = nil, scheme:, tls:)
      raise Rondo::AddressError, "this version does not speak #{scheme}" unless scheme.start_with?("http")

      (@schemes ||= []) << scheme
      (@apps ||= []) << app
      (@secrets ||= []) << tls
    end

    def show_certificates(materials)
      (@shown ||= []) << materials.dup
    end

    def name_heirs(board, inboxes)
      @board = board
      @inboxes = inboxes
    end
  end

  Serving = Struct.new(:server, :stopping) do
    def stopping? = stopping
  end

  def setup
    @server = Server.new
    log = Object.new
    log.define_singleton_method(:error) { |line| (@lines ||= []) << line }
    log.define_singleton_method(:lines) { @lines.to_a }
    @log = log
    @worker = Rondo::Worker.allocate
    @worker.instance_variable_set(:@serving, Serving.new(@server))
    @worker.instance_variable_set(:@log, log)
    @worker.instance_variable_set(:@lock, Mutex.new)
    @worker.instance_variable_set(:@certificates, [])
  end

  # @param board [IO] the memory of the scoreboard
  def name_heirs(board, **fields)
    inboxes = Array.new(2) { File.open(File::NULL) }
    words = { seats: 4, version: VERSION, **fields }.to_h { |name, value| [name.to_s, value.to_s] }
    @worker.send(:name_heirs, Rondo::MessageSocket::Message.new(:heirs, words, [board, *inboxes]))
    inboxes.map(&:fileno)
  end

  def board
    Rondo::Scoreboard.new(4).then { |made| (@kept = made) && IO.for_fd(made.fd, autoclose: false).dup }
  end

  def test_heirs
    numbers = name_heirs(board)
    assert_equal numbers * 2, @server.inboxes
    @kept.set(3, :connections, 7)
    assert_equal 7, @server.board.get(3, :connections)
  end

  def test_another_version_is_left_alone
    [VERSION + 1, 0, ""].each { |version| name_heirs(board, version: version) }
    assert_nil @server.board
    assert_empty @log.lines
  end

  def test_a_scoreboard_of_another_version
    name_heirs(File.open(__FILE__))
    assert_nil @server.board
    assert_match(/Closing connections instead of handing them over: .*scoreboard/, @log.lines.first)
  end

  def test_a_worker_that_does_not_serve_yet
    @worker.instance_variable_set(:@serving, nil)
    name_heirs(board)
    assert_nil @server.board
  end

  # @param fields [Hash] of the message
  # @return [Array<String>] the arguments with which the sockets are opened
  def cover(secrets: nil, **fields)
    fields[:secrets] = 1 if secrets
    ios = Array.new(2) { TCPServer.new("127.0.0.1", 0) }
    ports = ios.map { |io| io.addr[1] }
    ios << secrets if secrets
    @worker.send(:cover, Rondo::MessageSocket::Message.new(:cover, fields.transform_keys(&:to_s), ios))
    @open = ports.map { |port| queues?(port) }
    @server.schemes
  ensure
    ios.reject(&:closed?).each { |io| io.tap { io.autoclose = true }.close }
  end

  # Whether the kernel still takes connections there.
  def queues?(port)
    TCPSocket.open("127.0.0.1", port) { true }
  rescue Errno::ECONNREFUSED
    false
  end

  def test_the_master_says_what_is_spoken_on_a_socket
    assert_equal %w[https http], cover(schemes: "https http")
    assert_equal [nil, nil], @server.apps
  end

  def test_the_master_names_the_address_of_another_application
    admin = ->(_env) { [200, {}, []] }
    @worker.instance_variable_set(:@apps, { "tcp://127.0.0.1:3001" => admin })
    key = ["tcp://127.0.0.1:3001"].pack("m0")
    assert_equal %w[http https], cover(schemes: "http:#{key} https")
    assert_equal [admin, nil], @server.apps
  end

  def test_a_socket_that_this_version_cannot_serve
    assert_equal %w[http], cover(schemes: "gopher http")
    assert_equal ["! Not accepting connections for another worker: this version does not speak gopher"], @log.lines
    assert_equal [false, true], @open
  end

  def test_sockets_for_a_worker_that_stops
    @worker.instance_variable_get(:@serving).stopping = true
    assert_nil cover(schemes: "http http")
    assert_equal [false, false], @open
  end

  def test_certificates_and_keys_come_as_the_last_descriptor
    material = Rondo::TLS::Material.new.update(ca: "text")
    secrets = Rondo::TLS.hand_on([nil, material])
    assert_equal %w[http https], cover(schemes: "http https", secrets: secrets)
    assert_equal [nil, material.update(checked: true)], @server.secrets
    assert_predicate secrets, :closed?
  end

  def show(*texts)
    materials = texts.map { |text| Rondo::TLS::Material.new.update(name: text) }
    io = Rondo::TLS.hand_on(materials)
    @worker.send(:certificates, Rondo::MessageSocket::Message.new(:certificates, {}, [io]))
    assert_predicate io, :closed?
  end

  def names_shown
    @server.shown.to_a.map { |materials| materials.map { |material| material[:name] } }
  end

  def test_other_certificates
    show("a", "b")
    show("c")
    assert_equal [%w[a b], %w[c]], names_shown
  end

  def test_certificates_that_cannot_be_shown
    @server.define_singleton_method(:show_certificates) do |materials|
      super(materials)
      raise Rondo::AddressError, "half a line" if materials.first[:name] == "a"
    end
    show("a")
    show("b")
    assert_equal [%w[a], %w[b]], names_shown
    assert_equal ["! Showing the certificates of before: half a line"], @log.lines
  end

  # The kernel drops descriptors for which the receiver has no room.
  def test_a_message_without_its_descriptor
    master, own = Rondo::MessageSocket.pair
    @worker.instance_variable_set(:@socket, own)
    @worker.define_singleton_method(:stop) { |**| @stopped = true }
    master.notify(:certificates, edition: 2)
    master.notify(:cover, secrets: 1)
    master.notify(:certificates, edition: 3, ios: [Rondo::TLS.hand_on([Rondo::TLS::Material.new.update(name: "a")])])
    master.notify(:certificates, edition: 4)
    @worker.define_singleton_method(:stop) do |**|
      @stopped = true
      give_sign_of_life
    end
    @server.define_singleton_method(:stats) { { requests: 7 } }
    master.io.shutdown(Socket::SHUT_WR)
    @worker.send(:obey)
    assert_equal [%w[a]], names_shown
    assert_equal "! Message of the master (certificates): its descriptor is missing", @log.lines.first
    assert_equal 3, @log.lines.size
    assert @worker.instance_variable_get(:@stopped)
    message = master.receive
    assert_equal [:alive, 7, "3"], [message.kind, message.number(:requests), message[:edition]] # it wants the newest again
  end

  def test_certificates_that_come_while_the_worker_boots
    serving = @worker.instance_variable_get(:@serving)
    @worker.instance_variable_set(:@serving, nil)
    show("a")
    show("b")
    assert_empty names_shown
    @worker.instance_variable_set(:@serving, serving)
    @worker.send(:show_newest)
    assert_equal [%w[a b]], names_shown
  end

  def test_a_master_of_an_earlier_version_has_only_plain_sockets
    assert_equal %w[http http], cover
  end
end
