# frozen_string_literal: true

# Messages published in one worker and received in the others, while workers die, are stopped and replaced, and while
# the master becomes another program.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require_relative "../../support/websocket_peer"

class ClusterPubsubTest < ClusterCase
  PUSH = <<~'RUBY'
    Rondo::PubSub.history("kept", size: 100_000)
    class Push
      def on_open(client) = client.write("pid #{Process.pid}")

      def on_message(client, data)
        verb, channel, rest = data.split(" ", 3)
        case verb
        when "sub" then client.subscribe(channel)
        when "since" then client.subscribe(channel, since: Integer(rest)) { |_, text, id| client.write("#{id} #{text}") }
        when "pub" then said = client.publish(channel, rest)
        when "unsub" then client.unsubscribe(channel)
        when "flood" then 200.times { client.publish(channel, "x" * 1000) }
        end
        client.write("done #{said} #{rest}")
      end

      def on_close(client) = client.publish("ends", "of #{Process.pid}")
    end
    run lambda { |env|
      env["rack.upgrade"] = Push.new if env["rack.upgrade?"]
      [200, {}, ["ok"]]
    }
  RUBY

  # A client that knows which worker it is connected to.
  class Peer < WebsocketPeer
    READY = "ready"

    attr_reader :pid

    def initialize(url)
      super
      @pid = hear.delete_prefix("pid ").to_i
    end

    # Other messages that come meanwhile are kept for later.
    def tell(order)
      say(order)
      later = []
      later << hear until later.last&.start_with?("done ")
      answer = later.pop
      (@later ||= []).concat(later)
      answer
    end

    # Subscribes, and returns when the hub knows it: then `other`, a client of another worker, is heard.
    def listen(channel, other)
      tell("sub #{channel}")
      until @later.include?("#{READY} #{channel}") # the word alone may be that of another channel
        other.tell("pub #{channel} #{READY} #{channel}")
        tell("nothing") # what has come by now is kept
      end
    end

    def next_message
      text = @later&.shift || hear
      text = @later&.shift || hear while text.start_with?("#{READY} ")
      text
    end

    # No message comes for a while when a server starts anew on a busy machine.
    def hear
      tries ||= 0
      super
    rescue RawClient::Timeout
      (tries += 1) < 2 ? retry : raise
    end
  end

  def setup
    super
    write "config.ru", PUSH
    @peers = []
  end

  def teardown
    @peers.each(&:close)
    super
  end

  def connect(server)
    Peer.new("http://127.0.0.1:#{server.port}").tap { |peer| @peers << peer }
  end

  # @return [Array<Peer>] one in each worker
  def peer_in_each(server, count)
    found = {}
    (count * 20).times do
      break if found.size == count

      peer = connect(server)
      found[peer.pid] ||= peer
    end
    assert_equal count, found.size
    found.values
  end

  def test_all_workers_hear_it_once
    server = cluster(workers: 3)
    a, b, c = peer_in_each(server, 3)
    [a, b].each { |peer| peer.listen("news", c) }
    b.listen("other", a)
    c.tell("pub news from c")
    a.tell("pub news from a")
    a.tell("pub other to b")
    assert_equal ["from a", "from c"], Array.new(2) { a.next_message }.sort # two workers, in no order
    heard = Array.new(3) { b.next_message }
    assert_equal ["from a", "from c", "to b"], heard.sort
    assert_operator heard.index("from a"), :<, heard.index("to b")
    a.tell("unsub news")
    c.tell("pub news for b")
    c.tell("pub news for b again")
    assert_equal(["for b", "for b again"], [b.next_message, b.next_message])
    assert_equal "done  ", a.tell("nothing")
  end

  # The hub assigns the id, so it means the same in every worker.
  def test_a_history_of_all_workers
    server = cluster(workers: 2)
    a, b = peer_in_each(server, 2)
    a.tell("since kept 0")
    5.times { |number| (number.even? ? a : b).tell("pub kept #{number}") }
    ids, texts = Array.new(5) { a.next_message.split }.transpose
    assert_equal %w[0 1 2 3 4], texts.sort
    assert_equal ids.map(&:to_i).sort, ids.map(&:to_i)
    b.tell("since kept #{ids[2]}")
    assert_equal [ids[3], ids[4]], [b.next_message, b.next_message].map { |text| text.split.first }
    b.tell("since kept #{ids[3]}") # in place of the first one
    assert_equal ids[4], b.next_message.split.first
    b.tell("pub kept last")
    assert_equal(%w[last last], [a, b].map { |peer| peer.next_message.split.last })
  end

  def test_the_master_publishes
    write "config/rondo.rb", <<~RUBY
      after_worker_exit { |worker| Rondo.publish("ends", "of worker \#{worker.pid}") }
      after_worker_shutdown { warn "in the mold: \#{Rondo.publish("ends", "never")}" }
    RUBY
    server = cluster
    a, b = peer_in_each(server, 2)
    a.listen("ends", b)
    Process.kill("KILL", b.pid)
    assert_equal "of worker #{b.pid}", a.next_message
    server.wait_for_log(/^in the mold: false$/)
  end

  # The worker ends while it publishes and while its clients listen: its last messages arrive, and so do those of
  # others.
  def test_a_worker_dies
    server = cluster(workers: 3)
    a, b, c = peer_in_each(server, 3)
    b.listen("news", c)
    100.times { |number| c.tell("pub news c#{number}") }
    200.times do |number|
      Process.kill("KILL", c.pid) if number == 50
      a.tell("pub news a#{number}")
    end
    said = Array.new(300) { b.next_message }.partition { |text| text.start_with?("c") } # in order from each of them
    assert_equal [Array.new(100) { |number| "c#{number}" }, Array.new(200) { |number| "a#{number}" }], said
  end

  # The messages of closing clients leave the worker before it ends.
  def test_a_worker_is_one_too_many
    server = cluster(workers: 2)
    peers = peer_in_each(server, 2)
    youngest = workers(server)[1]
    leaving, staying = peers.partition { |peer| peer.pid == youngest }.map(&:first)
    staying.listen("ends", leaving)
    assert_equal youngest, leaving.pid
    server.signal("TTOU")
    assert_equal 1001, leaving.hear_close.first
    leaving.close
    assert_equal "of #{youngest}", staying.next_message
  end

  # No process waits for a stopped one, and other processes lose no message.
  def test_a_worker_that_is_stopped
    write "config/rondo.rb", "hub_queue_bytes '1m'\nmax_pending_bytes '64m'\n"
    server = cluster(workers: 3)
    a, b, c = peer_in_each(server, 3)
    [b, c].each { |peer| peer.listen("news", a) }
    halt(c.pid)
    15.times do # few enough for a worker that reads, and too many for one that does not
      a.tell("flood news")
      200.times { b.next_message }
    end
    server.wait_for_log(/^! Worker \d \(PID: #{c.pid}\) does not read published messages/)
    Process.kill("CONT", c.pid)
    assert_equal "done  back", c.tell("are you back")
    a.tell("pub news last")
    nil until c.next_message == "last"
  end

  # ---- while everything is replaced ----

  # Publishes number after number. If it is unknown whether one was accepted, it publishes that number again.
  class Publisher
    # @return [Array<Integer>] where it went on by another connection, perhaps in another worker
    attr_reader :count, :doubtful, :moves

    def initialize(connect)
      @connect = connect
      @count = 0
      @doubtful = []
      @moves = []
      @thread = Thread.new { work }
    end

    # Waits for this many more.
    def more(count)
      goal = @count + count
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      IO.select(nil, nil, nil, 0.005) until @count >= goal || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      raise "only #{@count} of #{goal}" if @count < goal
    end

    def stop
      @over = true
      @thread.value
    end

    private

    def work
      until @over
        peer ||= @connect.call
        sent = @count
        answer = peer.tell("pub kept #{sent}") rescue nil
        next peer = give_up(peer, sent) unless answer
        raise answer unless answer == "done true #{sent}"

        @count += 1
      end
    end

    def give_up(peer, sent)
      peer.close
      @doubtful << sent
      @moves << sent
      nil
    end
  end

  # Receives a whole channel. Whenever it is closed, it comes back with the last id.
  class Listener
    attr_reader :numbers, :returns

    def initialize(connect)
      @connect = connect
      @numbers = []
      @returns = -1
      @last = 0
      @thread = Thread.new { work }
    end

    # Until it has all numbers up to this one.
    def wait_for(number)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 60
      until @numbers.uniq.size > number || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
        IO.select(nil, nil, nil, 0.005)
      end
      @thread.kill.join
    end

    private

    def work
      loop do
        @returns += 1
        peer = @connect.call
        peer.say("since kept #{@last}")
        loop { take(peer.hear) }
      rescue RuntimeError, SystemCallError # closed
        peer&.close
      end
    end

    def take(text)
      return if text.start_with?("done")

      @last, number = text.split.map(&:to_i)
      @numbers << number
    end
  end

  def connector(server)
    lambda do
      connect(server)
    rescue SystemCallError, TypeError, RuntimeError # the worker went before it answered
      retry
    end
  end

  # What goes by one worker stays in its order. The hub may read a worker that has ended after the next one.
  def assert_heard_all(listener, publisher, last)
    listener.wait_for(last)
    heard = listener.numbers
    by_connection = (heard - publisher.doubtful).group_by { |number| publisher.moves.count { |move| move <= number } }
    by_connection.each_value { |some| assert_equal some.sort, some }
    assert_equal (0..last).to_a, heard.uniq.sort
    assert_empty heard.tally.select { |number, times| times > 1 && !publisher.doubtful.include?(number) }
  end

  def test_nothing_is_lost_while_everything_is_replaced
    server = cluster(workers: 2)
    publisher = Publisher.new(connector(server))
    listeners = Array.new(3) { Listener.new(connector(server)) }
    publisher.more(50)
    after_signal(server, "USR2", /^- Restarting\.\.\./)
    wait_for_workers(server, 2, from: server.log.index("Restarting..."))
    publisher.more(50)
    from = server.log.bytesize
    server.signal("USR1")
    wait_for_workers(server, 2, from: from)
    publisher.more(50)
    Process.kill("KILL", workers(server).values.last)
    publisher.more(50)
    publisher.stop
    listeners.each { |listener| assert_heard_all(listener, publisher, publisher.count - 1) }
    assert_operator listeners.sum(&:returns), :>, 3
  end
end
