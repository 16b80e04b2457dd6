# frozen_string_literal: true

# Between workers: connections are spread evenly, and no request waits while another worker has nothing to do.
# SPDX-License-Identifier: MIT

require_relative "cluster_case"
require "support/gate"

class ClusterBalanceTest < ClusterCase
  include Gate

  STUCK = <<~RUBY
    run lambda { |env|
      warn "inside \#{Process.pid}" unless env["PATH_INFO"] == "/"
      case env["PATH_INFO"]
      when "/sleep" then IO.select(nil, nil, nil, 0.01) until File.exist?("go")
      when "/loop" then nil until File.exist?("go")
      when "/c" then GATE.call
      end
      [200, {}, [Process.pid.to_s]]
    }
  RUBY

  def setup
    super
    write "config.ru", Gate::APP + STUCK
  end

  def dial(server)
    TCPSocket.new("127.0.0.1", server.port).tap { |socket| (@sockets ||= []) << socket }
  end

  def say(socket, path = "/")
    socket.write("GET #{path} HTTP/1.1\r\nHost: a\r\n\r\n")
  end

  # @return [Integer] the process that answered
  def hear(socket)
    text = +""
    until text.match?(/\r\n\r\n\d+\z/)
      socket.wait_readable(PATIENCE) or flunk "no answer; so far #{text.inspect}"
      text << socket.readpartial(4096)
    end
    text[/\d+\z/].to_i
  end

  def ask(socket, path = "/")
    say(socket, path)
    hear(socket)
  end

  [2, 3].each do |count|
    define_method("test_connections_are_even_on_#{count}_workers") do
      server = cluster("-t", "1", workers: count)
      sockets = Array.new(4 * count) { dial(server) }
      # If the machine holds up a worker for a while, its clients go to others and come back.
      eventually("as many clients on each worker") do
        sockets.map { |socket| ask(socket) }.tally.values == [4] * count
      end
    end
  end

  # The last call is in C and keeps the GVL.
  %w[/sleep /loop /c].each do |stuck|
    define_method("test_nobody_waits_behind_a_worker_that_is_in_a#{stuck.tr("/", "_")}") do
      server = cluster("-t", "1")
      sockets = Array.new(10) { dial(server) }
      sockets.each { |socket| ask(socket) }
      say(sockets.first, stuck)
      pinned = server.wait_for_log(/^inside (\d+)$/) && server.log[/^inside (\d+)$/, 1].to_i
      others = sockets.drop(1) + Array.new(6) { dial(server) }
      3.times do
        others.each { |socket| say(socket) }
        refute_includes others.map { |socket| hear(socket) }, pinned
      end
      refute sockets.first.wait_readable(0), "it is still inside"
      open_gate
      assert_equal pinned, hear(sockets.first)
    end
  end

  # Ruby cannot write this line.
  def test_an_application_that_keeps_ruby_to_itself_is_told_of
    write "config/rondo.rb", "slow_request_ms 2000\n"
    server = cluster("-t", "1", workers: 1)
    say(dial(server), "/c")
    server.wait_for_log(%r{^! GET /c: \d\.\d s in the application, which blocks all of Ruby})
    refute_match(%r{GET /c: no answer}, server.log)
    open_gate
    assert_equal 1, [hear(@sockets.first)].size
  end

  def test_a_queue_without_idle_siblings_is_bounded
    write "config/rondo.rb", "queue_timeout_ms 6000\n" # enough for the first two, which do not wait
    server = cluster("-t", "1")
    sockets = Array.new(4) { dial(server) }
    sockets.first(2).each { |socket| say(socket, "/sleep") }
    server.wait_for_log(/(?:^inside \d+$.*){2}/m)
    sockets.last(2).each { |socket| say(socket) }
    answers = sockets.last(2).map do |socket|
      socket.wait_readable(PATIENCE) or flunk
      socket.readpartial(4096)
    end
    answers.each { |text| assert_match(%r{\AHTTP/1.1 503 .*^retry-after: 1\r$}m, text) }
    write "go", ""
    assert_equal 2, sockets.first(2).map { |socket| hear(socket) }.uniq.size
  end
end
