# frozen_string_literal: true

# rack.errors, and what an env has for Rack 2 only.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"
require "rondo"
require "stringio"

class EnvTest < Minitest::Test
  def test_rack_errors_writes_to_standard_error_of_that_time
    before = $stderr
    $stderr = StringIO.new
    assert_equal 3, Rondo::ERRORS.write("abc")
    Rondo::ERRORS.puts("line", 1)
    assert_same Rondo::ERRORS, Rondo::ERRORS.flush
    assert_equal "abcline\n1\n", $stderr.string
  ensure
    $stderr = before
  end

  def test_rack_errors_looks_the_same_always
    assert_equal "#<Rondo::Errors>", Rondo::ERRORS.inspect
  end

  # For this code, another release of Rack is only another release number.
  RACK = "require 'rondo'; module Rack; def self.release; '%<release>s'; end; end; " \
         "Rondo::Server.new(->(_env) {}, **%<settings>s); p Rondo.rack2?, Rondo::ENV_EXTRAS"

  def extras(release, settings = {})
    lib = File.expand_path("../../lib", __dir__)
    output, status = Open3.capture2e(RbConfig.ruby, "-I#{lib}", "-e", format(RACK, release: release, settings: settings))
    assert status.success?, output
    output.lines.map(&:chomp)
  end

  def keys_of_rack2(multithread:)
    { "rack.version" => [1, 3], "rack.multithread" => multithread, "rack.multiprocess" => false,
      "rack.run_once" => false }.inspect
  end

  def test_rack_2_that_is_loaded_after_rondo_gets_its_keys
    assert_equal ["true", keys_of_rack2(multithread: true)], extras("2.2.9")
  end

  def test_rack_2_is_told_whether_there_are_several_threads
    { 1 => false, 2 => true }.each do |threads, told|
      assert_equal keys_of_rack2(multithread: told), extras("2.2.9", max_threads: threads).last
    end
  end

  def test_rack_3_gets_none_of_them
    assert_equal %w[false {}], extras("3.2.1", max_threads: 5)
  end
end
