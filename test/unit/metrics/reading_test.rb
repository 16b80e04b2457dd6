# frozen_string_literal: true

# What is read from the scoreboard, and by which names.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/metrics/reading"
require_relative "../../../tools/metrics_page"

class ReadingTest < Minitest::Test
  Reading = Rondo::Metrics::Reading

  def test_rows_with_a_process
    board = Rondo::Scoreboard.new(4)
    enter(board, 0, started_ms: 1000, requests: 7, busy: 2)
    enter(board, 2, started_ms: 2000, requests: 1)
    enter(board, 3, started_ms: 1000)
    workers = Reading.new(board, 2).workers
    assert_equal([[0, true], [0, false], [1, false]], workers.map { |worker| [worker.number, worker.leaving] })
    assert_equal [7, 1, 0], (workers.map { |worker| worker.counters[:requests] })
    assert_equal 2, workers[0].gauges[:busy]
    assert_operator workers[0].gauges[:rss_bytes], :>, 1 << 20
    assert_equal :ready, workers[0].state
    assert_operator workers[0].ages[:worker_age_seconds], :>, workers[1].ages[:worker_age_seconds]
    refute_includes workers[0].ages, :oldest_call_age_seconds
    assert_equal [[0], 0], (workers[0].times[:queue_time_seconds].then { |counts, sum| [counts.uniq, sum] })
  end

  def test_names_and_meanings_are_those_of_the_page_of_metrics
    families = MetricsPage.families.transform_keys { |name| name.delete_prefix("rondo_").delete_suffix("_total") }
    Reading::DOCS.each { |name, doc| assert_equal doc, families.fetch(name.to_s)[:help] }
    assert_equal Reading::DOCS.keys.sort, (Reading::AGES.keys + Reading::TIMES.keys).sort
    { "gauge" => Reading::GAUGES + Reading::AGES.keys, "counter" => Reading::COUNTERS, "histogram" => Reading::TIMES.keys }.each do |type, names|
      names.each { |name| assert_equal type, families.fetch(name.to_s)[:type], name }
    end
    left_out = %w[build_info start_time_seconds accept_queue_depth accept_queue_limit certificate_expiry_time_seconds control_refused workers generation]
    assert_equal left_out.sort, (families.keys - (Reading::GAUGES + Reading::COUNTERS + Reading::DOCS.keys).map(&:to_s)).sort
  end

  private

  def enter(board, row, **values)
    { pid: Process.pid, state: 2, **values }.each { |name, value| board.set(row, name, value) }
  end
end
