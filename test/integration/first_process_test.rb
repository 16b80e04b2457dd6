# frozen_string_literal: true

# The server as process 1 of a process namespace, as in a container without an init: orphans, the application's own
# children, signals, the exit status.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "rondo/boot/first_process"

class FirstProcessTest < ShellCase
  NAMESPACE = %w[unshare --user --map-root-user --pid --fork --kill-child --mount-proc].freeze
  # /orphan leaves a grandchild that ends later than its parent; /own waits for a child of its own; /zombies are
  # children that ended and were not reaped.
  APP = <<~'RUBY'
    require "open3"
    def answer(text) = [200, { "content-type" => "text/plain" }, [text.to_s]]
    def zombies = Dir["/proc/[0-9]*/stat"].count { |path| (File.read(path) rescue "").rpartition(") ")[2].start_with?("Z") }
    run lambda { |env|
      case env["PATH_INFO"]
      when "/orphan" then answer(IO.popen(["sh", "-c", "cat gate > /dev/null & echo $!"], &:read).to_i)
      when "/there" then answer(File.exist?("/proc/#{env["QUERY_STRING"]}"))
      when "/own" then answer(Open3.capture2("sh", "-c", "echo $PPID; exit 7").then { |out, status| "#{out.strip} #{status.exitstatus}" })
      when "/zombies" then answer(zombies)
      else answer(Process.pid)
      end
    }
  RUBY

  # The server's process 1 is a child of unshare(1). Signals go to it instead of unshare.
  class Contained < Server
    def first
      File.read("/proc/#{pid}/task/#{pid}/children").split.fetch(0).to_i
    end

    def signal(name)
      Process.kill(name, first)
    end

    private

    def send_signal(name)
      signal(name) unless name.to_s == "0"
    end

    def command_line(*)
      [*NAMESPACE, *super]
    end
  end

  def setup
    super
    skip "the right to make namespaces by unshare(1) is missing" unless system(*NAMESPACE, "true", err: File::NULL)
    File.mkfifo(File.join(@folder, "gate"))
    write "config.ru", APP
  end

  MODES = { "a single process" => [], "workers" => %w[-w 1] }.freeze

  def test_orphans_are_reaped_and_own_children_are_not
    MODES.each do |name, words|
      server = contained(*words)
      orphan = get(server, "/orphan").body
      assert_equal "true", get(server, "/there?#{orphan}").body
      serving = get(server).body
      refute_equal "1", serving
      assert_equal "#{serving} 7", get(server, "/own").body
      File.write(File.join(@folder, "gate"), ".") # waits for cat
      eventually("the orphan is reaped (#{name})") { get(server, "/there?#{orphan}").body == "false" }
      assert_equal "0", get(server, "/zombies").body
      server.stop(signal: "TERM")
    end
  end

  def test_term_and_int_end_well
    MODES.each_value do |words|
      %w[TERM INT].each do |signal|
        server = contained(*words)
        assert_equal 0, server.stop(signal: signal).exitstatus
        assert_match(/^- Gracefully .*\n(?:.*\n)*- Goodbye!\n\z/, server.log)
        refute_match(/at once/, server.log) # the signal came once
      end
    end
  end

  def test_a_restart_stays_below_the_first_process
    server = contained
    before = get(server).body
    seen = server.log.bytesize
    server.signal("USR2")
    server.wait_for_log(/Use Ctrl-C/, from: seen)
    assert_equal before, get(server).body
    assert_equal 0, server.stop(signal: "TERM").exitstatus
  end

  def test_how_the_server_ended_is_how_the_first_process_ends
    server = contained
    Process.kill("KILL", File.read("/proc/#{server.first}/task/#{server.first}/children").to_i)
    assert_equal 137, server.stop(signal: 0).exitstatus
    write "config.ru", "raise 'no'"
    result = run_command(*NAMESPACE, *RONDO, "-q")
    assert_equal 1, result.code
    assert_match(/cannot be loaded: config\.ru:1: no/, result.err)
  end

  # `docker stop` right after a start: the first process has passed TERM on to a child that just began.
  def test_a_signal_that_comes_before_the_child_has_its_handlers
    early = Class.new(Rondo::FirstProcess) do
      def serve_as_child(...)
        $stdin.reopen(File::NULL) # the terminal belongs to the tests
        Process.kill("TERM", Process.pid)
        super
        exit!(9)
      end
    end
    _, status = Process.wait2(fork { early.new.run })
    assert_equal 128 + Signal.list["TERM"], status.exitstatus
  end

  # The terminal's own signal and the passed one would be two signals, and the second one ends at once.
  def test_ctrl_c_in_a_terminal_comes_once
    require "pty"
    Dir.chdir(@folder) do
      PTY.spawn(BLANK, *NAMESPACE, *RONDO, "-b", "tcp://127.0.0.1:0") do |terminal, keys, pid|
        log = read_until(terminal, /Use Ctrl-C/)
        keys.write("\C-c")
        log << read_until(terminal, /Goodbye/)
        Process.wait(pid)
        refute_match(/at once/, log)
      end
    end
  end

  def test_sockets_that_name_process_1
    TCPServer.open("127.0.0.1", 0) do |socket|
      server = Activated.new(nil, binds: [], env: BLANK, spawn: { chdir: @folder, 3 => socket.fileno })
      @servers << server
      server.wait_for_log(/Use Ctrl-C/)
      assert_match(/\A\d+\z/, Net::HTTP.get(URI("http://127.0.0.1:#{socket.addr[1]}/")))
      descriptors = Dir["/proc/#{server.first}/fd/*"].filter_map { |path| File.readlink(path) rescue nil }
      assert_empty descriptors.grep(/socket/)
      assert_equal 0, server.stop(signal: "TERM").exitstatus
    end
  end

  # Becomes the server, with a descriptor as podman passes it.
  class Activated < Contained
    private

    def command_line(*)
      ["env", "LISTEN_FDS=1", "LISTEN_PID=1", *super]
    end
  end

  private

  def read_until(io, pattern)
    text = +""
    Timeout.timeout(PATIENCE) { text << io.readpartial(4096) until text.match?(pattern) }
    text
  end

  def contained(*words)
    server = Contained.new(nil, args: words, env: BLANK, spawn: { chdir: @folder })
    @servers << server
    server.wait_for_log(/Use Ctrl-C|booted in/)
    server
  end
end
