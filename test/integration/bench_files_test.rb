# frozen_string_literal: true

# The benchmarks of files count only bytes that really arrived: against the floor, which sends everything, and against a
# server of the test, which lies. One short round of each kind of scenario shows that everything the benchmarks need
# works.
# SPDX-License-Identifier: MIT

require "test_helper"
require "socket"
require_relative "../../bench/measure"
require_relative "../../bench/report"

%w[hello files_hot1k files_hot64k files_9mb files_9mb_cold files_ten_static files_bystander files_stuck
   files_slow].each do |name|
  require_relative "../../bench/scenarios/#{name}"
end

class BenchFilesTest < Minitest::Test
  # Answers every path with the answer it was given for it, `times` times on a connection.
  class Waiter
    attr_reader :port, :ended

    def initialize(answers, times: 1_000_000)
      @answers = answers
      @times = times
      @ended = Queue.new
      @listener = TCPServer.new("127.0.0.1", 0)
      @port = @listener.addr[1]
      @thread = Thread.new { loop { serve(@listener.accept) } }
    end

    def stop
      @thread.kill.join
      @listener.close
    end

    private

    def serve(socket)
      Thread.new do
        @times.times do
          path = (socket.gets("\r\n\r\n") || break)[/\S+ (\S+)/, 1]
          answer = @answers.fetch(path)
          socket.write(answer.respond_to?(:call) ? answer.call : answer)
        end
        socket.close
      rescue SystemCallError
        nil # the client has everything that it came for
      ensure
        @ended << true
      end
    end
  end

  KINDS = %w[files_hot1k files_hot64k files_9mb files_9mb_cold files_bystander files_slow].freeze
  GOOD = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"
  HELLO = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\nHello, World!"
  CHUNKED = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"
  CLOSING = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 5\r\n\r\nhello"

  def setup
    Bench::Programs.build
    Bench::Files.prepare
  end

  def floor
    @floor ||= Bench::Servers.all.fetch("floor")
  end

  # @return [Hash] the client's report about a server with these answers
  def told(answers, *command, times: 1_000_000)
    waiter = Waiter.new(answers, times: times)
    Bench::DownloadClient.run(waiter.port) { |client| return client.tell(*command) }
  ensure
    waiter.stop
  end

  # On a busy machine a client gets no CPU for a while: twice the time, until it was enough.
  #
  # @param enough [#call] whether the client's report is what it has to become
  # @yieldparam seconds [Float]
  # @yieldreturn [Hash] the client's report
  # @return [Hash] the last one
  def with_time(seconds, enough)
    loop do
      said = yield seconds
      return said if enough.call(said) || seconds > 15

      seconds *= 2
    end
  end

  def fetched(answer, enough, **options)
    with_time(0.05, enough) { |seconds| told({ "/file" => answer }, "fetch", "/file", 5, 2, seconds, 0, **options) }
  end

  BOTH_FAILED = ->(said) { said[:failed] == 2 }

  def test_whole_answers_count_for_each_connection
    [GOOD, CHUNKED, CLOSING].each do |answer|
      said = fetched(answer, ->(report) { report[:answers].min.positive? }, times: answer == CLOSING ? 1 : 1_000_000)

      assert_equal [0, ""], said.values_at(:failed, :why)
      assert_equal [2, 2], said.values_at(:answers, :bytes).map(&:size)
      assert_operator said[:answers].min, :>, 0
      assert_operator said[:bytes].min, :>=, said[:answers].min * 5
    end
  end

  def test_what_is_on_its_way_counts_as_far_as_it_came
    head = "HTTP/1.1 200 OK\r\ncontent-length: 9437184\r\n\r\n"
    answers = { "/file" => "#{head}#{"x" * 1000}" }
    said = with_time(0.1, ->(report) { report[:bytes] == [1000] * 3 }) do |seconds|
      told(answers, "fetch", "/file", 9_437_184, 3, seconds, 0)
    end

    assert_equal [0, [1000] * 3, [0] * 3], said.values_at(:failed, :bytes, :answers)
  end

  def test_wrong_answers_are_failures
    { GOOD.sub("200", "404") => "an answer had another status than 200",
      GOOD.sub("5", "4") => "what came is no answer",
      "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhell" => "an answer had the wrong length",
      "220 hello there\r\n\r\n" => "what came is no answer" }.each do |answer, why|
      assert_equal [2, why], fetched(answer, BOTH_FAILED).values_at(:failed, :why)
    end
  end

  def test_a_connection_that_ends_too_early_is_a_failure
    said = fetched("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell", BOTH_FAILED, times: 1)

    assert_equal [2, "a connection was closed before its answer was whole"], said.values_at(:failed, :why)
  end

  def test_a_bystander_counts_and_must_be_greeted
    answers = { "/file" => GOOD, "/" => HELLO }
    said = told(answers, "fetch", "/file", 5, 1, 0.1, 100)

    assert_equal [0, 0], said.values_at(:failed, :http_errors)
    assert_operator said[:http_answers], :>, 0

    said = told(answers.merge("/" => GOOD), "fetch", "/file", 5, 1, 0.1, 100)

    assert_operator said[:http_errors], :>, 0
    assert_equal "a plain request got no answer", said[:why]
  end

  # A stuck call stays stuck until a connection that fetched files has ended.
  def stuck(stuck_answer, file_answer = GOOD, seconds: 0.3)
    waiter = nil
    release = -> { waiter.ended.pop && stuck_answer }
    waiter = Waiter.new({ "/file" => file_answer, "/stuck" => stuck_answer ? release : HELLO })
    Bench::DownloadClient.run(waiter.port) do |client|
      return client.tell("stuck", "/file", 5, 100, seconds, "/stuck")
    end
  ensure
    waiter.stop
  end

  def test_files_while_another_request_is_stuck
    said = stuck(HELLO)

    assert_equal [0, "", 0], said.values_at(:failed, :why, :http_errors)
    assert_operator said[:http_answers], :>, 0
    assert_operator said[:longest_us], :>, 0
  end

  def test_stuck_requests_and_files_beside_them_are_checked
    why = "nothing was stuck"
    said = with_time(0.3, ->(report) { report[:why] == why }) { |seconds| stuck(nil, seconds: seconds) }
    assert_equal why, said[:why]
    assert_equal "what was stuck got no answer", stuck(GOOD.sub("200", "500"))[:why]
    assert_equal "a plain request got no answer", stuck(HELLO, HELLO)[:why]
  end

  def test_slow_ones_read_a_part_and_stay
    running = Bench::Running.new(floor, "files", wrapper: [])
    Bench::DownloadClient.run(running.port) do |client|
      2.times do
        assert_equal({ failed: 0, why: "", slow: 20 }, client.tell("slow", "/9mb.bin", 9 << 20, 20, 65_536))
      end
      assert_equal "an answer had the wrong status or length", client.tell("slow", "/9mb.bin", 9, 20, 65_536)[:why]
    end
  ensure
    running&.stop
  end

  def test_the_floor_sends_every_file_whole
    running = Bench::Running.new(floor, "files", wrapper: [])
    Socket.tcp("127.0.0.1", running.port) do |socket|
      Bench::Files::SIZES.each do |name, size|
        socket.write("GET /#{name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")

        assert_includes socket.gets("\r\n\r\n"), "content-length: #{size}\r\n"
        assert_equal File.binread(Bench::Files.path(name)), socket.read(size), name
      end
    end
  ensure
    running&.stop
  end

  # Started as for the tables; byte by byte, then by two clients at once.
  def test_rondo_answers_in_every_way
    (Bench::Scenario::ANSWERS).each do |way|
      scenario = Bench.scenarios.fetch("files_ten_static").dup.tap { |each| each.answered(way) }
      scenario.over_connections(2)
      measurement = Bench::Measurement.new(scenario, [Bench::Servers.all.fetch("rondo")])
      contestant = measurement.run(rounds: 1, seconds: 0.02).contestants.first

      assert_empty contestant.notes, way
      assert_equal 0, contestant.rounds.first[:failed], way
    end
  end

  def test_a_round_of_every_kind
    measurements = KINDS.map do |name|
      scenario = Bench.scenarios.fetch(name).dup.tap { |small| small.over_connections(4) }
      Bench::Measurement.new(scenario, [floor]).run(rounds: 1, seconds: 0.02)
    end

    assert_empty(measurements.flat_map { |measurement| measurement.contestants.flat_map(&:notes) })
    assert_equal([[0]], measurements.map { |each| each.contestants.first.rounds.map { |round| round[:failed] } }.uniq)
    text = Bench::Report.new(measurements, seconds: 0.02).markdown
    KINDS.each { |name| assert_includes text, "## #{name}" }
  end

  def test_who_takes_part
    { "files_ten_static" => %w[rondo floor nginx iodine puma], "files_stuck" => %w[rondo iodine puma] }
      .each do |name, servers|
        ready = Bench::Servers.all.values.select { |server| server.takes_part?(Bench.scenarios.fetch(name)) }

        assert_equal servers, ready.map(&:name)
      end
  end

  # The numbers of a server after its rounds.
  def contestant(name, scenario, *rounds)
    Bench::Contestant.new(Bench::Servers.all.fetch(name), scenario).tap { |each| each.rounds.concat(rounds) }
  end

  def report(*contestants, scenario)
    measurement = Struct.new(:scenario, :contestants).new(scenario, contestants)
    Bench::Report.new([measurement], seconds: 1).markdown
  end

  def test_the_better_rival_of_each_round_counts
    scenario = Bench.scenarios.fetch("files_9mb")
    mine = contestant("rondo", scenario, { mb_per_s: 100.0 }, { mb_per_s: 200.0 })
    nginx = contestant("nginx", scenario, { mb_per_s: 50.0 }, { mb_per_s: 400.0 })
    puma = contestant("puma", scenario, { mb_per_s: 100.0 }, { mb_per_s: 100.0 })

    assert_includes report(mine, nginx, puma, scenario), "| 0.750 | 0.500 to 1.000 | missed |"
  end

  def test_of_the_kernel_only_its_release_is_told
    scenario = Bench.scenarios.fetch("files_9mb")

    assert_match(/ CPUs; Linux \d+\.\d+; ruby /, report(contestant("rondo", scenario, { mb_per_s: 1.0 }), scenario))
  end

  def test_one_failure_makes_the_row_failed
    scenario = Bench.scenarios.fetch("files_stuck")
    good = { longest_ms: 2.0, p50_us: 1.0, answers: 10, failed: 0 }

    assert_includes report(contestant("rondo", scenario, good, good), scenario), "stretch |"
    [{ failed: 3 }, nil].each do |bad|
      text = report(contestant("rondo", scenario, good, bad), scenario)

      assert_includes text, "| - | - | FAILED |"
      assert_includes text, "| Rondo | FAILED | FAILED | FAILED | #{bad ? 3 : 0} |"
    end
  end

  def test_a_wrong_file_takes_no_part
    scenario = Bench.scenarios.fetch("files_hot1k").dup.tap { |other| other.path("/64k.bin") }
    one = Bench::Measurement.new(scenario, [floor]).run(rounds: 1, seconds: 0.02).contestants.first

    assert_predicate one, :failed?
    assert_equal ["/64k.bin is not answered with the file"], one.notes
  end
end
