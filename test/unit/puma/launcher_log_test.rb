# frozen_string_literal: true

# The log of the server, as plugins write to it.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/logger"
require "rondo/puma/launcher_log"

class LauncherLogTest < Minitest::Test
  # @yieldparam log [Rondo::LauncherLog]
  # @return [Array(String, String)] standard output, standard error
  def written
    capture_subprocess_io { yield Rondo::LauncherLog.new(Rondo::Logger.new) }
  end

  def test_lines
    out, err = written do |log|
      log.log "one"
      log.write "two\n"
      log.debug { flunk }
      log.debug_error RuntimeError.new("no"), nil, "no"
    end
    assert_equal ["one\ntwo\n", ""], [out, err]
  end

  def test_errors
    _, err = written do |log|
      assert_equal 1, assert_raises(SystemExit) { log.error "four" }.status
      %i[unknown_error connection_error parse_error ssl_error].each { |name| log.public_send(name, RuntimeError.new("five"), nil, name) }
    end
    assert_match(/^ERROR: four$/, err)
    assert_equal %w[unknown_error connection_error parse_error ssl_error], err.scan(/^(\w+): .*five \(RuntimeError\)/).flatten
  end

  def test_what_is_for_debugging
    before = ENV.fetch("PUMA_DEBUG", nil)
    ENV["PUMA_DEBUG"] = "1"
    out, err = written do |log|
      log.debug "one"
      log.debug { "two" }
      log.debug_error RuntimeError.new("three"), nil, "why"
    end
    assert_equal ["% one", "% two"], out.scan(/% \w+/)
    assert_match(/^why: .*three/, err)
  ensure
    ENV["PUMA_DEBUG"] = before
  end
end
