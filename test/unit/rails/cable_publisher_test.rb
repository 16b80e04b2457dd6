# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require "test_helper"
require "logger"
require "rondo"
require "rondo/rails/cable/listener"
require "rondo/rails/cable/socket" # has a name that the publisher must not take for another one
require "socket"
require "stringio"
require "timeout"
require "tmpdir"

# The sockets by which other processes broadcast, in one process.
class RailsCablePublisherTest < Minitest::Test
  Cable = Rondo::Rails::Cable

  def setup
    @folder = Dir.mktmpdir # of this user alone
    @sockets = []
    @log = StringIO.new
  end

  def teardown
    @sockets.each(&:close)
    FileUtils.rm_rf(@folder)
  end

  def folder
    Cable::SocketFolder.new({ "socket_folder" => @folder })
  end

  def publisher
    Cable::Publisher.new(folder)
  end

  def listener(**limits)
    Cable::Listener.new(folder, Logger.new(@log), **limits) { |name, message| Rondo.publish(name, message) }
  end

  # One line at once, and the next one counts.
  def test_lines_that_come_too_often_are_counted
    log = Cable::ThrottledLog.new(Logger.new(@log, formatter: ->(*, line) { "#{line}\n" }))
    now = 1000.0
    Process.stub(:clock_gettime, ->(*) { now }) do
      4.times { log.error { |times| "refused#{times}" } }
      now += 9.9
      log.error { |times| "refused#{times}" }
      now += 0.2
      2.times { log.error { |times| "refused#{times}" } }
      now += 10
      log.error { |times| "refused#{times}" }
    end
    assert_equal "refused\nrefused (5 times)\nrefused (2 times)\n", @log.string
  end

  # What a connection has no room for is answered once; the rest of that frame is not taken for another one.
  def test_what_comes_behind_a_refusal
    client = Struct.new(:written, :closed, :timeout) do
      def write(bytes) = written << bytes
      def close = self.closed = true
    end.new([], false, 0)
    published = []
    connections, pending = Cable::Budget.new(1), Cable::Budget.new(20)
    connections.take(1)
    connection = Cable::PublisherConnection.new(connections, pending, 5, ->(*given) { published << given })
    frame = [2 + 1 + 30, 1].pack("Nn") + "a" + "x" * 30
    connection.on_message(client, frame[0, 15])
    connection.on_message(client, frame[15, 10])
    assert_equal [["0"], true], client.to_a.first(2)
    connection.on_message(client, [4, 1].pack("Nn") + "ab")
    assert_equal ["0"], client.written
    assert_empty published
  end

  # Longer than the address of a Unix socket.
  def test_a_folder_that_is_deep
    outer = @folder
    @folder = File.join(outer, *Array.new(5) { "f" * 200 })
    listener.start
    made = folder.sockets.first
    assert_equal [0o700, 0o600], [@folder, made].map { |path| File.stat(path).mode & 0o777 }
    File.unlink(made)
    @sockets << server = folder.reach(folder.new_socket) { |address| UNIXServer.new(address) }
    sender = Thread.new { publisher.publish("a", "b") }
    client = accept(server)
    assert_equal %w[a b], read_frame(client)
    client.write("1")
    assert sender.join(60)
  ensure
    @folder = outer
  end

  def listen(pid = Process.pid, name = "00")
    UNIXServer.new(File.join(@folder, "#{pid}-#{name}.sock")).tap { |server| @sockets << server }
  end

  def read_frame(socket)
    length = socket.read(4).unpack1("N")
    name_length = socket.read(2).unpack1("n")
    [socket.read(name_length), socket.read(length - 2 - name_length)]
  end

  def accept(server)
    server.accept.tap { |socket| @sockets << socket }
  end

  def connect(path)
    UNIXSocket.new(path).tap { |socket| @sockets << socket }
  end

  # A job with a time limit is interrupted at any point; the message after it is a message of its own.
  def test_a_publisher_that_is_interrupted_while_it_waits
    server = listen
    publisher = self.publisher
    assert_raises(Timeout::Error) { Timeout.timeout(1) { publisher.publish("a", "late") } }
    sent = Thread.new { publisher.publish("b", "second") }
    first = accept(server)
    assert_equal %w[a late], read_frame(first)
    second = accept(server)
    assert_equal %w[b second], read_frame(second)
    second.write("1")
    assert_nil sent.value
  end

  def test_a_publisher_that_is_interrupted_while_it_sends
    server = listen
    publisher = self.publisher
    assert_raises(Timeout::Error) { Timeout.timeout(1) { publisher.publish("a", "a" * 900_000) } }
    sent = Thread.new { publisher.publish("b", "second") }
    accept(server)
    second = accept(server)
    assert_equal %w[b second], read_frame(second)
    second.write("1")
    assert_nil sent.value
  end

  # Another thread has sent a message, and gets its answer after the block.
  # @yieldparam publisher [Cable::Publisher]
  # @yieldparam server [UNIXServer]
  def with_a_publisher_that_waits
    server = listen
    publisher = self.publisher
    first = Thread.new { publisher.publish("a", "first", patience: 60) }
    socket = accept(server)
    read_frame(socket)
    yield publisher, server
    socket.write("1")
    assert_nil first.value
  end

  # Its time is its own, not what the threads before it have left.
  def test_a_thread_that_waits_for_another_one
    with_a_publisher_that_waits do |publisher|
      error = assert_raises(Cable::Undelivered) { publisher.publish("b", "second", patience: 0.05) }
      assert_equal "the server did not answer in time: the message may not have been sent", error.message
    end
  end

  # A child of a process of which another thread publishes.
  def test_a_fork_while_another_thread_publishes
    with_a_publisher_that_waits do |publisher, server|
      child = fork { exit!(publisher.publish("b", "the child's").nil? ? 0 : 1) }
      other = accept(server)
      assert_equal ["b", "the child's"], read_frame(other)
      other.write("1")
      assert_equal 0, Process.wait2(child).last.exitstatus
    end
  end

  # UNIXSocket.new takes it for a connection; a blocking connect waits as long as the server lives.
  def test_a_server_that_accepts_nothing
    server = listen.tap { |one| one.listen(0) }
    waiting = fill(server.path)
    assert_raises(Cable::Undelivered) { publisher.publish("a", "never", patience: 0.05) }
    sent = Thread.new { publisher.publish("a", "at last", patience: 60) }
    waiting.times { accept(server) }
    socket = accept(server)
    assert_equal ["a", "at last"], read_frame(socket)
    socket.write("1")
    assert_nil sent.value
  end

  # @return [Integer] how many connections fill the queue
  def fill(path)
    0.step do |count|
      @sockets << Socket.new(:UNIX, :STREAM)
      @sockets.last.connect_nonblock(Socket.sockaddr_un(path))
    rescue Errno::EAGAIN
      return count
    end
  end

  def test_no_server
    error = assert_raises(Cable::NoServer) { publisher.publish("a", "x") }
    assert_equal "no server listens in #{@folder}", error.message
    gone = Process.spawn("true").tap { |pid| Process.wait(pid) }
    listen(gone).close
    assert_raises(Cable::NoServer) { publisher.publish("a", "x") }
  end

  # Between two programs of a process nobody listens, and no message is lost without an error.
  def test_a_server_that_restarts
    path = listen(Process.ppid).then { |server| server.path.tap { server.close } }
    error = assert_raises(Cable::Undelivered) { publisher.publish("a", "x", patience: 0.05) }
    assert_equal "the server did not answer in time: the message may not have been sent", error.message
    waiting = publisher
    sent = Thread.new { waiting.publish("a", "x", patience: 60) }
    Timeout.timeout(60) { Thread.pass until pauses?(sent, "publisher") }
    File.unlink(path)
    client = accept(listen(Process.ppid, "01"))
    assert_equal %w[a x], read_frame(client)
    client.close # as a server does that ends
    client = accept(@sockets[-2])
    assert_equal %w[a x], read_frame(client)
    client.write("1")
    assert_nil sent.value
  end

  # The number of a process that was killed belongs to another one now, as in a container that is started again.
  def test_a_number_that_another_process_has
    folder = self.folder
    mine = File.basename(folder.new_socket)
    theirs = mine.sub(/-(\d+)-/) { "-#{$1.to_i + 1}-" }
    paths = [mine, theirs].map { |name| UNIXServer.new(File.join(@folder, name)).then { |one| one.path.tap { one.close } } }
    assert_equal [false, true], (paths.map { |path| folder.ended?(path) })
    File.unlink(paths.first)
    assert_raises(Cable::NoServer) { publisher.publish("a", "x") }
    assert_empty folder.sockets
  end

  # What it had taken may have been sent, so that is another thing than no server.
  def test_a_server_that_ends_without_an_answer
    server = listen
    sent = Thread.new { publisher.publish("a", "x", patience: 1) }
    sent.report_on_exception = false
    accept(server).close
    File.unlink(server.path)
    error = assert_raises(Cable::Undelivered) { sent.value }
    refute_kind_of Cable::NoServer, error
  end

  # Whoever owns the folder would get what is broadcast.
  def test_a_folder_that_others_may_write_is_nobodys_server
    listen
    File.chmod(0o777, @folder)
    error = assert_raises(Cable::Undelivered) { publisher.publish("a", "secret") }
    assert_equal "#{@folder} must belong to this user, and to nobody else (mode 0700)", error.message
    listener.start
    assert_match(/other processes cannot broadcast: #{@folder} must belong/, @log.string)
  end

  def test_sockets_of_processes_that_have_ended
    gone = Process.spawn("true").tap { |pid| Process.wait(pid) }
    listen(gone, "01") # a process of another container cannot be seen
    ended = [Process.pid, gone, Process.ppid].map { |pid| listen(pid, "02").then { |server| server.path.tap { server.close } } }
    assert_equal ended.take(2).sort, listener.stale.sort
  end

  # Who publishes finds a socket at any time.
  def test_the_new_socket_is_there_before_the_old_one_goes
    old = listen.then { |server| server.path.tap { server.close } }
    folder = self.folder
    left = nil
    folder.define_singleton_method(:remove) { |path| left = sockets - [path] and super(path) }
    Cable::Listener.new(folder, Logger.new(@log)) { true }.start
    assert_equal folder.sockets, left
    refute_includes left, old
    assert_equal 1, left.size
  end

  # Without descriptors nobody is let in; with them again, those who wait are.
  def test_a_server_without_descriptors
    with_listener do |path|
      socket = Socket.new(:UNIX, :STREAM).tap { |one| @sockets << one }
      without_descriptors { socket.connect(Socket.sockaddr_un(path)) && wait_until_it_pauses }
      socket.write([8, 1].pack("Nn"), "xhello")
      assert_equal "1", answer(socket)
    end
  end

  # The thread that accepts connections has failed, and sleeps.
  def wait_until_it_pauses
    Timeout.timeout(60) { Thread.pass until Thread.list.any? { |thread| pauses?(thread, "listener") } }
  end

  # Thread#stop? is also true while it calls the system.
  def pauses?(thread, where)
    at = thread.backtrace_locations(0, 1)&.first
    at&.base_label == "sleep" && at.path.end_with?("cable/#{where}.rb")
  end

  # A frame that is not complete is memory: for all of them there is so much.
  def test_pending_frames_have_a_limit_in_sum
    with_listener(pending_bytes: 100) do |path|
      pair = Array.new(2) { connect(path) }.each { |socket| socket.write([80, 1].pack("Nn"), "x", "." * 60) }
      refused = IO.select(pair, nil, nil, 30).first.first
      assert_equal ["0", nil], [answer(refused), answer(refused)]
      (pair - [refused]).first.then do |kept|
        kept.write("." * 18)
        assert_equal "1", answer(kept)
      end
      other = connect(path)
      other.write([80, 1].pack("Nn"), "x", "." * 77)
      assert_equal "1", answer(other)
    end
  end

  def test_a_frame_that_does_not_end
    with_listener(patience: 0.05) do |path|
      socket = connect(path)
      socket.write([80, 1].pack("Nn"), "x")
      assert_nil answer(socket)
    end
  end

  def test_connections_have_a_limit_and_the_log_one_line
    with_listener(connections: 1) do |path|
      first = connect(path)
      first.write([3, 1].pack("Nn"), "x")
      assert_equal "1", answer(first)
      3.times { assert_nil answer(connect(path)) }
      assert_equal ["! Action Cable: a process that broadcasts was refused: 1 may be connected at once"],
                   @log.string.lines(chomp: true).map { |line| line[/!.*/] }
    end
  end

  # @return [String, nil] nil: it was closed
  def answer(socket)
    Timeout.timeout(30) { socket.read(1) }
  rescue Errno::ECONNRESET, Errno::EPIPE
    nil
  end

  def with_listener(**limits)
    server = Rondo::Server.new(->(_) { [200, {}, []] }).tap { |one| one.listen("tcp://127.0.0.1:0") }
    thread = Thread.new { server.run }
    Timeout.timeout(30) { Thread.pass until Rondo::PubSub.serving? }
    listener(**limits).start
    path = Dir.glob(File.join(@folder, "*.sock")).first
    assert path, @log.string
    yield path
  ensure
    server.stop
    thread.join
  end

  def without_descriptors
    limits = Process.getrlimit(:NOFILE)
    Process.setrlimit(:NOFILE, 3, limits.last)
    yield
  ensure
    Process.setrlimit(:NOFILE, *limits)
  end
end
