# frozen_string_literal: true

# A Redis Cluster of three masters, with or without replicas, on free ports. A test can kill nodes and move slots.
# SPDX-License-Identifier: MIT

require "support/redis_server"

class RedisCluster
  SLOTS = 16_384

  # One node; its bus has a port of its own.
  class Node < RedisServer
    def initialize(*words)
      @bus = HeldPort.new
      super("--cluster-enabled", "yes", "--cluster-port", @bus.number.to_s, "--cluster-node-timeout", "1000", *words)
    end

    # @return [String]
    def id
      @id ||= cli("CLUSTER", "MYID")
    end

    def bus_port
      @bus.number
    end

    def close
      super
      @bus.close
    end
  end

  # @return [Array<RedisServer>] masters first
  attr_reader :nodes

  # @param replicas [Integer] of each master
  def initialize(*words, replicas: 0)
    @nodes = Array.new(3 * (1 + replicas)) { Node.new(*words) }
    @nodes.first(3).each_with_index { |node, index| give_slots(node, index) }
    @nodes.drop(1).each { |node| node.cli("CLUSTER", "MEET", "127.0.0.1", @nodes[0].port.to_s, @nodes[0].bus_port.to_s) }
    wait("all nodes know each other") { @nodes.all? { |node| node.cli("CLUSTER", "NODES").lines.grep(/ connected/).size == @nodes.size } }
    @nodes.drop(3).each_with_index { |node, index| node.cli("CLUSTER", "REPLICATE", @nodes[index % 3].id) }
    wait_until_whole
  end

  # @return [String] of the first three nodes
  def url(credentials = nil)
    hosts = @nodes.first(3).map { |node| "127.0.0.1:#{node.port}" }.join(",")
    "redis+cluster://#{"#{credentials}@" if credentials}#{hosts}"
  end

  # @param key [String]
  # @return [Node] the master that has it
  def owner(key)
    slot = slot_of(key)
    alive.each do |node|
      port = rows(node).filter_map { |from, to, at| at if slot.between?(from, to) }.first
      found = port && alive.find { |each| each.port == port && each.cli("ROLE").start_with?("master") }
      return found if found
    end
    nil
  end

  # @return [String] the output of redis-cli, wherever the key is
  def cli(*words)
    alive.first.cli("-c", *words).lines.reject { |line| line.start_with?("-> Redirected") }.join.chomp
  end

  # Moves the slot of a key with all that is in it, in the steps of `redis-cli --cluster reshard`.
  # @yield while some keys are moved already
  def move(key, to)
    slot = slot_of(key).to_s
    from = owner(key)
    to.cli("CLUSTER", "SETSLOT", slot, "IMPORTING", from.id)
    from.cli("CLUSTER", "SETSLOT", slot, "MIGRATING", to.id)
    moved = 0
    until (keys = from.cli("CLUSTER", "GETKEYSINSLOT", slot, "1").lines(chomp: true)).empty?
      from.cli("MIGRATE", "127.0.0.1", to.port.to_s, "", "0", "5000", "KEYS", *keys)
      yield if block_given? && (moved += 1) == 1
    end
    [to, from, *alive].uniq.each { |node| node.cli("CLUSTER", "SETSLOT", slot, "NODE", to.id) if master?(node) }
  end

  # A node that was killed comes back; returns when the next one may be killed.
  # @param node [Node]
  def bring_back(node)
    node.start
    wait_until_whole
  end

  def wait_until_whole
    wait("the cluster is whole") do
      alive.all? { |node| whole?(node) } && alive.none? { |node| node.cli("CLUSTER", "NODES").match?(/fail|handshake|disconnected/) }
    end
  end

  def wait(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ChildServer::DEADLINE
    until (found = yield)
      raise "this never came: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      IO.select(nil, nil, nil, 0.05)
    end
    found
  end

  def close
    @nodes.each(&:close)
  end

  private

  def alive
    @nodes.select(&:alive?)
  end

  def master?(node)
    node.cli("ROLE").start_with?("master")
  end

  def slot_of(key)
    (@slots ||= {})[key] ||= alive.first.cli("CLUSTER", "KEYSLOT", key).to_i
  end

  def give_slots(node, index)
    node.cli("CLUSTER", "SET-CONFIG-EPOCH", (index + 1).to_s)
    node.cli("CLUSTER", "ADDSLOTSRANGE", (index * SLOTS / 3).to_s, (((index + 1) * SLOTS / 3) - 1).to_s)
  end

  # Redis of the other side of a link may be gone, and a replica has the link to its master.
  def whole?(node)
    info = node.cli("CLUSTER", "INFO")
    return false unless info.include?("cluster_state:ok") && info.include?("cluster_known_nodes:#{@nodes.size}")

    node.cli("ROLE").then { |role| role.start_with?("master") || role.include?("connected") }
  end

  # From, to, and the port of the master.
  def rows(node)
    node.cli("CLUSTER", "NODES").lines.flat_map do |line|
      _id, at, flags, _, _, _, _, _, *slots = line.split
      next [] unless flags.include?("master") && !flags.include?("fail")

      port = at[/:(\d+)@/, 1].to_i
      slots.grep(/\A\d/).map { |range| [*range.split("-").map(&:to_i)].then { |from, to| [from, to || from, port] } }
    end
  end
end
