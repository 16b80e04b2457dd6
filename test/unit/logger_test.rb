# frozen_string_literal: true

# Where lines are written, and that no line can control a terminal.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
require "pty"
require "stringio"
require "rondo"

class LoggerTest < Minitest::Test
  def lines(**options)
    out = StringIO.new
    yield Rondo::Logger.new(io: out, **options)
    out.string.lines(chomp: true)
  end

  def all_levels(log)
    log.say("say")
    log.info("info")
    log.warn("warn")
    log.error("error")
  end

  def test_levels
    assert_equal %w[say info warn error], lines { |log| all_levels(log) }
    assert_equal %w[warn error], lines(quiet: true) { |log| all_levels(log) }
    assert_equal %w[error], lines(silent: true) { |log| all_levels(log) }
  end

  # Puma's boot lines are on standard output, too.
  def test_where_lines_go
    outputs = capture_io do
      log = Rondo::Logger.new
      all_levels(log)
      log.say("! a note")
    end
    assert_equal ["say\n", "info\nwarn\nerror\n! a note\n"], outputs
  end

  def test_control_characters_become_visible
    text = "a\e[31mb\r\0\x7f\bc"
    assert_equal ["a\\x1B[31mb\\x0D\\x00\\x7F\\x08c"], lines { |log| log.info(text) }
    assert_equal "tab\tand\nnewline", Rondo::Logger.escape("tab\tand\nnewline")
  end

  def test_every_control_character
    (0..0x1f).map(&:chr).push("\x7f").each do |char|
      expected = ["\t", "\n"].include?(char) ? char : format("\\x%02X", char.ord)
      assert_equal expected, Rondo::Logger.escape(char)
    end
  end

  def test_the_second_set_of_control_characters
    (0x80..0x9f).each { |code| assert_equal format("a\\u%04Xb", code), Rondo::Logger.escape("a#{[code].pack("U")}b") }
  end

  def test_line_ends_of_some_programs_and_turned_text
    [0x2028, 0x2029, *0x202a..0x202e, *0x2066..0x2069].each do |code|
      assert_equal format("\\u%04X", code), Rondo::Logger.escape([code].pack("U"))
    end
  end

  def test_other_characters_stay
    ["grüße – 日本", "\u00a0\u00ad\u200d\u2027\u202f\u2065\u206a", "\u{10ffff}", "שלום\u200f!"].each do |text|
      assert_equal text, Rondo::Logger.escape(text)
      assert_equal text, Rondo::Logger.escape(text.b)
    end
  end

  def test_bytes_that_are_no_characters
    { "\xff\xfe" => "\\xFF\\xFE", "a\x9b31mb" => "a\\x9B31mb", "\xc2" => "\\xC2", "\xc0\x9b" => "\\xC0\\x9B",
      "ü\xe2\x80" => "ü\\xE2\\x80", "\xed\xa0\x80" => "\\xED\\xA0\\x80" }.each do |bytes, expected|
      [bytes, bytes.b].each { |text| assert_equal expected, Rondo::Logger.escape(text) }
    end
    assert_equal "\\xE9", Rondo::Logger.escape("é".encode("ISO-8859-1"))
  end

  # Texts that a client may have sent: the line of a request, of the boot block, of a log in JSON.
  FORGED = ["127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] \"GET / HTTP/1.1\" 200 0 0.1", "* Listening on http://evil",
            "{\"time\":\"\"}", "! Worker 0", "x"].freeze

  def test_further_lines_are_indented
    FORGED.each do |forged|
      ["\n", "\r\n", "\n\n", "\n\r"].each do |ending|
        written = lines { |log| log.error("GET /: RuntimeError: a#{ending}#{forged}") }
        assert_equal 1, written.grep(/\A[^ ]/).size, written.inspect
        assert_equal 1, lines(custom: nil, formatter: ->(line) { line }) { |log| log.warn("a#{ending}#{forged}") }.grep(/\A[^ ]/).size
        assert_equal 1, lines(json: true) { |log| log.error("a#{ending}#{forged}") }.size
      end
    end
    assert_equal ["a", "    b", "\tc", " d", "", "    e"], lines { |log| log.info("a\nb\n\tc\n d\n\ne") }
  end

  def test_quoted_text_has_one_line
    assert_equal "a\\x0Ab\\x0D\\x0Ac\\u0085\\u2028\\xFF", Rondo::Logger.quote("a\nb\r\nc\u0085\u2028\xff")
  end

  def test_json
    line, = lines(json: true) { |log| log.warn("a\"b\nc\xff\e\u009b") }
    parsed = JSON.parse(line)
    assert_equal ["warn", "a\"b\nc\\xFF\\x1B\\u009B"], parsed.values_at("level", "message")
    assert_match(/\A\d{4}-\d\d-\d\dT/, parsed["time"])
  end

  def test_json_of_bytes
    line, = lines(json: true) { |log| log.warn("gr\xC3\xBC\xff".b) }
    assert_equal "grü\\xFF", JSON.parse(line)["message"]
  end

  def test_formatter
    assert_equal ["<x>"], lines(formatter: ->(line) { "<#{line}>" }) { |log| log.info("x") }
  end

  TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d{4}/

  def test_time_in_a_file_or_a_pipe
    text = piped do |pipe|
      log = Rondo::Logger.new(io: pipe, time: :auto)
      log.info("a\nb")
      log.worker = 3
      log.say("! c")
    end
    assert_match(/\A#{TIME} a\n    b\n#{TIME} \[worker 3\] ! c\n\z/, text)
  end

  def test_no_time_on_a_terminal
    PTY.open do |terminal, line|
      Rondo::Logger.new(io: line, time: :auto).info("bare")
      assert_equal "bare\r\n", terminal.gets
      Rondo::Logger.new(io: line, time: :always).info("timed")
      assert_match(/\A#{TIME} timed/, terminal.gets)
    end
  end

  def test_no_time_in_the_journal
    before = ENV.fetch("JOURNAL_STREAM", nil)
    [true, false].each do |journal|
      text = piped do |pipe|
        ENV["JOURNAL_STREAM"] = "#{pipe.stat.dev}:#{pipe.stat.ino + (journal ? 0 : 1)}"
        Rondo::Logger.new(io: pipe, time: :auto).info("x")
      end
      assert_equal journal, text == "x\n", text
    end
  ensure
    ENV["JOURNAL_STREAM"] = before
  end

  def test_nobody_else_gets_a_time
    assert_equal ["x"], lines { |log| log.info("x") }
    assert_equal ["<x>"], lines(time: :always, formatter: ->(line) { "<#{line}>" }) { |log| log.info("x") }
    assert_match(/\A\{/, lines(time: :always, json: true) { |log| log.info("x") }.first)
    custom = Writes.new
    Rondo::Logger.new(custom: custom, time: :always).error("x")
    assert_equal "x\n", custom.written
  end

  def piped
    reader, writer = IO.pipe
    yield writer
    writer.close
    reader.read
  ensure
    [reader, writer].each(&:close)
  end

  # Methods that most programs have.
  class Levels
    attr_reader :calls

    def initialize
      @calls = []
    end

    %i[info warn error].each { |level| define_method(level) { |line| @calls << [level, line] } }
  end

  def test_custom_logger_gets_the_levels
    custom = Levels.new
    assert_empty(lines(custom: custom) { |log| all_levels(log) })
    assert_equal [[:info, "say"], [:info, "info"], [:warn, "warn"], [:error, "error"]], custom.calls
  end

  # Methods that Puma calls.
  class Writes
    attr_reader :written

    def write(line)
      (@written ||= +"") << line
    end
  end

  def test_custom_logger_that_only_writes
    custom = Writes.new
    Rondo::Logger.new(custom: custom).error("x\e")
    assert_equal "x\\x1B\n", custom.written
  end

  def test_a_closed_stream_is_no_reason_to_fail
    out = StringIO.new
    out.close
    assert_nil Rondo::Logger.new(io: out).error("x")
  end

  def test_errors_only
    _, err = capture_io { all_levels(Rondo::Logger.errors_only) }
    assert_equal "error\n", err
  end
end
