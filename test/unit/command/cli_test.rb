# frozen_string_literal: true

# How the words of a command line are read; test/integration/cli_test.rb runs the executable.
# SPDX-License-Identifier: MIT

require "test_helper"
require "stringio"
require "tmpdir"
require "rondo/boot/inherited"
require "rondo/command/cli"

class CliUnitTest < Minitest::Test
  # Records the server that would have been started.
  class Recorder < Rondo::CLI
    attr_reader :seen

    def serve
      @seen = settings
      0
    end
  end

  # This is only Ruby: a collection at every allocation would take minutes and prove nothing.
  def before_setup
    super
    GC.stress = false
  end

  def setup
    @before = Dir.pwd
    @folder = File.realpath(Dir.mktmpdir)
    Dir.chdir(@folder)
    @out, @err = StringIO.new, StringIO.new
  end

  def teardown
    Dir.chdir(@before)
    FileUtils.rm_rf(@folder)
  end

  def run_words(*words)
    cli = Recorder.new(words, out: @out, err: @err)
    [cli.run, cli.seen]
  end

  def settings(*words)
    code, seen = run_words(*words)
    assert_equal 0, code, @err.string
    seen
  end

  def complaint(*words)
    @err.truncate(0)
    @err.rewind
    code, = run_words(*words)
    assert_equal 2, code
    assert_match(/\Arondo: .*\n\z/, @err.string)
    @err.string
  end

  {
    %w[-b tcp://a:1 --bind unix:///x] => [:bind, ["tcp://a:1", "unix:///x"]],
    %w[-p 3000] => [:port, 3000], %w[-p3000] => [:port, 3000], %w[--port=3000] => [:port, 3000],
    %w[-e test] => [:environment, "test"], %w[--environment test] => [:environment, "test"],
    %w[-t 2:7] => [:min_threads, 2], %w[-t 3] => [:min_threads, 3], %w[--threads 0:5] => [:max_threads, 5],
    %w[--fibers 0] => [:fibers, 0], %w[--fibers 300] => [:fibers, 300], %w[--fibers=14000] => [:fibers, 14_000],
    %w[-w 2] => [:workers, 2], %w[-w auto] => [:workers, "auto"],
    %w[--pidfile p] => [:pidfile, "p"], %w[-S s] => [:state_path, "s"], %w[--tag t] => [:tag, "t"],
    %w[-v] => [:log_requests, true], %w[-qv] => [:quiet, true], %w[-s] => [:silent, true],
    %w[--early-hints] => [:early_hints, 1], %w[-k 1.5] => [:keep_alive_timeout_ms, 1500], %w[-k 2m] => [:keep_alive_timeout_ms, 120_000],
    %w[-maxbd 10m] => [:max_body_bytes, 10 << 20], %w[--max-body 1g] => [:max_body_bytes, 1 << 30],
    %w[-maxhd 64k] => [:max_head_bytes, 65_536], %w[-maxbd 0] => [:max_body_bytes, 0],
    %w[--redirect-stdout o] => [:redirect_stdout, "o"], %w[--redirect-append] => [:redirect_append, true],
    %w[--no-redirect-append] => [:redirect_append, false], %w[app.ru] => [:rackup, "app.ru"],
    %w[-tls -p 1] => [:tls, true], %w[-cert c] => [:tls_cert, "c"], %w[-tls-key k] => [:tls_key, "k"], %w[--key=k] => [:tls_key, "k"],
    %w[-q app -v] => [:rackup, "app"], %w[--x-sendfile-root a --x-sendfile-root=b] => [:x_sendfile_root, %w[a b]]
  }.each do |words, (name, value)|
    define_method("test_#{words.join(" ")}") do
      found = settings(*words)
      assert_equal value, found[name]
      assert_equal "command line", found.source(name)
    end
  end

  {
    %w[--prot 1] => /--prot; did you mean --port\?/, %w[--qiet] => /did you mean --quiet\?/,
    %w[-p] => /missing argument: -p/, %w[-p 70000] => /port must be a number up to 65535/,
    %w[-t 0] => /threads must be at least 1/, %w[-t 4:2] => /minimum is above/, %w[-t 1:] => /threads must be N/,
    %w[-w -1] => /workers|missing/, %w[-maxbd 1x] => /max_body_bytes must be a size such as "512k", "20m" or "1g", not "1x"/, %w[-maxhd 1b] => /max_head_bytes 1b is not between/,
    %w[--fibers x] => /fibers must be a number, not "x"/, %w[--fibers -1] => /fibers must be a number, not "-1"/,
    %w[--fibers 9999999] => /fibers 9999999 is not between 0 and 1000000 count/,
    %w[-maxbd 50] => /must be a size such as .*, not "50"/,
    %w[-k x] => /must be a number of seconds, or a time such as "500ms", "30s", "5m" or "1h", not "x"/, %w[-k -1] => /must be|missing|not between/,
    %w[--bind-to-activated-sockets=some] => /no value, or only, not "some"/, %w[-ping 3] => /not in this version/, %w[-tls-pass x] => /use key_password_command/,
    %w[a b] => /too many arguments: a b/
  }.each do |words, pattern|
    define_method("test_refuses_#{words.join(" ")}") { assert_match pattern, complaint(*words) }
  end

  # The rows say it for docs/CONFIGURATION.md; the parser does it by itself.
  Rondo::Settings::SHELL.select { |_, row| row.flag }.each do |name, row|
    row.flag.split(", ").map { |form| form[/\A\S+/] }.each do |word|
      define_method("test_#{word}_is_the_flag_of_#{name}") do
        argument = { port: "1", workers: "1", directory: ".", tls_port: "1", tls_http_port: "1", tls_domain: "a.example", idle_timeout: "1" }.fetch(name, "x") if row.flag.match?(/ [A-Z]+\z/)
        found = settings(word, *argument)
        assert_equal "command line", found.source(name)
        refute found.given?(:rackup), "no word is left over"
      end
    end
  end

  def test_a_refork_after_requests
    { %w[--fork-worker] => 1000, %w[-f] => 1000, %w[-f 50] => 50, %w[--fork-worker=0] => 0 }.each do |words, count|
      found = settings(*words)
      assert_equal [count, true], [found[:refork_after], found[:preload]], words.inspect
    end
    assert_match(/refork_after must be a number, not "x"/, complaint("-f", "x"))
  end

  def test_the_command_line_wins_over_file_and_environment
    FileUtils.mkdir_p("config")
    File.write("config/rondo.rb", "tag 'file'\npidfile 'file'\n")
    found = settings("--tag", "line")
    assert_equal ["line", "command line"], [found[:tag], found.source(:tag)]
    assert_equal ["file", "rondo.rb"], [found[:pidfile], found.source(:pidfile)]
  end

  def test_no_file
    FileUtils.mkdir_p("config")
    File.write("config/rondo.rb", "tag 'file'\n")
    [%w[--no-config], %w[-C -]].each { |words| assert_nil settings(*words)[:tag] }
  end

  def test_another_file_and_another_folder
    FileUtils.mkdir_p("deep")
    File.write("deep/own.rb", "tag 'own'\n")
    found = settings("--dir", "deep", "-C", "own.rb")
    assert_equal ["own", File.join(@folder, "deep")], [found[:tag], found[:directory]]
    assert_equal File.join(@folder, "deep"), Dir.pwd
  end

  def test_help_and_version_serve_nothing
    %w[-h --help -V --version].each do |word|
      code, seen = run_words(word)
      assert_equal [0, nil], [code, seen]
    end
    assert_includes @out.string, "Usage: rondo"
    assert_includes @out.string, "rondo #{Rondo::VERSION} ("
  end

  def test_backtraces_only_for_debug
    code, = run_words("-C", "nowhere.rb")
    assert_equal [1, "rondo: cannot read nowhere.rb: No such file or directory\n"], [code, @err.string]
    run_words("-C", "nowhere.rb", "--debug")
    assert_match(/configuration\.rb:\d+:in/, @err.string)
  end

  def test_init_and_check_are_commands
    assert_equal 0, run_words("init").first
    assert_path_exists "config/rondo.rb"
    assert_equal 1, run_words("check", "-b", "tcp://127.0.0.1:0").first
    assert_match(/^failed  application: /, @out.string)
  end
end
