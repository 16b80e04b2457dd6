# frozen_string_literal: true

# What an exception causes: the lines of the log and the response.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "stringio"
require "tmpdir"
require "rondo"

class ReporterTest < Minitest::Test
  ENV_OF_REQUEST = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/a" }.freeze

  # Keeps lines by level.
  class Lines
    attr_reader :infos, :errors

    def initialize
      @infos, @errors = [], []
    end

    def info(line)
      @infos << line
    end

    def error(line)
      @errors << line
    end
  end

  def setup
    @log = Lines.new
  end

  def reporter(**options)
    Rondo::Reporter.new(log: @log, **options)
  end

  def error(message = "no luck")
    raise message
  rescue StandardError => e
    e
  end

  def test_a_failed_handshake
    reporter.report_handshake("192.0.2.1", "no common cipher for TLS", 0)
    reporter.report_handshake("192.0.2.1", "malformed handshake (wrong version number)", 7)
    assert_equal ["Handshake of 192.0.2.1 failed: no common cipher for TLS",
                  "Handshake of 192.0.2.1 failed: malformed handshake (wrong version number); 7 more failed before it"],
                 @log.infos
  end

  IDS = { "request_id" => "a1", "trace_id" => "b2" }.freeze
  FORGED = "GET /b: no luck"

  def test_ids_of_a_request_in_text
    env = ENV_OF_REQUEST.merge("rondo.ids" => IDS)
    reporter.report_error(error, env)
    reporter.refuse_file(env, "x", 404)
    reporter.report_slow("GET", "/a", 1.0, Thread.current, env)
    reporter.report_hung("GET", "/a", 1.0, Thread.current, env)
    assert_equal(["GET /a [request_id=a1 trace_id=b2]: "] * 4, @log.errors.map { |line| line[/\A.*?\]: /] })
    ENV_OF_REQUEST.merge("rondo.ids" => { "x" => "]\n#{FORGED}" }).then { |hostile| reporter.report_error(error, hostile) }
    refute_includes @log.errors.last.lines.map(&:chomp), "#{FORGED}]: RuntimeError: no luck"
    [nil, {}, ENV_OF_REQUEST.merge("rondo.ids" => 1)].each do |without|
      reporter.report_slow("GET", "/a", 1.0, Thread.current, without)
      assert @log.errors.last.start_with?("GET /a: no answer"), @log.errors.last
    end
  end

  def test_ids_of_a_request_in_json
    io = StringIO.new
    reporter = Rondo::Reporter.new(log: Rondo::Logger.new(io: io, json: true))
    reporter.report_error(error, ENV_OF_REQUEST.merge("rondo.ids" => IDS))
    line = JSON.parse(io.string)
    assert_equal %w[a1 b2], line.values_at("request_id", "trace_id")
    assert line["message"].start_with?("GET /a: RuntimeError: no luck\n"), line["message"]
    # A logger of the application takes one text.
    lines = Lines.new
    Rondo::Reporter.new(log: Rondo::Logger.new(custom: lines, json: true)).report_error(error, { "rondo.ids" => IDS })
    assert_includes lines.errors.first, "[request_id=a1 trace_id=b2]: RuntimeError"
  end

  def test_production_says_nothing_to_the_client
    status, headers, body = reporter.handle_error(error, ENV_OF_REQUEST)
    assert_equal [500, ["Internal Server Error\n"]], [status, body]
    assert_equal "text/plain; charset=utf-8", headers["content-type"]
    refute_predicate headers, :frozen?
  end

  def test_a_page_of_the_static_folder
    Dir.mktmpdir do |folder|
      File.write("#{folder}/500.html", "<p>sorry")
      with = { folder: folder }
      assert_equal [500, Rondo::Reporter::HTML, ["<p>sorry"]],
                   reporter(**with).handle_error(error, ENV_OF_REQUEST)
      assert_includes reporter(**with, development: true).handle_error(error, ENV_OF_REQUEST)[2].first, "no luck"
      assert_equal :own, reporter(**with, handler: -> { :own }).handle_error(error, ENV_OF_REQUEST)
      File.delete("#{folder}/500.html")
      assert_equal ["Internal Server Error\n"], reporter(**with).handle_error(error, ENV_OF_REQUEST)[2]
    end
  end

  def test_the_log_gets_request_class_message_and_backtrace
    reporter.handle_error(error, ENV_OF_REQUEST)
    assert_match(%r{\AGET /a: RuntimeError: no luck\n    \S*reporter_test\.rb:\d+}, @log.errors.fetch(0))
  end

  def test_further_lines_of_a_message_are_no_lines_of_the_log
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/a\n127.0.0.1 - -" }
    raised = error("no luck\n127.0.0.1 - - [x] \"POST /admin HTTP/1.1\" 200\n    app.rb:1:in `call'")
    raised.set_backtrace(["app.rb:2:in `a\nb'"])
    reporter.report_error(raised, env)
    assert_equal <<~'LOG'.chomp, @log.errors.first
      GET /a\x0A127.0.0.1 - -: RuntimeError: no luck
          | 127.0.0.1 - - [x] "POST /admin HTTP/1.1" 200
          |     app.rb:1:in `call'
          app.rb:2:in `a\x0Ab'
    LOG
  end

  # The error of a parser may quote everything that the client sent.
  def test_a_message_of_many_bytes_is_cut
    most = Rondo::Reporter::MESSAGE_MAX
    [["\n" * most, "\n" * most], ["a" * (most + 1), "#{"a" * most} (cut: the message has #{most + 1} bytes)"],
     ["\u00e9" * most, "#{"\u00e9" * (most / 2)} (cut: the message has #{2 * most} bytes)"]].each do |message, shown|
      reporter.report_error(error(message), ENV_OF_REQUEST)
      assert_equal "GET /a: RuntimeError: #{shown.gsub("\n", "\n    | ")}\n", @log.errors.pop[/\A.*?\n(?=    [^|])/m]
    end
  end

  def test_a_name_of_a_class_is_no_line_of_the_log
    named = Class.new(StandardError) { def self.name = "A\n127.0.0.1 - -" }
    reporter.report_error(named.new("x"), {})
    assert_equal [": A\\x0A127.0.0.1 - -: x"], @log.errors
  end

  def test_an_exception_without_backtrace
    reporter.report_error(RuntimeError.new("x"), {})
    assert_equal [": RuntimeError: x"], @log.errors
  end

  def test_messages_of_any_encoding
    env = { "REQUEST_METHOD" => "GET", "PATH_INFO" => "/\xC3\xBC\xff".b }
    [error("ü\xff"), error("\xff\xC3\xBC".b), error("ü".encode("UTF-16LE"))].each do |raised|
      reporter(development: true).handle_error(raised, env)
      assert_predicate @log.errors.last, :valid_encoding?
    end
  end

  def test_development_shows_the_backtrace
    env = ENV_OF_REQUEST.merge("HTTP_ACCEPT" => "text/html")
    status, headers, body = reporter(development: true).handle_error(error("<b>"), env)
    assert_equal [500, "text/html; charset=utf-8"], [status, headers["content-type"]]
    assert_includes body.join, "RuntimeError: &lt;b&gt;"
    assert_includes body.join, "reporter_test.rb"
  end

  def test_handlers_get_as_much_as_they_take
    { ->(e) { [e.message] } => ["no luck"],
      ->(e, env) { [e.message, env] } => ["no luck", ENV_OF_REQUEST],
      ->(e, env, status) { [e.message, env, status] } => ["no luck", ENV_OF_REQUEST, 500],
      proc { |*all| all.drop(1) } => [ENV_OF_REQUEST, 500] }.each do |handler, answer|
      assert_equal answer, reporter(handler: handler, development: true).handle_error(error, ENV_OF_REQUEST)
    end
    assert_equal 4, @log.errors.size
  end

  def test_a_handler_that_is_no_proc
    handler = Object.new
    def handler.call(_error, _env, status)
      status
    end
    assert_equal 500, reporter(handler: handler).handle_error(error, ENV_OF_REQUEST)
  end

  def test_refusals
    reporter.report_refusal("127.0.0.1", 400, "two lengths")
    reporter.report_refusal("127.0.0.1", 0, "gone")
    reporter.report_refusal("127.0.0.1", 0, "gone", 7)
    assert_equal ["Refused a request of 127.0.0.1: two lengths (400)",
                  "Refused a request of 127.0.0.1: gone",
                  "Refused a request of 127.0.0.1: gone; 7 more were refused or closed before it"], @log.infos
  end

  def test_files_that_are_not_sent
    { 404 => "does not exist", 500 => "is not below x_sendfile_root", 503 => "cannot be opened now, because too many files are open" }.each do |status, why|
      answered, headers, body = reporter.refuse_file(ENV_OF_REQUEST, "/a\nb\xff", status)
      assert_equal [status, "text/plain; charset=utf-8"], [answered, headers["content-type"]]
      refute_includes body.join, "/a"
      assert_equal "GET /a: the application named the file \"/a\\nb\u{fffd}\", which #{why} (#{status})", @log.errors.last
    end
  end

  def test_answers_that_are_cut
    reporter.report_cut("127.0.0.1", "no more of it", 3)
    assert_equal ["Cut the answer to 127.0.0.1: no more of it; 3 cut so far"], @log.errors
  end

  def test_incidents_that_there_was_no_room_for
    reporter.report_lost(7)
    assert_equal ["The log does not name 7 more incidents like these: too many came at once"], @log.errors
  end

  def test_connections_that_are_closed
    reporter.report_closed("127.0.0.1", "it reads nothing")
    assert_equal ["Closed the connection of 127.0.0.1: it reads nothing"], @log.errors
  end

  def test_subscriptions
    reporter.report_subscription("127.0.0.1", "too many")
    assert_equal ["Refused a subscription of 127.0.0.1: too many"], @log.infos
  end

  def test_replays_without_an_answer
    reporter.report_replay("127.0.0.1", "too late")
    assert_equal ["Subscribed 127.0.0.1 without the messages that it missed: too late"], @log.errors
  end

  def test_requests_that_others_answer
    reporter.report_forwarding("this worker is stuck")
    reporter.report_unanswered("127.0.0.1", "it ended")
    assert_equal ["This worker is stuck (the numbers are forwarded_out and forwarded_in)"], @log.infos
    assert_equal ["No whole answer for 127.0.0.1: it ended"], @log.errors
  end

  def test_connections_without_a_descriptor
    reporter.report_no_descriptor("nothing is left")
    assert_equal ["Nothing is left: they are answered 503 (the limit is #{Process.getrlimit(:NOFILE).first} open files; see ulimit -n, LimitNOFILE)"],
                 @log.errors
  end

  def test_calls_that_wait_for_a_disk_themselves
    reporter.report_no_disk_thread("there is no thread")
    assert_equal ["There is no thread: a disk that does not answer now holds up all clients (see ulimit -u, TasksMax)"], @log.errors
  end
end
