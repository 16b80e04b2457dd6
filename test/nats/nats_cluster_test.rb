# frozen_string_literal: true

# Three NATS in a cluster that are killed in turn: nothing is lost, nothing comes twice.
# SPDX-License-Identifier: MIT

require_relative "../integration/nats/nats_case"
require "support/confirming"

class NatsClusterTest < NatsCase
  include Confirming

  APP = StreamsCase::APP # one test has the other one

  def test_nodes_that_are_killed_in_turn
    a, b = Array.new(2) { server(verb: cluster_verb) }
    here = reader(a, "kept:x")
    there = reader(b, "kept:x")
    eventually("two subscribed") { @nodes.sum { |node| node.clients_of("rondo.p.kept=3Ax") } == 2 }
    publish(a, "kept:x", "first")
    [here, there].each { |each| each.read_until { each.seen.include?("first") } }
    count = 0
    @nodes.each do |node|
      node.kill
      10.times { publish(count.odd? ? a : b, "kept:x", count += 1) }
      [here, there].each { |each| each.read_until { each.seen.include?(count.to_s) } }
      node.start
      10.times { publish(count.odd? ? a : b, "kept:x", count += 1) }
      [here, there].each { |each| each.read_until { (1..count).all? { |number| each.seen.include?(number.to_s) } } }
      eventually("a whole cluster") { whole? }
    end
    assert_equal here.seen, there.seen
    assert_equal ["first", *(1..count).map(&:to_s)], here.seen.sort_by(&:to_i)
    assert_equal 0, here.resets + there.resets
  end

  # A publisher at each server goes on while a node dies. Whoever is told `false` does not know.
  def test_what_was_confirmed_is_there_when_nodes_are_killed_without_notice
    write "config.ru", Confirming::APP
    pair = Array.new(2) { server(verb: cluster_verb) }
    readers = pair.map { |each| reader(each, "kept:x") }
    first = ask(pair.first, "kept:x", "first")
    readers.each { |each| each.read_until { each.seen.include?("first") } }
    results = @nodes.each_with_index.reduce({ "first" => first }) do |known, (node, round)|
      publishers = pair.each_with_index.map { |each, index| Publisher.new("#{round}-#{index}-") { |message| ask(each, "kept:x", message) } }
      publishers.each(&:wait_for_more)
      node.kill
      publishers.each(&:wait_for_more)
      found = publishers.map(&:finish)
      node.start
      eventually("a whole cluster") { whole? }
      [known, *found].reduce(:merge)
    end
    check_confirmed(readers, results)
  end

  private

  # What is published, one after the other, and the answers.
  class Publisher
    PATIENCE = 120
    # Confirmed ones: the history must keep them, and clients that do not read meanwhile.
    MOST = 200

    def initialize(name)
      @results = {}
      @mutex = Mutex.new
      @changed = ConditionVariable.new
      @thread = Thread.new do
        until @over || confirmed == MOST
          message = "#{name}#{@results.size}"
          result = yield message
          @mutex.synchronize { (@results[message] = result) and @changed.signal }
        end
      end
    end

    # Several are confirmed from now on.
    def wait_for_more
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
      @mutex.synchronize do
        from = confirmed
        until confirmed >= [from + 5, MOST].min
          left = limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)
          raise "nothing is confirmed any more" unless left.positive?

          @changed.wait(@mutex, left)
        end
      end
    end

    # @return [Hash{String => String}]
    def finish
      @over = true
      @thread.join
      @results
    end

    private

    def confirmed
      @results.each_value.count { |result| result != "false" }
    end
  end
  private_constant :Publisher

  def cluster_verb
    "nats '#{@nodes.map(&:url).join(",")}', jetstream: true, replicas: 3, timeout: 2"
  end

  # All of it, nothing twice, at both servers, under the ids that were told. A replica of a node that was killed may lack
  # the oldest messages: NATS takes them for deleted. Who comes late and reads there is told.
  def check_confirmed(readers, results)
    confirmed = results.reject { |_, result| result == "false" }.sort_by { |_, id| id.to_i }.map(&:first)
    assert_operator confirmed.size, :>, 30
    late = reader(server(verb: cluster_verb), "kept:x", after: results["first"])
    [*readers, late].each do |each|
      each.read_until { (confirmed.last(30) - each.seen).empty? }
      assert_equal [], each.seen.tally.select { |_, count| count > 1 }.keys, "doubles"
    end
    readers.each { |each| assert_equal [[], 0], [confirmed - each.seen, each.resets] }
    assert_equal readers.first.seen, readers.last.seen
    ids = confirmed.reject { |message| results[message] == "true" }
    assert_equal ids, readers.first.seen & ids
    missing = confirmed.drop(1) - late.seen
    assert_equal late.resets.zero? ? [] : confirmed.drop(1).first(missing.size), missing
  end

  def start_store
    @routes = Array.new(3) { HeldPort.new }
    urls = @routes.map { |route| "nats://127.0.0.1:#{route.number}" }
    @nodes = @routes.each_with_index.map do |route, index|
      NatsServer.new(*STORE, "-n", "n#{index}", "--cluster_name", "c", "--cluster", "nats://127.0.0.1:#{route.number}",
                     "--routes", urls.join(","))
    end
    eventually("a leader") { @nodes.any? { |node| node.monitor("jsz")["meta_cluster"].to_h["leader"] } }
  end

  def stop_store
    @nodes.each(&:close)
    @routes.each(&:close)
  end

  # All replicas of the stream follow its leader.
  def whole?
    details = @nodes.flat_map { |node| node.monitor("jsz?streams=1")["account_details"].to_a }
    clusters = details.flat_map { |each| each["stream_detail"].to_a }.filter_map { |each| each["cluster"] }
    clusters.any? { |each| each["leader"] && each["replicas"].to_a.count { |replica| replica["current"] } == 2 }
  rescue SystemCallError
    false
  end
end
