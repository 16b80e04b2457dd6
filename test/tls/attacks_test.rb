# frozen_string_literal: true

# Attacks on TLS, one after the other, on one server: another client is answered all the time, memory stays bounded,
# and what the attackers held is given back. RONDO_ATTACKERS says how many they are; with it there are clusters, and
# Ruby that is stuck, too.
# SPDX-License-Identifier: MIT

require "integration/tls/tls_case"
require "support/besieged"
require_relative "attacks"

class TLSAttacksTest < TLSCase
  include Besieged

  SIZE = Integer(ENV.fetch("RONDO_ATTACKERS", "100"))
  LARGE = ENV.key?("RONDO_ATTACKERS")
  MAX_HANDSHAKES = 64
  # For each attacker, and for the allocator.
  KIB_EACH = 256
  KIB_SPARE = 65_536

  def setup
    super
    write "public/file", "a file"
    write "config/rondo.rb", "max_handshakes #{MAX_HANDSHAKES}\n"
  end

  def start_server(*words)
    words += ["-C", "config/rondo.rb", "--public", "public"]
    start(*words, binds: ["ssl://127.0.0.1:0?#{@pair.query}", "tcp://127.0.0.1:0"])
  end

  def ask(server, path)
    connect(server) do |client|
      2.times do
        client.write("GET #{path} HTTP/1.1\r\nhost: a\r\n\r\n")
        head = client.gets("\r\n\r\n")
        assert_match(/\AHTTP.1\.1 200 /, head)
        client.read(Integer(head[/content-length: (\d+)/i, 1]))
      end
    end
  end

  def attack(server, name, path)
    pids = processes(server)
    before = sockets(pids)
    forget_highest(pids)
    low = highest_kib(pids)
    bystander = Bystander.new { ask(server, path) }
    Attacks.new(server.port, SIZE).public_send(name) do |clients|
      bystander.serve(5, PATIENCE)
      clients.each(&:close)
    end
    bystander.stop
    assert_operator highest_kib(pids) - low, :<, KIB_SPARE + (SIZE * KIB_EACH), name
    wait_until("#{name}: descriptors as before") { sockets(pids) <= before }
    assert_equal pids, processes(server), name
  end

  def check(server, attacks = Attacks::ALL, path: "/")
    ask(server, path)
    attacks.each { |name| attack(server, name, path) }
    refute_match(/BUG|Segmentation|Assertion|sanitizer/i, server.log)
  end

  def test_one_process
    check(start_server)
  end

  if LARGE
    def test_a_cluster
      server = start_server("-w", "2")
      server.wait_for_log(/(booted in.*){2}/m)
      check(server)
    end

    # Handshakes, refusals and files go on, because a thread of the server's own does them.
    def test_beside_ruby_that_is_stuck
      write "config.ru", STUCK
      File.mkfifo(File.join(@folder, "gate"))
      server = start_server
      ask(server, "/file")
      stuck = Thread.new { ask_once(server, "/stuck") }
      server.wait_for_log(/stuck began/)
      check(server, Attacks::ALL - Attacks::WITH_APPLICATION, path: "/file")
      File.write(File.join(@folder, "gate"), "x")
      stuck.join
    end
  end

  def ask_once(server, path)
    connect(server) do |client|
      client.write("GET #{path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
      client.read
    end
  end
end
