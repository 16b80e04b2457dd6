# frozen_string_literal: true

# Several Redis servers that stand in for each other: a master with replicas that three Sentinels watch.
# SPDX-License-Identifier: MIT

require "support/redis_server"

# One Sentinel.
class RedisSentinel < ChildServer
  # @param master [Integer] port of the master
  # @param password [String, nil] of the nodes
  # @param own_password [String, nil]
  def initialize(master, password: nil, own_password: nil)
    @own_password = own_password
    lines = passwords
    lines << "sentinel auth-pass main #{password}" if password
    super() do
      @config = File.join(folder, "sentinel.conf")
      File.write(@config, [*head, "sentinel monitor main 127.0.0.1 #{master} 2",
                           "sentinel down-after-milliseconds main 700", "sentinel failover-timeout main 3000",
                           "sentinel parallel-syncs main 2", *lines].map { |line| "#{line}\n" }.join)
    end
  end

  # @return [String] the output of redis-cli
  def cli(*words)
    words = ["-a", @own_password, "--no-auth-warning", *words] if @own_password
    IO.popen(["redis-cli", "-p", port.to_s, *words, { err: %i[child out] }], &:read).chomp
  end

  private

  def passwords
    return [] unless @own_password

    ["requirepass #{@own_password}", "sentinel sentinel-pass #{@own_password}"]
  end

  def head
    ["port #{port}", "bind 127.0.0.1", "dir #{folder}", "loglevel warning"]
  end

  def command
    ["redis-server", @config, "--sentinel"]
  end
end

# A master, replicas, and three Sentinels.
class RedisFailover
  # @return [Array<RedisServer>] the first one began as master
  attr_reader :nodes
  # @return [Array<RedisSentinel>]
  attr_reader :sentinels

  # @param replicas [Integer]
  # @param words [Array<String>] options of each redis-server
  # @param password [String, nil] of the nodes
  # @param sentinel_password [String, nil]
  def initialize(*words, replicas: 1, password: nil, sentinel_password: nil)
    @password = password
    master = RedisServer.new(*words)
    others = Array.new(replicas) { RedisServer.new(*words, "--replicaof", "127.0.0.1", master.port.to_s) }
    @nodes = [master, *others]
    @sentinels = Array.new(3) { RedisSentinel.new(master.port, password: password, own_password: sentinel_password) }
    wait("replicas and Sentinels know each other") { whole? }
  end

  # @param options [String] of the address
  def url(credentials = nil, options: nil)
    hosts = @sentinels.map { |each| "127.0.0.1:#{each.port}" }.join(",")
    "redis+sentinel://#{"#{credentials}@" if credentials}#{hosts}/main#{"?#{options}" if options}"
  end

  # @return [RedisServer] as the Sentinels say
  def master
    port = @sentinels.last.cli("SENTINEL", "get-master-addr-by-name", "main").split.last.to_i
    @nodes.find { |each| each.port == port }
  end

  # @return [String] the output of redis-cli at the master
  def cli(*words)
    words = ["-a", @password, "--no-auth-warning", *words] if @password
    master.cli(*words)
  end

  # A node that was killed is a replica from now on; returns when the next one may be killed. A Sentinel would tell it
  # that, too, but takes ten seconds.
  # @param node [RedisServer]
  def bring_back(node)
    node.start
    node.cli("REPLICAOF", "127.0.0.1", master.port.to_s)
    wait_until_whole
  end

  def wait_until_whole
    wait("all are there again") { whole? }
  end

  def wait(what)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + ChildServer::DEADLINE
    until yield
      raise "this never came: #{what}" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      IO.select(nil, nil, nil, 0.05)
    end
  end

  def close
    [*@sentinels, *@nodes].each(&:close)
  end

  private

  def whole?
    @sentinels.all? { |each| facts(each).then { |facts| facts && known?(facts) } }
  end

  def known?(facts)
    replicas = @nodes.size - 1
    facts["flags"] == "master" && facts["num-other-sentinels"] == "2" && facts["num-slaves"] == replicas.to_s &&
      linked == replicas
  end

  def linked
    (master ? cli("INFO", "replication") : "").scan(/^slave\d+:.*state=online/).size
  end

  def facts(sentinel)
    lines = sentinel.cli("SENTINEL", "master", "main").lines(chomp: true)
    lines.each_slice(2).to_h if lines.size.even?
  end
end
