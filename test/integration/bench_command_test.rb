# frozen_string_literal: true

# `rondo bench` as a command: a real application, real loads of some tenths of a second. No test looks at how fast
# something is. Beside Puma: test/compat/puma/bench_test.rb.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "json"
require "support/bench_page"

class BenchCommandTest < ShellCase
  include BenchPage

  SHORT = %w[--seconds 0.2 --rounds 2 --connections 8].freeze
  APP = <<~RUBY
    run lambda { |env|
      case env["PATH_INFO"]
      when "/moved" then [302, { "location" => "/" }, []]
      when "/secret" then [env["HTTP_COOKIE"] == "a=b" ? 200 : 403, {}, ["secret"]]
      when "/broken" then [500, {}, ["no"]]
      else [200, { "content-type" => "text/plain" }, ["hello"]]
      end
    }
  RUBY

  def setup
    super
    write("config.ru", APP)
  end

  # One load for many facts, because each needs a server.
  def test_a_report
    result = rondo("bench", *SHORT, "--url", "/", "--url", "/moved", "--json", "all.json")
    assert_equal [0, ""], [result.code, result.err]
    document = JSON.parse(read("all.json"))
    assert_page(document, read("rondo-bench.html"))
    server, = document["servers"]
    assert_equal ["rondo", 2], [server["name"], server["rounds"].size]
    server["rounds"].each { |round| assert_round(round) }
    told = server["notes"].join("\n")
    assert_match(%r{/moved: answers 302 to /$}, told)
    assert_match(/(\d+) of \d+ answers were not 2xx \(3xx: \1\)/, told)
    assert_match(/requests\/s.*What to set.*The report: rondo-bench\.html/m, result.out)
    assert_includes result.out, told.lines.first.chomp
    assert_empty left_over
  end

  def assert_round(round)
    %w[alone busy mixed].each do |phase|
      measured = round[phase]
      assert_operator measured["answers"], :>, 0
      assert_equal measured["answers"], measured["statuses"].values.sum
      assert_equal [0, 0, 0], measured.values_at("broken", "refused", "unanswered")
      assert_equal measured["curve_us"].sort, measured["curve_us"]
      assert_operator measured["cpu_us"], :>=, 0
    end
    assert_operator round["busy"]["queue_mean_us"], :>, 0
    assert_equal({ "kept" => 4, "piped" => 2, "fresh" => 2 }, round["mixed"]["connections"].map { |line| line["kind"] }.tally)
    assert_operator round["memory"]["rss"], :>=, round["memory"]["pss"]
  end

  def test_workers_and_header_fields
    result = rondo("bench", "config", *SHORT, "-w", "2", "-t", "2", "--url", "/secret", "--header", "Cookie: a=b", "--json", "all.json",
                   "--report", "other.html")
    assert_equal [0, ""], [result.code, result.err]
    document = JSON.parse(read("all.json"))
    assert_equal [2, 2], document["options"].values_at("threads", "workers")
    assert_equal ["2xx"], document["servers"][0]["rounds"][0]["busy"]["statuses"].keys
    refute_includes document["servers"][0]["notes"], nil
    refute_match(/: $/, result.out)
    refute_path_exists File.join(@folder, "rondo-bench.html")
  end

  def test_a_server_that_runs
    server = start
    result = rondo("bench", *SHORT, "--json", "all.json", "http://localhost:#{server.port}/moved?a")
    assert_equal [0, ""], [result.code, result.err]
    document = JSON.parse(read("all.json"))
    assert_page(document, read("rondo-bench.html"))
    assert_equal ["/moved?a"], document["options"]["paths"]
    assert_operator document["servers"][0]["medians"]["busy"]["cpu_us"], :>, 0 # its process was found
    assert_equal "200", get(server).code
    assert_match(%r{^bench: \S+/moved\?a answers, warming up$}, result.out) # it does not say what it is
  end

  def test_only_this_machine
    ["http://192.0.2.1/", "http://[2001:db8::1]/", "http://0.0.0.0:1/", "http://169.254.169.254/"].each do |url|
      assert_complaint 1, /only loopback addresses of this machine are measured/, rondo("bench", url)
    end
    assert_complaint 1, %r{only http:// can be measured}, rondo("bench", "https://127.0.0.1/")
    assert_complaint 1, /a user name in the address/, rondo("bench", "http://a@127.0.0.1/")
    assert_complaint 1, /99999 is not a port/, rondo("bench", "http://127.0.0.1:99999/")
    assert_complaint 1, /is not an address/, rondo("bench", "http://[/")
    refute_path_exists File.join(@folder, "rondo-bench.html")
  end

  def test_servers_that_cannot_be_measured
    HeldPort.open do |port|
      assert_complaint 1, /nothing answers at .*Connection refused/, rondo("bench", "http://127.0.0.1:#{port}/")
    end
    { "SSH-2.0-x\r\n" => /does not answer with HTTP/, "" => /does not answer with HTTP/,
      "HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n" => %r{/: answers 404} }.each do |text, complaint|
      answering(text) { |port| assert_complaint 1, complaint, rondo("bench", "http://127.0.0.1:#{port}/") }
    end
    assert_complaint 1, %r{Rondo, /broken: answers 500}, rondo("bench", "--url", "/broken")
    write("bad.ru", "raise 'the database is not there'")
    assert_complaint 1, /Rondo has ended: .*the database is not there.*\(-e production\)/, rondo("bench", "bad.ru")
    assert_empty left_over
  end

  # It answers once, and is gone when the load comes.
  def test_a_server_that_dies
    answering("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", times: 1) do |port|
      assert_complaint 1, /does not answer any more/, rondo("bench", *SHORT, "http://127.0.0.1:#{port}/")
    end
  end

  def test_wrong_words
    { %w[--rounds 0] => /--rounds must be a number from 1 to 50, not "0"/, %w[--seconds 1e9] => /--seconds must be/,
      %w[--connections 9999] => /--connections must be a number from 1 to 1024/, %w[--against pumma] => /no such server: pumma; did you mean puma/,
      %w[--url //\ x] => /--url must be a path/, ["--header", "a: b\r\nc: d"] => /--header must be/, ["--header", "Host: b"] => /cannot set Host/,
      %w[none.ru] => /there is no file none.ru/, %w[a.ru b.ru] => /too many arguments/, %w[--header] => /missing argument: --header/,
      %w[--against puma http://127.0.0.1:1/] => /--against needs an application/ }.each do |words, complaint|
      assert_complaint 2, complaint, rondo("bench", *words)
    end
    assert_complaint 1, /unicorn is not there: add it to the bundle, or gem install unicorn/, rondo("bench", "--against", "unicorn")
    assert_complaint 1, %r{cannot write none/report.html$}, rondo("bench", "--report", "none/report.html")
    assert_match(/Usage: rondo bench/, rondo("bench", "--help").out)
  end

  # While it measures, as soon as its servers run.
  def test_ctrl_c_leaves_no_process
    %w[INT TERM].each do |signal|
      interrupted(signal) do |status, said|
        assert_equal 130, status.exitstatus
        assert_match(/interrupted; nothing was written/, said)
        assert_empty left_over
      end
    end
  end

  # Nobody is there to end them: the kernel tells them, and they end by themselves.
  def test_a_kill_leaves_no_process
    interrupted("KILL") do
      over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
      sleep 0.05 while left_over.any? && Process.clock_gettime(Process::CLOCK_MONOTONIC) < over
      assert_empty left_over
    end
  end

  private

  # @yieldparam status [Process::Status]
  # @yieldparam said [String]
  def interrupted(signal)
    log = write("log", "")
    pid = spawn(BLANK, *RONDO, "bench", "-w", "2", "--seconds", "60", chdir: @folder, %i[out err] => log)
    over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    until read("log").include?("warming up")
      flunk read("log") if Process.clock_gettime(Process::CLOCK_MONOTONIC) > over
      sleep 0.05
    end
    refute_empty left_over
    Process.kill(signal, pid)
    yield Process.wait2(pid)[1], read("log")
    refute_path_exists File.join(@folder, "rondo-bench.html")
  end

  # @return [Array<String>] processes that run in the test's folder
  def left_over
    Dir.glob("/proc/[0-9]*").select { |process| File.readlink("#{process}/cwd") == @folder rescue false }
       .reject { |process| @servers.any? { |server| server.pid.to_s == File.basename(process) } }
  end

  # A server that says the same to everybody; with `times` it ends behind so many answers.
  def answering(text, times: nil)
    server = TCPServer.new("127.0.0.1", 0)
    port = server.addr[1]
    thread = Thread.new do
      (times || Float::INFINITY).to_f.then { |most| 0.step.take_while { |index| index < most && answer(server.accept, text) } }
    ensure
      server.close
    end
    yield port
  ensure
    thread.kill.join
  end

  def answer(socket, text)
    socket.gets("\r\n\r\n")
    socket.write(text)
    true
  rescue SystemCallError
    true
  ensure
    socket.close
  end
end
