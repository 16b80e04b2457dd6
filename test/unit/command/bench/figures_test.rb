# frozen_string_literal: true

# The figures of rondo bench: medians, ratios, fairness, CPU time, and how they are written.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/command/bench"

class BenchFiguresTest < Minitest::Test
  Bench = Rondo::Bench
  Figures = Bench::Figures

  def test_medians
    assert_nil Figures.median([nil])
    assert_equal 2, Figures.median([3, 1, nil, 2])
    assert_in_delta 1.5, Figures.median([2, 1])
  end

  # Each round's own ratio counts: the machine became three times slower after the first.
  def test_ratios_within_rounds
    mine = [10, 30, 31].map { |value| { busy: { rps: value } } }
    base = [5, 15, 10].map { |value| { busy: { rps: value } } }
    assert_in_delta 2, Figures.ratio(mine, base, :busy, :rps)
    assert_nil Figures.ratio(mine, [{ busy: {} }] * 3, :busy, :rps)
  end

  def test_how_numbers_are_written
    { nil => "-", 0 => "0", 0.0012 => "0.001", 0.5 => "0.500", 1.234 => "1.23", 12.34 => "12.3", 123.4 => "123", 12_345.6 => "12,346",
      -1_234_567 => "-1,234,567" }.each { |value, text| assert_equal text, Figures.number(value) }
    { nil => "-", 12.3 => "12.3 µs", 1234 => "1.23 ms", 2_500_000 => "2.50 s" }.each { |value, text| assert_equal text, Figures.time(value) }
    assert_equal "1.50 MiB", Figures.mebibytes(3 << 19)
  end

  def test_fairness_is_that_of_connections_that_take_no_more_than_others
    lines = [{ kind: :kept, answers: 9, p50_us: 10.0, p99_us: 20.0 }, { kind: :fresh, answers: 9, p50_us: 12.0, p99_us: 33.0 },
             { kind: :piped, answers: 99, p50_us: 90.0, p99_us: 990.0 }]
    assert_in_delta 3, Bench::Rounds.fairness(lines)
    starved = { kind: :kept, answers: 0, p50_us: 0.0, p99_us: 0.0, longest_us: 550.0 }
    assert_in_delta 50, Bench::Rounds.fairness([*lines, starved])
    assert_nil Bench::Rounds.fairness([starved])
  end

  def test_connections_of_the_phases
    (1..9).each do |count|
      assert_equal count, Bench::Rounds.connections(:busy, count).values.sum
      assert_equal count, Bench::Rounds.connections(:mixed, count).values.sum
    end
    assert_equal({ kept: 1, piped: 0, fresh: 0 }, Bench::Rounds.connections(:alone, 32))
  end

  # Threads count exactly; one that has ended took its time along, and then the process counts.
  def test_cpu_time
    before = { threads: 1.0, processes: 1.0, count: 1 }
    assert_in_delta 0.503, Bench::Processes.cpu_between(before, { threads: 1.503, processes: 1.51, count: 1 })
    assert_in_delta 0.8, Bench::Processes.cpu_between(before, { threads: 1.2, processes: 1.8, count: 1 })
    assert_nil Bench::Processes.cpu_between(before, { threads: nil, processes: nil, count: 0 })
  end

  def test_the_processes_of_this_one
    child = spawn("sleep 60")
    assert_includes Bench::Processes.tree(Process.pid), child
    assert_operator Bench::Processes.memory([Process.pid])[:rss], :>, 1 << 20
    server = TCPServer.new("127.0.0.1", 0)
    assert_equal Process.pid, Bench::Processes.listener(server.addr[1])
  ensure
    server&.close
    Process.kill(:KILL, child)
    Process.wait(child)
  end
end
