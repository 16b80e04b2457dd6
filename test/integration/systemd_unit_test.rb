# frozen_string_literal: true

# The units of examples/systemd: systemd can read them, and they work with a test in the place of systemd: the socket,
# the command, the reload, the watchdog, the end.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "support/notify_socket"

class SystemdUnitTest < ShellCase
  UNITS = %w[rondo.service rondo.socket].map { |name| File.join(ROOT, "examples/systemd", name) }.freeze

  # The steps of systemd before it becomes the service.
  class Service < Server
    def self.lines(name)
      File.readlines(UNITS[0], chomp: true).filter_map { |line| line[/\A#{name}=(.*)/, 1] }
    end

    def reload
      words = self.class.lines("ExecReload").fetch(0).gsub("$MAINPID", pid.to_s).split
      raise "#{words} failed" unless system(*words)
    end

    private

    def command_line(*)
      ["sh", "-c", 'LISTEN_FDS=1 LISTEN_PID=$$ WATCHDOG_PID=$$ exec "$@"', "sh",
       *self.class.lines("Environment").flat_map { |line| ["env", line] }, *self.class.lines("ExecStart").fetch(0).split]
    end
  end

  def setup
    super
    @told = NotifySocket.new(File.join(@folder, "notify"))
    write "config.ru", HELLO
  end

  def teardown
    super
    @told.close
  end

  def test_systemd_reads_them_without_a_word
    skip "systemd-analyze is missing" unless system("systemd-analyze", "--version", out: File::NULL)
    result = run_command("systemd-analyze", "verify", "--man=no", *UNITS)
    assert_equal ["", "", 0], [result.out, result.err, result.code]
  end

  def test_the_service_as_systemd_runs_it
    TCPServer.open("127.0.0.1", 0) do |socket|
      server = service(socket)
      assert_told "READY=1"
      assert_told "WATCHDOG=1"
      assert_equal "hello", body(socket)
      reload_with_an_application_that_takes_its_time(server)
      assert_equal "newer", body(socket)
      assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig # which systemd counts as a good end
      assert_told "STOPPING=1"
    end
  end

  private

  def service(socket)
    # If Bundler found all gems and installed none, it has made no executable of this gem, either.
    path = [File.join(ServerProcess::ROOT, "exe"), ENV.fetch("PATH")].join(File::PATH_SEPARATOR)
    env = BLANK.merge("PATH" => path, "NOTIFY_SOCKET" => File.join(@folder, "notify"), "WATCHDOG_USEC" => "1000000")
    server = Service.new(nil, binds: [], env: env, spawn: { chdir: @folder, 3 => socket.fileno })
    @servers << server
    server
  end

  # Watchdog messages come meanwhile; without them systemd would kill the service.
  def reload_with_an_application_that_takes_its_time(server)
    File.mkfifo(File.join(@folder, "gate"))
    write "config.ru", "warn 'loading'\nFile.read('gate')\n#{HELLO.sub("hello", "newer")}"
    server.reload
    assert_told "RELOADING=1"
    server.wait_for_log(/^loading$/)
    @told.clear
    2.times { assert_told "WATCHDOG=1" }
    File.write(File.join(@folder, "gate"), "")
    assert_told "READY=1"
  end

  def body(socket)
    Net::HTTP.get(URI("http://127.0.0.1:#{socket.addr[1]}/"))
  end

  # A line of a message.
  def assert_told(word)
    assert @told.hear(/^#{word}$/)
  end
end
