# frozen_string_literal: true

# Log lines about clients: no byte of a client begins a line of the log or controls a terminal, neither in the server's
# own lines nor in those of requests, in both formats.
# SPDX-License-Identifier: MIT

require_relative "rack_case"
require "json"
require "stringio"
require "support/server_process"
require "tmpdir"

class LogTest < RackCase
  FORGED = '127.0.0.1 - - [01/Jan/2026:00:00:00 +0000] "POST /admin HTTP/1.1" 200 0 0.000001'
  HOSTILE = "x\n#{FORGED}\r\n#{FORGED}\u009b31m\u0085#{FORGED}\u2028\u202e\e[2J\xff".b.freeze
  # Bytes that a terminal, or a program that reads lines, might obey.
  DANGEROUS = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/

  def written(format, **settings, &app)
    io = StringIO.new
    requests = StringIO.new
    client = serve(lint: false, log: Rondo::Logger.new(io: io, json: format == :json), request_log: requests,
                   request_log_format: format, **settings, &app)
    get(client, "/a?#{HOSTILE.unpack1("H*")}")
    get(client, "/end")
    eventually("both requests are logged") { requests.string.lines.size >= 2 }
    [io.string, requests.string].each do |text|
      assert_predicate text.dup.force_encoding(Encoding::UTF_8), :valid_encoding?
      refute_match DANGEROUS, text.dup.force_encoding(Encoding::UTF_8)
    end
  end

  def hostile(env)
    [env["QUERY_STRING"]].pack("H*")
  end

  # Lines that do not continue another line.
  def entries(text)
    text.lines.grep_v(/\A /)
  end

  def app(env)
    words = hostile(env)
    env.update("PATH_INFO" => words, "REQUEST_METHOD" => words, "REMOTE_ADDR" => words) unless words.empty?
    raise words unless words.empty?

    [200, {}, []]
  end

  def test_lines_of_text
    server, requests = written(:common) { |env| app(env) }
    assert_equal 1, entries(server).size, server
    assert_equal 2, requests.lines.size, requests
    assert(entries(server + requests).none? { |line| line.start_with?(FORGED) })
  end

  def test_lines_of_json
    server, requests = written(:json) { |env| app(env) }
    assert_equal ["error"], server.lines.map { |line| JSON.parse(line)["level"] }
    assert_equal [500, 200], requests.lines.map { |line| JSON.parse(line)["status"] }
  end

  IDS = { "X-Request-Id" => "a1", "traceparent" => "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01" }.freeze
  MARK = "request_id=a1 trace_id=4bf92f3577b34da6a3ce929d0e0e4736 parent_id=00f067aa0ba902b7"

  # Returns the server's lines and those of requests: with ids, without, and with what an application has put there.
  def lines_with_ids(format, ids)
    io, requests = StringIO.new, StringIO.new
    client = serve(lint: false, log: Rondo::Logger.new(io: io, json: format == :json), request_log: requests,
                   request_log_format: format, request_ids: ids) do |env|
      env["rondo.ids"] = { "x" => HOSTILE, "y" => 1, 2 => "z" } if env["PATH_INFO"] == "/own"
      raise "no luck" if env["PATH_INFO"] != "/"

      [200, {}, [env["HTTP_X_REQUEST_ID"].to_s]]
    end
    got = [get(client, "/boom", IDS), get(client, "/"), get(client, "/own")].map(&:body)
    eventually("all are logged") { requests.string.lines.size == 3 }
    [io.string, requests.string].each { |text| refute_match DANGEROUS, text.dup.force_encoding(Encoding::UTF_8) }
    [io.string.lines.grep(/no luck/), requests.string.lines, got[1]]
  end

  def test_ids_in_lines_of_text
    errors, requests, = lines_with_ids(:common, :pass)
    assert_equal "GET /boom [#{MARK}]: RuntimeError: no luck\n", errors.first
    assert_match(/ 500 \d+ \d\.\d{6} #{MARK}$/, requests.first)
    assert_match(/ 200 \d+ \d\.\d{6}$/, requests[1])
    assert_match(/ 500 \d+ \d\.\d{6} x=x\\x0A127/, requests[2])
  end

  def test_ids_in_lines_of_json
    errors, requests, id = lines_with_ids(:json, :make)
    [errors, requests].each do |lines|
      assert_equal MARK, JSON.parse(lines.first).slice("request_id", "trace_id", "parent_id").map { |pair| pair.join("=") }.join(" ")
    end
    assert_equal id, JSON.parse(requests[1])["request_id"]
    assert_equal 36, id.size
    refute JSON.parse(requests[1]).key?("trace_id")
    assert_equal %w[x], JSON.parse(requests[2]).keys - JSON.parse(requests[1]).keys
  end

  def test_no_ids_by_default
    errors, requests, id = lines_with_ids(:common, nil)
    assert_equal ["GET /boom: RuntimeError: no luck\n", ""], [errors.first, id]
    assert_match(/ 500 \d+ \d\.\d{6}$/, requests.first)
  end

  # Reads from a pipe in C and keeps the GVL, so the native thread writes the line.
  STUCK = <<~RUBY
    require "fiddle"
    int, pointer = Fiddle::TYPE_INT, Fiddle::TYPE_VOIDP
    read = Fiddle::Function.new(Fiddle.dlopen(nil)["read"], [int, pointer, Fiddle::TYPE_SIZE_T], int, need_gvl: true)
    pipe = File.open(ENV.fetch("PIPE"), "r+")
    run(->(_) { read.call(pipe.fileno, "x", 1) && [200, {}, []] })
  RUBY

  # Yields the server, the native thread's line about the stuck request, and a way to let it continue.
  def while_stuck(target)
    Dir.mktmpdir do |folder|
      app, pipe = %w[config.ru pipe].map { |name| File.join(folder, name) }
      File.write(app, STUCK)
      File.mkfifo(pipe)
      settings = { slow_request_ms: 10, lenient_target_bytes: true }
      ServerProcess.run(app, settings: settings, env: { "PIPE" => pipe }) do |server|
        RawClient.open(server.url) do |client|
          client.write("GET #{target} HTTP/1.1\r\nHost: a\r\n\r\n")
          go_on = lambda do
            File.open(pipe, "r+") { |io| io.write("x") }
            client.response.status
          end
          yield server, server.wait_for_log(/^! GET (.*): \d+\.\d s in the application, which blocks all of Ruby/), go_on
        end
      end
    end
  end

  def test_the_line_that_ruby_cannot_write
    while_stuck("/\u009b31m\xff#{"\u0085" * 200}") do |_server, line, go_on|
      assert line[1].start_with?('/\xC2\x9B31m\xFF\xC2\x85'), line[1]
      assert_equal 200, go_on.call
    end
  end

  # The native thread refuses them, and Ruby logs them later: 32 by name, and the number of the others.
  def test_more_refusals_than_the_log_names
    while_stuck("/") do |server, _line, go_on|
      40.times { RawClient.open(server.url) { |client| client.write("nonsense\r\n\r\n") && client.read_all } }
      assert_equal 200, go_on.call
      lost = server.wait_for_log(/^The log does not name (\d+) more incidents like these/)
      assert_equal [32, 8], [server.log.scan(/^Refused a request/).size, lost[1].to_i]
    end
  end

  # A log that ends the thread which writes its first line.
  class KillingLog < Log
    def info(line)
      @begun ? super : (@begun = Thread.current).kill
    end
  end

  def test_a_thread_that_ends_while_it_logs
    needs_threads
    log = KillingLog.new
    begun = Queue.new
    go_on = Queue.new
    client = serve(lint: false, log: log, max_threads: 1) do |env|
      (begun << true) && go_on.pop if env["PATH_INFO"] == "/wait"
      [200, {}, []]
    end
    client.write(bytes("GET", "/wait"))
    take(begun)
    5.times { connect.tap { |other| other.write("nonsense\r\n\r\n") }.read_all }
    go_on << true
    assert_equal 200, client.response.status
    eventually("the rest is logged") { get(client) && log.text.include?("The log does not name 1 more") }
    assert_equal 4, log.text.scan("Refused a request").size
  end

  # The page for development is not a log: it shows the message unchanged.
  def test_the_page_of_an_error
    client = serve(lint: false, environment: "development", log: Rondo::Logger.new(io: StringIO.new)) { raise "a\nb" }
    assert_includes get(client).body, "RuntimeError: a\nb"
  end
end
