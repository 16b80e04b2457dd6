# frozen_string_literal: true

# Attacks on HTTP/2, one after the other and several at once, on one server: other clients are answered all the time,
# memory stays bounded, and what the attackers held is given back. RONDO_ATTACKERS says how many they are; with it there
# are clusters, and Ruby that is stuck, too.
# SPDX-License-Identifier: MIT

require "support/besieged"
require_relative "attacks"
require_relative "http2_case"

class HTTP2AttacksTest < HTTP2Case
  include Besieged

  SIZE = Integer(ENV.fetch("RONDO_ATTACKERS", "40"))
  LARGE = ENV.key?("RONDO_ATTACKERS")
  # For each connection, and for the allocator.
  KIB_EACH = 256
  KIB_SPARE = 65_536
  ANSWER = "0123456789" * 1000
  FLOOD = /HTTP.2 client sends too many frames/

  def setup
    super
    write "public/file", "a file"
    write "config.ru", APP.sub('when "/env"', %(when "/answer" then [200, plain, [#{ANSWER.inspect}]]\n      when "/env"))
  end

  def start_server(*words)
    serve("--public", "public", *words)
  end

  # Another client of HTTP/2: ten requests on each of its connections.
  def ask2(server, path)
    client = HTTP2Attacks::Client.new(server.port)
    10.times { |index| refute_empty client.ask((2 * index) + 1, path) }
  ensure
    client&.close
  end

  def ask1(server, path)
    assert_equal "200", Net::HTTP.get_response("127.0.0.1", path, server.port).code
  end

  def besiege(server, names, path)
    pids = processes(server)
    before = sockets(pids)
    forget_highest(pids)
    low = highest_kib(pids)
    bystanders = [Bystander.new { ask1(server, path) }, Bystander.new { ask2(server, path) }]
    hold_all(HTTP2Attacks.new(server.port, SIZE), names) do |clients|
      bystanders.each { |bystander| bystander.serve(5, PATIENCE) }
      yield clients
      clients.each(&:close)
    end
    bystanders.each(&:stop)
    assert_operator highest_kib(pids) - low, :<, KIB_SPARE + (SIZE * KIB_EACH), names.inspect
    wait_until("#{names}: descriptors as before") { sockets(pids) <= before }
    assert_equal pids, processes(server), names.inspect
  end

  # The clients of all attacks hold what they hold at the same time.
  def hold_all(attacks, names, clients = [], &block)
    return block.call(clients) if names.empty?

    attacks.public_send(names.first) { |more| hold_all(attacks, names.drop(1), clients + more, &block) }
  end

  def flood(server, name, path)
    besiege(server, [name], path) do |clients|
      verdicts = clients.map { |client| Timeout.timeout(PATIENCE) { client.verdict } }
      # libnghttp2 1.70 ends a connection at the first window that overflows.
      expected = name == :overflowing_windows ? [HTTP2Attacks::CALM, HTTP2Attacks::FLOW_CONTROL] : [HTTP2Attacks::CALM]
      assert_equal 1, verdicts.uniq.size, name
      assert_includes expected, verdicts.first, name
    end
  end

  def check(server, path: "/")
    ask2(server, path)
    HTTP2Attacks::FLOODS.each_key { |name| flood(server, name, path) }
    HTTP2Attacks::STAYING.each_key { |name| besiege(server, [name], path) { nil } }
    besiege(server, %i[slow_uploads closed_windows rapid_reset half_heads bombs idle], path) { nil }
    refute_match(/BUG|Segmentation|Assertion|sanitizer/i, server.log)
  end

  def test_one_process
    server = start_server
    check(server)
    server.wait_for_log(FLOOD)
  end

  if LARGE
    def test_a_cluster
      server = start_server("-w", "2")
      server.wait_for_log(/(booted in.*){2}/m)
      check(server)
      server.wait_for_log(FLOOD)
    end

    # Refusals and files go on, because a thread of the server's own does them.
    def test_beside_ruby_that_is_stuck
      write "config.ru", STUCK
      File.mkfifo(File.join(@folder, "gate"))
      server = start_server
      ask2(server, "/file")
      stuck = Thread.new { Net::HTTP.start("127.0.0.1", server.port, read_timeout: nil) { |http| http.get("/stuck") } }
      server.wait_for_log(/stuck began/)
      check(server, path: "/file")
      assert_predicate stuck, :alive?
      File.write(File.join(@folder, "gate"), "x")
      stuck.join
      server.wait_for_log(FLOOD) # Ruby writes it
    end
  end
end
