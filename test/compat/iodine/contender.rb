# frozen_string_literal: true

# A program written for iodine as a process, on Rondo or on iodine itself: started on a port of its own, with its standard
# output and error kept apart.
# SPDX-License-Identifier: MIT

require "fileutils"
require "socket"
require "tmpdir"
require "support/held_port"
require "support/raw_client"
require "support/server_process"

class Contender
  ROOT = ServerProcess::ROOT
  SNIPPETS = File.join(__dir__, "snippets")
  DEADLINE = 60
  # Where iodine 0.7.60 is installed, if it is: the folder that has its lib and exe.
  IODINE = ENV.fetch("RONDO_TEST_IODINE") { Gem::Specification.find_all_by_name("iodine", "0.7.60").first&.gem_dir }
  # Variables that the environment of the tests may have.
  BLANK = %w[PORT THREADS WORKERS WEB_CONCURRENCY IODINE_REDIS_URL REDIS_URL RACK_HANDLER].to_h { |name| [name, nil] }.freeze

  attr_reader :port, :folder, :pid

  # @param kind [Symbol] :rondo or :iodine
  # @param program [String] name of a snippet; its port 3000 is replaced by one that is free
  # @param command [Boolean, String] run by the executable `iodine`, or by this program, otherwise by `ruby`
  # @param args [Array<String>] of the executable
  # @param text [String, nil] the program itself, instead of a snippet
  # @param waits [Boolean] until it listens
  # @param requires [Array<String>] libraries that are loaded before it
  def initialize(kind, program, command: program.end_with?(".ru"), args: [], env: {}, text: nil, waits: true, files: {},
                 requires: [])
    @kind = kind
    @folder = Dir.mktmpdir("rondo-iodine")
    @held = HeldPort.new
    @port = @held.number
    text ||= File.read(File.join(SNIPPETS, "#{program}.txt"))
    files.merge(program => text.gsub(/\b3000\b/, @port.to_s)).each { |name, content| File.write(File.join(@folder, name), content) }
    libraries = [*folders.map { |folder| "-I#{folder}" }, *[File.join(__dir__, "sync_output.rb"), *requires].map { |name| "-r#{name}" }]
    start([RbConfig.ruby, "--disable-gems", *libraries, *command_line(command, args, program)], env)
    wait_until_listening if waits
  end

  # @return [String] what it wrote so far
  def output
    read(:out)
  end

  # @return [String]
  def errors
    read(:err)
  end

  # @return [String]
  def url
    "http://127.0.0.1:#{@port}"
  end

  # @return [MatchData] in its output
  def wait_for_output(pattern)
    wait("no #{pattern.inspect}") { pattern.match(output) }
  end

  # @return [MatchData] in a file of its folder
  def wait_for_file(name, pattern)
    wait("no #{pattern.inspect} in #{name}") { pattern.match(File.binread(File.join(@folder, name))) }
  end

  # @return [MatchData] in its log
  def wait_for_errors(pattern)
    wait("no #{pattern.inspect}") { pattern.match(errors) }
  end

  def signal(name)
    Process.kill(name, @pid)
  end

  # @return [Integer] its exit code; 128 and its number for a signal
  def finish
    @waiter.join(DEADLINE) or raise "it did not end:\n#{errors}"
    status = @waiter.value
    status.exitstatus || (128 + status.termsig)
  end

  # The whole group of processes, for a worker may outlive the one that was started.
  def close
    Process.kill("KILL", -@pid)
  rescue Errno::ESRCH
    nil
  ensure
    @waiter.join
    @held.close
    FileUtils.rm_rf(@folder)
  end

  private

  def folders
    @kind == :iodine ? [File.join(IODINE, "lib")] : [File.join(ROOT, "lib"), File.join(ROOT, "gems/rondo-iodine/lib")]
  end

  def command_line(command, args, program)
    return [program] unless command
    return [executable, *args, program] if command == true

    [command, *args.map { |word| word.gsub(/\b3000\b/, @port.to_s) }, program]
  end

  def executable
    @kind == :iodine ? File.join(IODINE, "exe/iodine") : File.join(ROOT, "gems/rondo-iodine/exe/iodine")
  end

  def start(words, env)
    @pid = Process.spawn({ **BLANK, "RACK_ENV" => "production", "PORT" => @port.to_s, **env }, *words,
                         chdir: @folder, in: File::NULL, out: path(:out), err: path(:err), pgroup: true)
    @waiter = Process.detach(@pid)
  end

  def path(name)
    File.join(@folder, "standard.#{name}")
  end

  def read(name)
    File.binread(path(name))
  end

  def wait_until_listening
    wait("it does not listen") do
      TCPSocket.new("127.0.0.1", @port).close
      !errors.include?("cluster mode") || errors.include?("Use Ctrl-C") # the sockets of all workers are there
    rescue SystemCallError
      false
    end
  end

  def wait(complaint)
    limit = now + DEADLINE
    loop do
      found = yield
      return found if found
      raise "#{complaint}:\n#{output}\n#{errors}" if now > limit || !@waiter.alive?

      IO.select(nil, nil, nil, 0.01)
    end
  rescue RuntimeError
    close
    raise
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
