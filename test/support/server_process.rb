# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Starts the server as a subprocess on a free port with a generated configuration file, waits for
# its "Listening" lines, and stops it by its pid. Used by all integration tests.
#
# RONDO_TEST_SERVER names another command (say "puma") to try the tests themselves against; the
# settings of the core are left out of its configuration then. RONDO_TEST_PRELOAD names a library
# that is loaded into the servers, but not into the tests.

require "fileutils"
require "tmpdir"
require_relative "xor_proxy"

class ServerProcess
  # It did not start, or did not stop, before the deadline.
  class Failure < StandardError; end

  ROOT = File.expand_path("../..", __dir__)
  DEADLINE = 60
  PRELOAD = ENV.key?("RONDO_TEST_PRELOAD") ? { "LD_PRELOAD" => ENV["RONDO_TEST_PRELOAD"] }.freeze : {}.freeze
  LISTENING = %r{\* Listening on ((?:http|https|unix)://\S+)}

  attr_reader :pid, :urls, :directory

  @running = []
  class << self
    attr_reader :running

    # Starts a server, yields it, stops it.
    def run(app, **options)
      server = new(app, **options)
      yield server
    ensure
      server&.stop
    end

    def foreign?
      ENV.key?("RONDO_TEST_SERVER")
    end
  end
  at_exit { running.dup.each(&:kill) }

  # @param app [String, nil] path of the rackup file
  # @param settings [Hash{Symbol => Object}] written as `name value` into the configuration file
  # @param config [String] further lines of the configuration file
  # @param unix [Boolean] listen on a Unix socket as well
  # @param args [Array<String>] further command line arguments
  # @param env [Hash{String => String}] environment of the server
  # @param spawn [Hash] options of Process.spawn, such as `rlimit_nofile:`
  def initialize(app, settings: {}, config: "", unix: false, args: [], env: {}, spawn: {},
                 binds: ["tcp://127.0.0.1:0"], deadline: DEADLINE)
    @directory = Dir.mktmpdir("rondo-test")
    @log = +""
    @mutex = Mutex.new
    @changed = ConditionVariable.new
    binds = binds.map { |bind| XorProxy.bind(bind) }
    binds += ["unix://#{File.join(@directory, "server.sock")}"] if unix
    command = command_line(app, settings, config, binds, args)
    start(command, env, spawn)
    wait_until_listening(binds.size, deadline)
  rescue StandardError
    kill
    raise
  end

  # @return [String] the first TCP address, "http://127.0.0.1:PORT"
  def url
    urls.find { |url| url.start_with?("http") }
  end

  # @return [String, nil] "unix:///path"
  def unix_url
    urls.find { |url| url.start_with?("unix:") }
  end

  # @return [Integer]
  def port
    url[/\d+\z/].to_i
  end

  # @return [Array<String>] where the server itself listens: clients connect to `urls`, which may be a proxy's
  def own_urls
    log.scan(LISTENING).flatten.uniq
  end

  # @return [Integer] the server's own port; clients connect to `port`
  def own_port
    own_urls.find { |url| url.start_with?("http") }[/\d+\z/].to_i
  end

  # @return [String] everything the server wrote to stdout and stderr so far: a line that it wrote before an answer is
  #   here when the answer is
  def log
    @mutex.synchronize { drain && @log.dup }
  end

  # Waits until the log has a match.
  # @param from [Integer] skips this many bytes
  # @return [MatchData]
  def wait_for_log(pattern, from: 0, deadline: DEADLINE)
    wait(deadline, "no #{pattern.inspect} in the log") { pattern.match(@log.byteslice(from..)) }
  end

  # @return [Boolean]
  def alive?
    @waiter.alive?
  end

  # @return [Float] CPU seconds used so far
  def cpu_seconds
    fields = File.read("/proc/#{@pid}/stat").rpartition(") ")[2].split
    (fields[11].to_i + fields[12].to_i) / 100.0
  end

  # @return [Integer] resident memory in KiB
  def resident_kib
    File.read("/proc/#{@pid}/status")[/^VmRSS:\s+(\d+)/, 1].to_i
  end

  # @return [Integer] open descriptors
  def descriptors
    Dir.children("/proc/#{@pid}/fd").size
  end

  def signal(name)
    Process.kill(name, @pid)
  end

  # Stops gracefully; after the deadline by force, which is a failure.
  # @return [Process::Status]
  def stop(signal: "INT", deadline: DEADLINE)
    return @status if @status
    send_signal(signal)
    finished = @waiter.join(deadline)
    unless finished
      kill
      raise Failure, "the server did not stop within #{deadline} s of #{signal}:\n#{log}"
    end
    finish
  end

  def kill
    Process.kill("KILL", @pid) if @pid && @waiter&.alive?
    finish if @pid
    FileUtils.rm_rf(@directory)
  rescue Errno::ESRCH
    nil
  end

  private

  # The process may end between the check and the signal.
  def send_signal(name)
    Process.kill(name, @pid) if alive?
  rescue Errno::ESRCH
    nil
  end

  def finish
    @status = @waiter.value
    @reader&.join
    self.class.running.delete(self)
    FileUtils.rm_rf(@directory)
    @status
  end

  def command_line(app, settings, config, binds, args)
    path = File.join(@directory, "config.rb")
    lines = self.class.foreign? ? [] : XorProxy.settings.merge(settings).map { |name, value| "#{name} #{value.inspect}\n" }
    File.write(path, "#{lines.join}#{config}")
    server = ENV.fetch("RONDO_TEST_SERVER", File.join(ROOT, "bin/rondo")).split
    [*server, *binds.flat_map { |bind| ["-b", bind] }, "-C", path, *args, *app]
  end

  def start(command, env, spawn)
    @output, input = IO.pipe
    @pid = Process.spawn({ "RACK_ENV" => "production", **PRELOAD, **env }, *command,
                         in: File::NULL, out: input, err: input, pgroup: true, **spawn)
    input.close
    self.class.running << self
    @waiter = Process.detach(@pid)
    @reader = Thread.new { collect }
  end

  def collect
    until @ended
      @output.wait_readable
      @mutex.synchronize { drain }
    end
    @output.close
  end

  # Takes the bytes in the pipe; the caller holds the mutex.
  def drain
    until @ended
      chunk = @output.read_nonblock(65_536, exception: false)
      break if chunk == :wait_readable
      chunk ? @log << chunk.force_encoding("BINARY") : @ended = true
      @changed.broadcast
    end
    true
  end

  def wait_until_listening(count, deadline)
    wait(deadline, "the server does not listen") { @log.scan(LISTENING).size >= count }
    @urls = log.scan(LISTENING).flatten.map { |url| XorProxy.front(url) }
  end

  def wait(seconds, complaint)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    @mutex.synchronize do
      loop do
        found = yield
        return found if found
        left = limit - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        raise Failure, "#{complaint}; its log:\n#{@log}" if left <= 0 || @ended
        @changed.wait(@mutex, left)
      end
    end
  end
end
