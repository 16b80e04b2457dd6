# frozen_string_literal: true

# The benchmarks on another Ruby: one short round on the program that runs this test, as if it were another one.
# SPDX-License-Identifier: MIT

require "test_helper"
require "open3"

class BenchOtherRubyTest < Minitest::Test
  RUN = File.expand_path("../../bench/run.rb", __dir__)

  def run_bench(*options)
    Open3.capture2e({ "RUBYOPT" => nil }, Gem.ruby, RUN, *options)
  end

  def test_a_program
    out, status = run_bench("hello", "--ruby", Gem.ruby, "--servers", "rondo,rondo-#{RUBY_VERSION}", "--rounds", "1", "--seconds", "0.2",
                            "--html", File::NULL)
    assert_predicate status, :success?, out
    assert_match(/^\| Rondo \| \d+\.\d\d \| [\d,]+ \|/, out)
    assert_match(/^\| Rondo, Ruby #{Regexp.escape(RUBY_VERSION)}(?: with YJIT)? \| \d+\.\d\d \| [\d,]+ \|/, out)
  end

  def test_what_is_no_ruby
    out, status = run_bench("hello", "--ruby", "/no/such/ruby")
    refute_predicate status, :success?
    assert_match(%r{^bench: /no/such/ruby: No such file or directory}, out)
  end
end
