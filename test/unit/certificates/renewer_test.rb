# frozen_string_literal: true

# The thread that keeps certificates fresh, and the process that it starts.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/certificates/renewer"
require "support/acme_server"
require "tmpdir"

class CertificatesRenewerTest < Minitest::Test
  Renewer = Rondo::Certificates::Renewer
  NAME = "app.example.com"
  PATIENCE = 60

  # Lines of the log, to wait for.
  class Log
    def initialize
      @lines = Thread::Queue.new
    end

    def say(line)
      @lines << line
    end
    alias error say

    def next
      @lines.pop(true)
    rescue ThreadError
      nil
    end
  end

  # What it starts is a shell that does what the test wants.
  class Shell < Renewer
    attr_accessor :script

    private

    def command
      ["sh", "-c", @script]
    end
  end

  def setup
    @root = Dir.mktmpdir
    @log = Log.new
    @news = Thread::Queue.new
  end

  def teardown
    @renewer&.stop
    @acme&.close
    FileUtils.rm_rf(@root)
  end

  def domains(**fields)
    given = { names: [NAME], directory: "https://127.0.0.1:1/dir", agree: true, storage: File.join(@root, "acme") }
    Rondo::Certificates::Domains.new(**given, **fields)
  end

  def store
    Rondo::Certificates::Store.new(File.join(@root, "acme"))
  end

  def keep(days)
    pair = Certificates.new(@root).pair("server", names: ["DNS:#{NAME}"], days: days)
    store.keep(NAME, File.read(pair.certificate), File.read(pair.key))
  end

  def begin_with(kind = Renewer, script: nil, **options)
    given = options.delete(:domains) || domains
    @renewer = kind.new(given, @log, look: 0.01, again: 0.01, on_new: -> { @news << true }, **options)
    @renewer.script = script if script
    @renewer.start
  end

  def line
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until (found = @log.next)
      flunk "no line" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit
      IO.select(nil, nil, nil, 0.005)
    end
    found
  end

  # ---- the process ----

  # It gets the names, finds the gem and this code, and says what it did.
  def test_a_certificate_that_is_due
    @acme = AcmeServer.new(@root)
    begin_with(domains: domains(directory: @acme.directory, directory_ca: @acme.authority))
    assert_match(/\A- Certificates: certificate for #{NAME} until /, line)
    assert @news.pop
    assert_predicate store.state(NAME), :good?
    assert_equal 1, @acme.asked.count("finalize")
  end

  def test_what_the_process_says
    keep(-80..10)
    begin_with(Shell, script: "echo '- good'; echo '! bad'; cat >/dev/null")
    assert_equal ["- Certificates: good", "! Certificates: bad"], [line, line]
  end

  def test_errors_of_ruby_are_lines_too
    begin_with(Shell, script: "printf 'x.rb:1: \\377 (\\033[31m)\\n' >&2; printf 'without an end' >&2")
    assert_equal ["! Certificates: x.rb:1: ? (\\x1B[31m)", "! Certificates: without an end"], [line, line]
  end

  def test_a_line_without_an_end_does_not_fill_the_memory
    begin_with(Shell, script: "head -c 2000000 /dev/zero | tr '\\0' x; cat >/dev/null")
    assert_operator line.bytesize, :<=, Renewer::LONGEST_LINE + 5000
    @renewer.stop # the process waits for somebody who reads on
    refute_predicate @renewer.instance_variable_get(:@thread), :alive?
  end

  def test_it_gets_its_names_on_its_input_and_secrets_in_its_environment
    begin_with(Shell, script: 'read -r text; echo "- $SECRET_OF_TEST $text"; cat >/dev/null', secrets: { "SECRET_OF_TEST" => "x1" })
    found = line
    assert_equal domains.to_h, JSON.parse(found[/\{.*/], symbolize_names: true)
    assert_match(/\A- Certificates: x1 /, found)
    refute ENV.key?("SECRET_OF_TEST")
  end

  # Its input ends when the server does, however that ends.
  def test_the_process_ends_with_the_server
    begin_with(Shell, script: "echo \"- $$\"; exec cat >/dev/null")
    number = Integer(line[/\d+\z/])
    @renewer.stop
    assert_raises(Errno::ESRCH) { Process.kill(0, number) }
    @renewer.stop # again
  end

  # ---- when ----

  def rounds
    File.exist?(File.join(@root, "rounds")) ? File.size(File.join(@root, "rounds")) : 0
  end

  COUNT = "printf . >> %<root>s/rounds"

  def test_nothing_is_started_before_it_is_due
    keep(-1..90)
    begin_with(Shell, script: format(COUNT, root: @root))
    keep(-2..90) # a look has been there when this is noticed
    assert @news.pop
    assert_equal 0, rounds
    keep(-80..10)
    Timeout.timeout(PATIENCE) { Thread.pass until rounds.positive? }
  end

  def test_somebody_else_was_faster
    keep(-1..90)
    begin_with(Shell, script: "true")
    File.unlink(store.path(NAME))
    assert @news.pop
  end

  # What cannot even be written down: a round that changes nothing makes the next ones rarer. After so many of them in
  # 0.01 s there would be hundreds.
  def test_rounds_in_vain_become_rare
    begin_with(Shell, script: "#{format(COUNT, root: @root)}; echo '! no'")
    6.times { line }
    rests = @renewer.instance_variable_get(:@in_vain)
    assert_operator rests, :>=, 5
    left = @renewer.instance_variable_get(:@rest_until) - Process.clock_gettime(Process::CLOCK_MONOTONIC)
    assert_operator left, :<=, 0.01 * (2**rests)
    store.failed(NAME, "no") # now there is a delay
    Timeout.timeout(PATIENCE) { Thread.pass until store.state(NAME).next_try }
  end

  def test_an_error_is_a_line_and_another_look
    FileUtils.mkdir_p(File.join(@root, "acme/live"))
    begin_with(Shell, script: "true", secrets: { "NUL" => "\0" })
    assert_match(/\A! Certificates: .*null byte \(ArgumentError\)\z/, line)
    assert_match(/null byte/, line)
  end
end
