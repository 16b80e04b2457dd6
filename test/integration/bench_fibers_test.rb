# frozen_string_literal: true

# The benchmarks of fibers and NeverBlock's table: one short round, with all that they need.
# SPDX-License-Identifier: MIT

require "test_helper"
require_relative "../../bench/fibers"
require_relative "../../bench/neverblock"

class BenchFibersTest < Minitest::Test
  def report(run)
    out, err = capture_io { run.call }
    refute_match(/failed|not there/, err)
    out
  end

  # @return [Array<String>] the cells of the first row that begins so
  def row(text, title)
    text[/^\| #{Regexp.escape(title)} \|.*$/].to_s.split("|").drop(2).map(&:strip)
  end

  def test_requests_at_once_as_a_client
    Dir.mktmpdir do |folder|
      out = File.join(folder, "table.md")
      report(Bench::Neverblock.new(["client", "--rounds", "1", "--delays", "10", "--requests", "20", "--ways", "threads,fibers",
                                    "--out", out]))
      text = File.read(out)
      here = "Ruby #{RUBY_VERSION[/\d+\.\d+/]}"
      ["a thread each, #{here}", "Rondo.fibers, #{here}"].each do |title|
        rate, _, cpu, memory, = row(text, title)
        [rate, cpu, memory].each { |figure| assert_operator figure.delete(",").to_f, :>, 0, title }
      end
      assert_match(/^\| 10 ms: CPU over threads, #{here} \| ≤ 0.55 \| ≤ 0.45 \| \d/, text)
      assert_match(%r{\A<svg.*10 ms.*</svg>}m, File.read(File.join(folder, "table.svg")))
    end
  end

  def test_requests_beside_a_thread_that_computes
    text = report(Bench::Neverblock.new(%w[beside --rounds 1 --seconds 0.2 --ways threads]))
    assert_equal 3, row(text, "a thread each, Ruby #{RUBY_VERSION[/\d+\.\d+/]}").size
  end

  # It ends with the fifth answer for each connection; the seconds are those of a slow machine.
  def test_an_application_that_asks_a_backend
    text = report(Bench::Neverblock.new(%w[server --rounds 1 --server-delays 10 --server-seconds 60 --connections 8
                                           --servers fibers]))
    share, rate, = row(text, "Rondo --fibers 8")
    assert_operator share.to_f, :>, 0
    assert_operator rate.to_f, :>, 0
  end

  def test_requests_that_wait_sleep_or_compute_beside_plain_ones
    text = report(Bench::FibersRun.new(%w[--rounds 1 --seconds 0.05 --connections 4 --asleep 16 --computing 0.05
                                          --servers fibers]))
    %w[wait hello asleep computing].each { |name| assert_includes text, "## #{name}: " }
    assert_equal "16", row(text, "Rondo --fibers 116")[1]
    refute_match(/not measured|FAILED/, text.lines.grep_v(/over threads|with threads/).join)
  end
end
