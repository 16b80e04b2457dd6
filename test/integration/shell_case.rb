# frozen_string_literal: true

# Shared by the tests of the command line: a folder of their own as the working directory, commands that end by
# themselves (their output and exit code), and servers that are stopped again. The executable is started directly, so
# the test runs what the gem installs.
# SPDX-License-Identifier: MIT

require "test_helper"
require "fileutils"
require "net/http"
require "open3"
require "socket"
require "support/halted"
require "support/held_port"
require "support/server_process"
require "timeout"
require "tmpdir"

class ShellCase < Minitest::Test
  include Halted

  PATIENCE = 60
  ROOT = ServerProcess::ROOT
  # Hundreds of them start, and RubyGems is half of what each needs for that. RUBYLIB names the gems (test_helper.rb). The
  # suites `apps`, `conformance` and `project` start `bin/rondo` with RubyGems.
  RONDO = [RbConfig.ruby, "--disable-gems", "-I#{File.join(ROOT, "lib")}", File.join(ROOT, "exe/rondo")].freeze
  # Variables that the environment of the tests may have.
  BLANK = %w[RACK_ENV APP_ENV RAILS_ENV PORT HOST BINDING PIDFILE WEB_CONCURRENCY RAILS_MAX_THREADS MAX_THREADS
             MIN_THREADS PUMA_MAX_THREADS PUMA_MIN_THREADS NOTIFY_SOCKET REDIS_URL RONDO_REDIS_URL].to_h { |name| [name, nil] }.freeze
  HELLO = "run ->(env) { [200, { 'content-type' => 'text/plain' }, ['hello']] }\n"
  # /stuck holds the GVL in C until a byte comes through the pipe; /spin is an endless loop in Ruby.
  STUCK = <<~RUBY
    require "fiddle"
    READ = Fiddle::Function.new(Fiddle.dlopen(nil)["read"], [Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T],
                                Fiddle::TYPE_SIZE_T, need_gvl: true)
    GATE = File.open("gate", "r+")
    run lambda { |env|
      if env["PATH_INFO"] == "/stuck"
        warn "stuck began"
        READ.call(GATE.fileno, Fiddle::Pointer.malloc(1), 1)
      end
      [200, { "content-type" => "text/plain" }, [Process.pid.to_s]]
    }
  RUBY

  # The result of a command.
  Result = Struct.new(:out, :err, :code, keyword_init: true)

  # A server with the test's own folder and options.
  class Server < ServerProcess
    def self.running
      superclass.running # these are killed at the end
    end

    private

    def command_line(app, _settings, _config, binds, args)
      [*RONDO, *binds.flat_map { |bind| ["-b", bind] }, *args, *app]
    end
  end

  # A program that begins its server itself.
  class Program < Server
    private

    def command_line(path, *)
      [RbConfig.ruby, "-I#{File.join(ROOT, "lib")}", path]
    end
  end

  # Words of a shell, which may begin the server under another program.
  class Command < Server
    # The server must not outlive the program: the log ends with its last writer.
    def kill
      Process.kill("KILL", -@pid) if @pid && @waiter&.alive?
      super
    rescue Errno::ESRCH
      super
    end

    private

    def command_line(_app, _settings, _config, _binds, args)
      args
    end
  end

  def setup
    @folder = @made_folder = File.realpath(Dir.mktmpdir("rondo-shell"))
    @servers = []
    @sockets = []
  end

  def teardown
    @sockets.each(&:close)
    @servers.each(&:kill)
    FileUtils.rm_rf(@made_folder) # @folder may be a folder in it by now
  end

  # @return [String] path of the file in the test's folder
  def write(name, text)
    path = File.join(@folder, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.write(path, text)
    path
  end

  def read(name)
    File.read(File.join(@folder, name))
  end

  # Runs the command to its end.
  # @return [Result]
  def rondo(*words, env: {})
    run_command(*RONDO, *words, env: env)
  end

  # As a user without rights, if root runs the tests.
  def powerless(*words)
    return rondo(*words) unless Process.uid.zero?

    run_command(RbConfig.ruby, "-e", "Process::Sys.setgid(65534); Process::Sys.setuid(65534); exec(*ARGV)",
                "--", *RONDO, *words)
  end

  # @param stdin [String, nil] name of a file in the test's folder
  def run_command(*words, env: {}, stdin: nil)
    Open3.popen3(BLANK.merge(env), *words, chdir: @folder) do |input, out, err, waiter|
      IO.copy_stream(File.join(@folder, stdin), input) if stdin
      input.close
      texts = [out, err].map { |io| Thread.new { io.read } }
      unless waiter.join(PATIENCE)
        Process.kill("KILL", waiter.pid)
        flunk "#{words.drop(3).join(" ")} did not end: #{texts.map(&:value)}"
      end
      Result.new(out: texts[0].value, err: texts[1].value, code: waiter.value.exitstatus)
    end
  end

  # @param words [Array<String>] options; the application's file last, if any
  # @return [Server] that listens
  def start(*words, binds: ["tcp://127.0.0.1:0"], env: {}, spawn: {}, **options)
    server = Server.new(nil, binds: binds, args: words, env: BLANK.merge(env),
                             spawn: { chdir: @folder }.merge(spawn), **options)
    @servers << server
    server
  end

  def get(server, path = "/", headers = {})
    http = Net::HTTP.new("127.0.0.1", server.port)
    http.read_timeout = PATIENCE
    http.get(path, headers)
  end

  # @param url [String] of a listener
  # @return [Socket] that is closed at the end of the test
  def dial_url(url)
    path = url[%r{\Aunix://(.*)}, 1]
    socket = path ? UNIXSocket.new(path) : TCPSocket.new("127.0.0.1", url[/\d+\z/].to_i)
    @sockets << socket
    socket
  end

  # Yields a server while its application is in C and keeps the GVL, and the client of that call.
  # @param starting [#call] starts it
  def while_stuck(starting)
    File.mkfifo(File.join(@folder, "gate"))
    write "config.ru", STUCK
    server = starting.call
    client = TCPSocket.new("127.0.0.1", server.port)
    client.write("GET /stuck HTTP/1.0\r\n\r\n")
    server.wait_for_log(/stuck began/)
    yield server, client
  ensure
    open_gate
    client&.close
  end

  def open_gate
    File.open(File.join(@folder, "gate"), "r+") { |gate| gate.write("..") }
  end

  def alive?(pid)
    File.read("/proc/#{pid}/stat")[/\) (\S)/, 1] != "Z"
  rescue SystemCallError
    false
  end

  def wait_for_end_of(*pids)
    eventually("the end of #{pids}") { pids.none? { |pid| alive?(pid) } }
  end

  # Waits until the block returns a value.
  def eventually(what)
    Timeout.timeout(PATIENCE) do
      loop do
        found = yield
        return found if found

        Thread.pass
        IO.select(nil, nil, nil, 0.01)
      end
    end
  rescue Timeout::Error
    flunk "this never came: #{what}"
  end

  # One line with the error, and the exit code; no backtrace.
  def assert_complaint(code, pattern, result)
    assert_one_line(code, pattern, result)
    refute_match(/^\s+from |:in [`']/, result.err)
  end

  # The same for an application that cannot be loaded. Its backtrace is in the log before, once.
  def assert_not_loaded(pattern, result)
    assert_one_line(1, /\Arondo: the application cannot be loaded: #{pattern}$/, result)
    assert_equal 1, result.err.scan(/^    \S*builder\.rb:\d+:in .*parse_file'$/).size, result.err
  end

  def assert_one_line(code, pattern, result)
    complaints = result.err.lines.grep(/\Arondo: /)
    assert_equal 1, complaints.size, result.err
    assert_match pattern, complaints.first
    assert_equal code, result.code, result.err
    refute_match(/^rondo: /, result.out) # where boot lines are
  end
end
