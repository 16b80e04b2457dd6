# frozen_string_literal: true

# A master without processes, for the unit tests of the classes that decide in it. It records what they ask for. Its
# molds are sockets, and the test holds their other ends. Its clock stands still until the test moves it.
# SPDX-License-Identifier: MIT

require "minitest/mock"
require "rondo"
require "rondo/cluster/generations"
require "rondo/cluster/message_socket"
require "rondo/cluster/supervisor"
require "rondo/cluster/worker"

class FakeCluster
  SETTINGS = { max_requests: 0, max_memory: 0, max_age: 0, recycle_jitter: 0, memory_measure: :rss,
               worker_check_interval: 5, worker_boot_timeout: 60, worker_timeout: 60, worker_shutdown_timeout: 30,
               mold_boot_timeout: 60, hard_request_timeout_ms: 0, worker_culling_strategy: :youngest }.freeze

  # Runs no timer by itself; {#pass} runs the timers that are due.
  class Loop
    def initialize
      @timers = []
    end

    def every(_seconds, &block)
      @timers << block
    end

    def watch(_io); end
    def unwatch(_io); end

    def pass
      @timers.each(&:call)
    end
  end

  # Lines of the log.
  class Log < Array
    alias say push
    alias error push
  end

  # Sockets that are not connected.
  class Slots
    attr_reader :room
    attr_accessor :edition, :materials

    def initialize(room, done)
      @room = room
      @done = done
      @io = File.open(File::NULL)
      @open = {}
    end

    def inbox(_index) = @io
    def outboxes = [@io]
    def listeners(_index) = [@io]
    def own_listeners(index) = @open[index] ? [@io] : []
    def schemes(ios) = Array.new(ios.size, "http").join(" ")
    def secrets(_ios) = nil
    def grow(indexes) = indexes.each { |index| @open[index] = true }

    def close(index)
      @done << "close #{index}" if @open.delete(index)
    end

    def end
      @io.close
    end
  end

  # Rows of Hashes.
  class Board
    attr_reader :size, :fd

    def initialize(size, file)
      @size = size
      @fd = file
      @rows = Array.new(size) { Hash.new(0) }
    end

    def set(row, name, value) = @rows.fetch(row)[name] = value
    def get(row, name) = @rows.fetch(row)[name]
    def clear(row) = @rows.fetch(row).clear
  end

  # Links that are not connected.
  class Hub
    attr_reader :unlinked

    def initialize(file)
      @file = file
      @unlinked = []
      @count = 0
    end

    def link(_seat) = [@count += 1, @file.dup]
    def unlink(number) = @unlinked << number
    def each_outage; end
  end

  # A mold, or a worker, at the other end of its socket.
  class Peer
    attr_reader :socket, :name

    def initialize(name, socket)
      @name = name
      @socket = socket
    end

    def notify(...) = @socket.notify(...)

    # @return [Array<String>] the messages it got, such as "stop 0.1"
    def heard
      found = []
      while (message = @socket.receive_now)
        message.ios.each(&:close)
        found << "#{message.kind} #{@name}"
      end
      found
    end
  end

  attr_reader :settings, :log, :loop, :slots, :board, :hub, :engine, :done, :workers
  attr_accessor :now, :generations, :supervisor, :tickets

  def initialize(room: 4, **settings)
    @settings = SETTINGS.merge(settings)
    @file = File.open(File::NULL)
    @now = 1000.0
    @log = Log.new
    @loop = Loop.new
    @done = []
    @slots = Slots.new(room, @done)
    @board = Board.new(room * 2, @file.fileno)
    @hub = Hub.new(@file)
    @workers = []
  end

  def end
    @slots.end
    @file.close
    [@workers, @pairs].compact.flatten.each { |peer| peer.socket.close unless peer.socket.closed? }
  end

  # ---- what the classes ask and report ----

  def reaper? = true
  def reconciled = @done << "reconciled"
  def reconcile = @done << "reconcile"
  def generation_failed = @done << "generation failed"
  def cannot_start(reason) = @done << "cannot start: #{reason}"
  def worker_alive(_worker); end
  def worker_ended(worker) = @done << "ended #{worker.index}.#{worker.mold.generation}"
  def notify_booted(mold) = (@done << "booted #{mold.generation}" if mold.plugins)
  def introduce(_mold); end
  def asked(verb) = @done << "asked for #{verb}"
  def stopping? = false
  def orphans = []
  def not_forked(message) = @supervisor&.not_forked(message)

  # ---- what the test does ----

  # @return [Array(MessageSocket, Peer)] both ends
  def pair(name)
    own, other = Rondo::MessageSocket.pair
    peer = Peer.new(name, other)
    (@pairs ||= []) << Peer.new(name, own) << peer
    [own, peer]
  end

  # @return [MoldHandle] of a mold that forks: when it is asked for a worker, that is the last of {#workers}
  def mold(generation, state: :ready)
    forked = @workers
    done = @done
    socket = Object.new
    socket.define_singleton_method(:notify) do |kind, ios: [], **fields|
      done << "#{kind} #{fields[:index]}"
      forked << Peer.new("#{fields[:index]}.#{generation}", Rondo::MessageSocket.new(ios.first.dup))
      true
    end
    Rondo::MoldHandle.new(generation: generation, pid: 100 + generation, socket: socket, state: state)
  end

  # @return [Array<String>] everything since the last call, in alphabetical order
  def happened
    told = @workers.flat_map(&:heard)
    [*@done.slice!(0..), *told].sort
  end
end
