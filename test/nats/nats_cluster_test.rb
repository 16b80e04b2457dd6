# frozen_string_literal: true

# Three NATS in a cluster that are killed in turn: nothing is lost, nothing comes twice.
# SPDX-License-Identifier: MIT

require_relative "../integration/nats/nats_case"

class NatsClusterTest < NatsCase
  def test_nodes_that_are_killed_in_turn
    a, b = Array.new(2) { server(verb: "nats '#{@nodes.map(&:url).join(",")}', jetstream: true, replicas: 3, timeout: 2") }
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

  private

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
