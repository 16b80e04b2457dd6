# frozen_string_literal: true

# Where lines go, and that nothing in them steers a terminal.
# SPDX-License-Identifier: MIT

require "test_helper"
require "json"
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

  def test_other_bytes_stay
    assert_equal "grüße – 日本", Rondo::Logger.escape("grüße – 日本")
    assert_equal "\xff\xfe".b, Rondo::Logger.escape("\xff\xfe".b)
    assert_equal "\xff", Rondo::Logger.escape("\xff")
  end

  def test_json
    line, = lines(json: true) { |log| log.warn("a\"b\nc\xff") }
    parsed = JSON.parse(line)
    assert_equal ["warn", "a\"b\nc\u{fffd}"], parsed.values_at("level", "message")
    assert_match(/\A\d{4}-\d\d-\d\dT/, parsed["time"])
  end

  def test_json_of_bytes
    line, = lines(json: true) { |log| log.warn("gr\xC3\xBC\xff".b) }
    assert_equal "grü\u{fffd}", JSON.parse(line)["message"]
  end

  def test_formatter
    assert_equal ["<x>"], lines(formatter: ->(line) { "<#{line}>" }) { |log| log.info("x") }
  end

  # What most programs have.
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

  # What Puma asks for.
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
