# frozen_string_literal: true

# Messages between processes: whole messages, many descriptors, and a peer that is gone.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/cluster/message_socket"

class MessageSocketTest < Minitest::Test
  def setup
    @one, @other = Rondo::MessageSocket.pair
  end

  def teardown
    [@one, @other].each { |socket| socket.close unless socket.closed? }
  end

  def test_kinds_and_fields
    assert @one.notify(:fork, index: 3, text: "a\nb ü", empty: "")
    message = @other.receive
    assert_equal [:fork, 3, "a\nb ü", ""], [message.kind, message.number(:index), message[:text], message[:empty]]
    assert_nil message[:missing]
    assert_equal 0, message.number(:missing)
    assert_equal Encoding::UTF_8, message[:text].encoding
  end

  # The kernel drops what does not fit. What is used in spite of that would be another socket than it is called.
  def test_descriptors_for_which_there_is_no_room
    reader, writer = IO.pipe
    pid = fork do
      GC.disable # it would close files that tests have left
      leave_room_for_one_descriptor
      message = @other.receive
      writer.write("#{message.ios.size} #{message.dropped} ")
      message.check
    rescue IOError => e
      writer.write("#{e.message} #{message.ios.all?(&:closed?)}")
    ensure
      exit!(0)
    end
    ios = Array.new(3) { File.open(File::NULL) }
    @one.notify(:fork, ios: ios)
    writer.close
    assert_equal "1 2 2 of its descriptors did not fit into this process (see ulimit -n) true", reader.read
  ensure
    Process.wait(pid)
    [reader, writer, *ios].each(&:close)
  end

  def leave_room_for_one_descriptor
    Process.setrlimit(:NOFILE, Dir.children("/proc/self/fd").map(&:to_i).max + 2)
    files = []
    loop { files << File.open(File::NULL) }
  rescue Errno::EMFILE
    files.last.close
  end

  def test_all_descriptors_are_there
    @one.notify(:fork, ios: [$stdin])
    message = @other.receive
    assert_equal [nil, 0], [message.check, message.dropped]
    message.ios.each(&:close)
  end

  def test_last_words_of_an_end_that_did_not_read_ours
    @one.notify(:never_read)
    @other.notify(:failed, message: "why")
    @other.close
    assert_equal "why", @one.receive_now[:message]
    assert_nil @one.receive_now
  end

  def test_zero_bytes_do_not_tear_a_message_apart
    @one.notify(:failed, message: "a\0b")
    assert_equal "a b", @other.receive[:message]
  end

  def test_messages_stay_apart
    3.times { |n| @one.notify(:alive, requests: n) }
    assert_equal [0, 1, 2], Array.new(3) { @other.receive.number(:requests) }
    assert_equal false, @other.receive_now
  end

  def test_a_message_is_seen_beside_signals
    before = trap("USR2") { nil }
    program = "5000.times { Process.kill(:USR2, #{Process.pid}); 300.times { } }"
    sender = spawn("ruby", "--disable-gems", "-e", program)
    missed = 0
    until Process.wait(sender, Process::WNOHANG)
      @one.notify(:ready)
      @other.receive_now or (missed += 1) && @other.receive
    end
    assert_equal 0, missed
  ensure
    trap("USR2", before)
  end

  def test_many_descriptors
    reader, writer = IO.pipe
    @one.notify(:fork, ios: [writer] * 450, index: 1)
    message = @other.receive
    assert_equal [450, 1], [message.ios.size, message.number(:index)]
    assert_predicate message.ios.last, :close_on_exec?
    message.ios.last.syswrite("x")
    assert_equal "x", reader.read(1)
  ensure
    [reader, writer, *message&.ios].each(&:close)
  end

  # As when too many descriptors are in flight.
  def test_descriptors_of_a_message_that_broke_off
    reader, writer = IO.pipe
    @one.send(:send_message, [Rondo::MessageSocket::MORE], [reader] * 3)
    @one.notify(:fork, ios: [writer])
    message = @other.receive
    assert_equal 1, message.ios.size
    message.ios.first.syswrite("x")
    assert_equal "x", reader.read(1)
    @one.send(:send_message, [Rondo::MessageSocket::MORE], [reader])
    @one.notify(:stop)
    assert_equal [[], {}], @other.receive.to_a.values_at(2, 1)
  ensure
    [reader, writer, *message&.ios].each(&:close)
  end

  def test_the_other_end_has_gone
    @one.notify(:last)
    @one.close
    assert_equal :last, @other.receive_now.kind
    assert_nil @other.receive_now
    assert_nil @other.receive
    refute @other.notify(:anybody)
  end

  def test_an_end_from_another_process
    copy = @other.io.dup
    copy.autoclose = false
    adopted = Rondo::MessageSocket.adopt(copy.fileno)
    @one.notify(:hello)
    assert_equal :hello, adopted.receive.kind
  ensure
    adopted&.close
  end
end
