# frozen_string_literal: true

# The figures that rondo top computes from two samples.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/command/running_server"
require "rondo/command/top/figures"

class TopFiguresTest < Minitest::Test
  Top = Rondo::Top
  BOUNDS = [16, 32, 64].freeze

  def self.worker(index: 0, pid: 100, state: "ready", requests: 0, wait: [0] * 4, duration: [0] * 4, **numbers)
    { "index" => index, "rondo" => { "pid" => pid, "state" => state, "requests" => requests,
                                     "queue_time_us" => { "buckets" => wait },
                                     "duration_us" => { "buckets" => duration } }.merge(numbers.transform_keys(&:to_s)) }
  end

  def self.sample(*workers, time_ms: 0, queues: [], **rest)
    Top::Sample.new(JSON.generate({ "started_at" => "2026-01-01T00:00:00Z", "worker_status" => workers, "bounds_us" => BOUNDS,
                                    "time_ms" => time_ms, "accept_queues" => queues, "versions" => { "rondo" => "1.2" } }
                                  .merge(rest.transform_keys(&:to_s))))
  end

  def worker(**numbers)
    self.class.worker(**numbers)
  end

  def sample(*workers, **rest)
    self.class.sample(*workers, **rest)
  end

  # The page and the terminal say the same words, and call the same thing stuck.
  def test_the_status_page_says_the_same
    page = File.read(File.expand_path("../../../../lib/rondo/status_page/page.js", __dir__))
    said = page[/^const STATES = \{(.*?)\};/m, 1].scan(/(\w+): "([^"]*)"/).to_h
    assert_equal Top::STATES, said
    assert_equal Top::Figures::STUCK_MS, page[/STUCK_MS = (\d+)/, 1].to_i
  end

  def test_a_sample
    found = sample(worker(busy: 3), queues: [{ "depth" => 2 }, { "depth" => nil }, { "depth" => 5 }])
    assert_equal [3, 0, "1.2", 7, true], [found.workers[0]["busy"], found.workers[0]["unheard of"], found.version, found.accept_queue, found.cluster?]
    assert_nil sample(worker, queues: [{ "depth" => nil }]).accept_queue
  end

  # Each of them would be an exception somewhere else, or a mistake on the screen.
  WRONG = {
    "busy" => "many", "queue_time_us" => {}, "duration_us" => { "buckets" => [1, 2, 3, "4"] }, "state" => 7, "calls" => [{}],
    "pid" => nil, "oldest_call_ms" => "x", "requests" => [1]
  }.freeze

  def test_numbers_that_are_none
    WRONG.each do |name, value|
      wrong = worker.tap { |row| row["rondo"][name] = value }
      assert_raises(Rondo::Error, name) { sample(wrong) }
    end
    assert_raises(Rondo::Error) { sample(worker(wait: [0] * 3)) }
    { certificates: [{}], log: [1], accept_queues: [nil], bounds_us: ["a"] * 3, started_at: "today", time_ms: "1" }.each do |name, value|
      assert_raises(Rondo::Error, name) { sample(worker, **{ name => value }) }
    end
  end

  # What is read is what the form knows.
  def test_the_form_knows_all_that_is_read
    text = File.read(File.expand_path("../../../../lib/rondo/command/top/figures.rb", __dir__))
    read = text.scan(/worker\["(\w+)"\]/).flatten | Top::Figures::GAUGES.map(&:to_s) | Top::Figures::COUNTED.keys
    assert_equal Top::Form::READ.sort, read.sort
  end

  def test_a_single_process
    single = JSON.generate(worker(pid: 7).except("index").merge("started_at" => "2026-01-01T00:00:00Z", "bounds_us" => BOUNDS,
                                                                "time_ms" => 1, "accept_queues" => []))
    found = Top::Sample.new(single)
    refute found.cluster?
    assert_equal([7], found.workers.map { |row| row["pid"] })
  end

  def test_what_is_no_sample
    ["", "hello", "[]", "{}", '{"worker_status":3}'].each do |text|
      assert_raises(Rondo::Error, text) { Top::Sample.new(text) }
    end
  end

  def test_the_first_look_knows_no_rates
    figures = Top::Figures.new(nil, sample(worker(busy: 1, requests: 50)))
    assert_equal [1, nil, nil], [figures.total.busy, figures.total.rate, figures.total.wait_p99]
    assert_nil figures.rows.first.rate
  end

  def test_rates_and_percentiles_are_of_the_time_between
    before = sample(worker(requests: 100, wait: [90, 0, 0, 10]), time_ms: 1000)
    after = sample(worker(requests: 300, static_answers: 50, wait: [90, 100, 0, 10], duration: [0, 0, 4, 0]), time_ms: 3000)
    row = Top::Figures.new(before, after).rows.first
    assert_in_delta 100.0, row.rate
    assert_in_delta 25.0, row.file_rate
    assert_equal [24, 31], [row.wait_p50, row.wait_p99]
    assert_equal [48, 64], [row.time_p50, row.time_p99]
  end

  def test_a_new_process_counts_from_zero
    before = sample(worker(pid: 1, requests: 1000, wait: [9, 9, 9, 9]), time_ms: 0)
    after = sample(worker(pid: 2, requests: 10, wait: [0, 0, 0, 1]), time_ms: 1000)
    figures = Top::Figures.new(before, after)
    assert_in_delta 10.0, figures.total.rate
    assert_equal 64, figures.total.wait_p50 # only the lower end of the last bucket is known
  end

  def test_all_workers_together
    before = sample(worker, worker(index: 1, pid: 101))
    after = sample(worker(requests: 10, busy: 1, wait: [1, 0, 0, 0]), time_ms: 1000) # one of them has gone
    assert_in_delta 10.0, Top::Figures.new(before, after).total.rate
    both = sample(worker(requests: 10, busy: 1, wait: [1, 0, 0, 0]),
                  worker(index: 1, pid: 101, state: "draining", requests: 5, busy: 2, wait: [0, 1, 0, 0]), time_ms: 1000)
    figures = Top::Figures.new(before, both)
    assert_equal [3, 16, 32, 1], [figures.total.busy, figures.total.wait_p50, figures.total.wait_p99, figures.ready]
    assert_in_delta 15.0, figures.total.rate
  end

  # [state, busy, max_threads, standing_in, last sign of life from Ruby, the text shown] at 10,000 ms
  STATES = [
    ["ready", 5, 5, 0, 7000, "stuck"], # all threads are in the application
    ["ready", 5, 5, 0, 9000, "ready"], # not for long
    ["ready", 1, 5, 0, 1000, "ready"], # four can do something else
    ["ready", 1, 5, 1, 1000, "stuck"], # but Ruby does not let them
    ["ready", 0, 5, 0, 1000, "ready"],
    ["draining", 5, 5, 0, 1000, "draining"],
    ["booting", 0, 0, 0, 0, "booting"]
  ].freeze

  def test_a_stuck_worker_is_seen_as_such
    STATES.each do |state, busy, max_threads, standing_in, ruby_turn_ms, shown|
      rows = Top::Figures.new(nil, sample(worker(state: state, busy: busy, max_threads: max_threads, ruby_turn_ms: ruby_turn_ms,
                                                 standing_in: standing_in), time_ms: 10_000)).rows
      assert_equal shown, rows.first.state, [state, busy, max_threads, standing_in, ruby_turn_ms].inspect
    end
  end

  def test_the_oldest_call
    found = sample(worker(oldest_call_ms: 4000), worker(index: 1, oldest_call_ms: 7000), worker(index: 2), time_ms: 10_000)
    figures = Top::Figures.new(nil, found)
    assert_equal [6_000_000, 3_000_000, nil], figures.rows.map(&:oldest_us)
    assert_equal 6_000_000, figures.total.oldest_us
  end

  def test_master_and_molds_have_memory
    figures = Top::Figures.new(nil, sample(worker(rss_bytes: 5), worker(rss_bytes: 6), master_rss_bytes: 100, mold_rss_bytes: 1000))
    assert_equal 1111, figures.total.rss_bytes
  end

  def test_no_workers_at_all
    figures = Top::Figures.new(sample, sample)
    assert_equal [0, nil, 0], [figures.total.busy, figures.total.rate, figures.ready]
  end

  # The same measure as /stats has.
  def test_percentiles_are_those_of_the_server
    assert_nil Top::Figures.percentile([0, 0, 0, 0], BOUNDS, 0.5)
    assert_equal 16, Top::Figures.percentile([1, 0, 0, 0], BOUNDS, 0.5)
    assert_equal 8, Top::Figures.percentile([2, 0, 0, 0], BOUNDS, 0.5)
    assert_equal 64, Top::Figures.percentile([0, 0, 0, 5], BOUNDS, 0.99)
  end
end
