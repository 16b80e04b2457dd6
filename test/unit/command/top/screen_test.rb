# frozen_string_literal: true

# How rondo top draws.
# SPDX-License-Identifier: MIT

require "test_helper"
require "rondo/command/running_server"
require "rondo/command/top/screen"
require_relative "figures_test"

class TopScreenTest < Minitest::Test
  Screen = Rondo::Top::Screen

  def figures(count = 2, files: 0)
    make = TopFiguresTest.method(:worker)
    before = TopFiguresTest.sample(*Array.new(count) { |index| make.call(index: index) })
    workers = Array.new(count) do |index|
      make.call(index: index, requests: 1500, busy: 3, max_threads: 5, queue: 2, connections: 64, rss_bytes: 150 << 20,
                wait: [0, 0, 10, 0], duration: [0, 0, 0, 9], static_answers: files)
    end
    Rondo::Top::Figures.new(before, TopFiguresTest.sample(*workers, time_ms: 1000, queues: [{ "depth" => 4 }]))
  end

  def test_a_screen
    screen = Screen.new
    screen.add(figures)
    lines = screen.lines(figures, width: 140, height: 30)
    assert_match(/\ARondo 1\.2 · 2 of 2 workers ready · up \d+ d \d+ h\z/, lines[0])
    assert_match(/\Arequests\/s +3,000  █\z/, lines[1])
    assert_match(/\Abusy threads +6 of 10  ▅\z/, lines[2])
    assert_match(/queue 4 \(kernel 4\) · wait p50 48 µs .*connections 128 · memory 300M\z/, lines[4])
    assert_match(/\Aworker +pid +gen state/, lines[6])
    assert_match(%r{\A0 +100 +0 ready +█████░░░ 3/5 +- +2 +1,500 +48 µs +64 µs +64 µs +64 µs +64 +150M\z}, lines[7])
    assert_equal 10, lines.size
    assert_equal "q quits · p pauses · s sorts by busy · r hides requests · i shows incidents", lines.last
  end

  CALLS = [{ "state" => "inside", "since_ms" => 400, "client_since_ms" => 0, "status" => 0, "request" => "GET /slow",
             "client" => "10.0.0.1:5" },
           { "state" => "client", "since_ms" => 100, "client_since_ms" => 950, "status" => 0, "request" => "POST /upload",
             "client" => nil },
           { "state" => "answering", "since_ms" => 900, "client_since_ms" => 0, "status" => 206, "request" => "GET /big" },
           { "state" => "thread", "since_ms" => 990, "client_since_ms" => 0, "status" => 0, "request" => "GET /\e[2J" }].freeze
  LOG = [{ "level" => "info", "text" => "- Worker 0 booted" }, { "level" => "info", "text" => "Refused a request" },
         { "level" => "error", "text" => "! Worker 0 ended\n    and more" }].freeze

  def with_calls(calls = CALLS)
    worker = TopFiguresTest.worker(seen_ms: 1000, calls: calls, busy: 3, refused: 1, timed_out: 2)
    Rondo::Top::Figures.new(nil, TopFiguresTest.sample(worker, time_ms: 1100, log: LOG))
  end

  # Also of a program that only claims to be a control server.
  def test_no_word_is_an_order_for_the_terminal
    hostile = "\e[2J\r\u009b5m\n"
    worker = TopFiguresTest.worker(seen_ms: 1000, state: hostile, calls: [
                                     { "state" => hostile, "since_ms" => 400, "client_since_ms" => 0, "status" => hostile, "request" => hostile, "client" => hostile },
                                     { "state" => "answering", "since_ms" => 400, "client_since_ms" => 0, "status" => hostile, "request" => "GET /" }
                                   ])
    sample = TopFiguresTest.sample(worker, time_ms: 1100, log: [{ "level" => "error", "text" => hostile }, { "level" => "warn", "text" => hostile }],
                                           versions: { "rondo" => hostile },
                                           certificates: [{ "names" => [hostile], "days_left" => 7 }])
    screen = Screen.new
    screen.incidents = true
    found = Rondo::Top::Figures.new(nil, sample)
    lines = [*screen.lines(found, width: 300, height: 50), screen.line(found)]
    lines.each { |line| refute_match(/[[:cntrl:]]/, line) }
    assert_operator lines.count { |line| line.include?("\\x1B[2J") }, :>=, 7
  end

  def test_requests_with_age_and_state
    lines = Screen.new.lines(with_calls, width: 100, height: 30)
    assert_equal ["  600 ms  worker 0  GET /slow · in the application · 10.0.0.1:5",
                  "  100 ms  worker 0  GET /big · sends its answer (206)",
                  "   50 ms  worker 0  POST /upload · waits for its client",
                  "   10 ms  worker 0  GET /\\x1B[2J · waits for a thread"], lines[9, 4]
    assert_equal ["  600 ms  worker 0  GET /slow · in the application · 10.0.0.1:5", "and 3 more"],
                 Screen.new.lines(with_calls, width: 100, height: 12)[9, 2]
    assert_match(/q quits/, Screen.new.lines(with_calls, width: 100, height: 9).last)
    hidden = Screen.new.tap { |screen| screen.calls = false }
    refute_match(/slow/, hidden.lines(with_calls, width: 100, height: 30).join)
  end

  def test_a_worker_that_cannot_look_any_more
    worker = TopFiguresTest.worker(seen_ms: 1000, calls: CALLS.first(1))
    figures = Rondo::Top::Figures.new(nil, TopFiguresTest.sample(worker, time_ms: 61_400))
    assert_match(/\A    61 s  worker 0  GET \/slow/, Screen.new.lines(figures, width: 100, height: 30)[9])
  end

  def test_incidents
    screen = Screen.new(color: true).tap { |one| one.incidents = true }
    lines = screen.lines(with_calls([]), width: 100, height: 30)
    assert_equal ["incidents: refused 1 · 503 in the queue 0 · 503 inside 2", "  Refused a request",
                  "\e[31m  ! Worker 0 ended\e[0m"], lines[9, 3]
  end

  def test_narrow_terminals_leave_columns_out
    [100, 80, 60, 40, 20, 5].each do |width|
      lines = Screen.new.lines(figures, width: width, height: 24)
      assert(lines.all? { |line| line.size <= width }, width)
      assert_match(/\A0 .* +(ready|█)/, lines[7]) if width > 20
    end
    assert_equal %w[worker state busy queue req/s wait p99], Screen.new.lines(figures, width: 60, height: 24)[6].split
    sorted = Screen.new.tap { |screen| screen.sort = "memory" }
    assert_match(/memory▾\z/, sorted.lines(figures, width: 50, height: 24)[6])
  end

  def test_sorting
    make = TopFiguresTest.method(:worker)
    workers = [make.call(index: 0, queue: 1), make.call(index: 1, queue: 9), make.call(index: 2, queue: 5)]
    figures = Rondo::Top::Figures.new(nil, TopFiguresTest.sample(*workers))
    by_queue = Screen.new.tap { |screen| screen.sort = "queue" }
    assert_equal %w[1 2 0], by_queue.lines(figures, width: 120, height: 30)[7, 3].map { |line| line[0] }
    Screen::SORTS.each_value { |order| assert_equal 3, figures.rows.sort_by(&order).size }
  end

  def test_files_are_shown_where_there_are_any
    assert_match(%r{memory 300M · files 2,400/s\z}, Screen.new.lines(figures(files: 1200), width: 140, height: 30)[4])
  end

  def test_tls_has_a_line_where_it_is_served
    certificates = [{ "names" => ["late.test"], "days_left" => 80 }, { "names" => %w[a.test b.test], "days_left" => 5 }]
    before = TopFiguresTest.sample(TopFiguresTest.worker)
    sample = TopFiguresTest.sample(TopFiguresTest.worker(tls_connections: 3, tls_full: 8, tls_resumed: 4), time_ms: 2000,
                                                                                                           certificates: certificates)
    figures = Rondo::Top::Figures.new(before, sample)
    lines = Screen.new.lines(figures, width: 140, height: 30)
    assert_equal "TLS: connections 3 · handshakes 4.0/s resumed 2.0/s failed 0.0/s · a.test: 5 days left", lines[5]
    assert_match(/ memory=- tls=3 tls_failed=0\.0 certificate_days=5\z/, Screen.new.line(figures))
  end

  def with_tasks(**numbers)
    worker = TopFiguresTest.method(:worker)
    after = [worker.call(index: 0, **numbers), worker.call(index: 1, timers: numbers.fetch(:timers, 0))]
    Rondo::Top::Figures.new(TopFiguresTest.sample(worker.call(index: 0), worker.call(index: 1)),
                            TopFiguresTest.sample(*after, time_ms: 2000))
  end

  def test_tasks_have_a_line_where_there_are_any
    figures = with_tasks(tasks: 3000, tasks_running: 2, tasks_waiting: 40, timers: 3, oldest_task_ms: 1900)
    lines = Screen.new.lines(figures, width: 140, height: 30)
    assert_equal "tasks: running 2 · queued 40 · late by 100 ms · 1,500/s · timers 6", lines[5]
    assert_match(/ memory=- tasks_running=2 tasks_queued=40 tasks_late=100ms tps=1500 timers=6\z/, Screen.new.line(figures))
    idle = with_tasks(timers: 1)
    assert_equal "tasks: running 0 · queued 0 · late by - · 0.0/s · timers 2", Screen.new.lines(idle, width: 140, height: 30)[5]
    none = with_tasks(oldest_task_ms: 0)
    assert_equal "", Screen.new.lines(none, width: 140, height: 30)[5]
    refute_match(/task/, Screen.new.line(none))
  end

  def worker_line(color: true, **numbers)
    sample = TopFiguresTest.sample(TopFiguresTest.worker(max_threads: 5, **numbers), time_ms: 100_000)
    Screen.new(color: color).lines(Rondo::Top::Figures.new(nil, sample), width: 140, height: 30)[7]
  end

  def test_colours_where_a_terminal_has_them
    stuck = { busy: 5, ruby_turn_ms: 40_000, oldest_call_ms: 40_000 }
    assert_match(/\A\e\[1;31m0 +100 +0 stuck +█{8} 5\/5 +60 s .*\e\[0m\z/, worker_line(**stuck))
    assert_match(/\A\e\[33m0 +100 +0 ready +██░{6} 1\/5 +60 s /, worker_line(busy: 1, oldest_call_ms: 40_000))
    assert_match(/\A\e\[33m0 +100 +0 booting /, worker_line(state: "booting"))
    assert_match(/\A0 +100 +0 ready /, worker_line)
    assert_match(/\A0 +100 +0 stuck /, worker_line(color: false, **stuck))
  end

  def test_the_table_fits_120_columns
    assert_operator Screen::COLUMNS.values.sum + Screen::COLUMNS.size - 1, :<=, 120
  end

  def test_it_fits
    [[20, 5], [1, 1], [80, 24], [200, 3]].each do |width, height|
      lines = Screen.new.lines(figures(40), width: width, height: height, note: "! gone")
      assert_operator lines.size, :<=, height
      assert lines.all? { |line| line.size <= width }
      assert_equal "! gone"[0, width], lines.last
    end
  end

  def test_a_line
    now = Time.at(0).utc
    assert_equal "00:00:00 workers=1/1 busy=3/5 oldest=- queue=2 accept_queue=4 rps=1500 wait_p50=48µs wait_p99=64µs " \
                 "time_p50=64µs time_p99=64µs connections=64 memory=150M", Screen.new.line(figures(1), now: now)
    assert_includes Screen.new.line(Rondo::Top::Figures.new(nil, TopFiguresTest.sample), now: now), "accept_queue=- rps=- wait_p50=-"
  end

  def test_without_utf8
    screen = Screen.new(ascii: true)
    screen.add(figures)
    [*screen.lines(figures, width: 200, height: 50), screen.line(figures)].each { |line| assert line.ascii_only?, line }
  end

  def test_durations
    { nil => "-", 0 => "0 µs", 999 => "999 µs", 1000 => "1.0 ms", 12_345 => "12 ms", 1_500_000 => "1.5 s" }
      .each { |us, text| assert_equal text, Screen.duration(us) }
  end

  def test_bars
    assert_equal " ▁▄█", Screen.bars([0, 1, 40, 80], 10)
    assert_equal "▄█", Screen.bars([80, 40, 80], 2)
    assert_equal "▁▄█", Screen.bars([1, 8, 16], 5, 16)
    assert_equal "▁▁", Screen.bars([1, 1], 5, 16)
    assert_equal "", Screen.bars([], 5)
    assert_equal "  ", Screen.bars([0, 0], 5)
    assert_equal ["█░░░", "░░░░", "████"], [Screen.gauge(1, 100, 4), Screen.gauge(0, 0, 4), Screen.gauge(9, 5, 4)]
  end

  def test_it_forgets
    screen = Screen.new
    300.times { screen.add(figures(1)) }
    assert_operator screen.lines(figures(1), width: 1000, height: 5)[1].count("█"), :<=, Screen::HISTORY
  end
end
