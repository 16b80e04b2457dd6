# frozen_string_literal: true

# Measures scenarios of WebSockets: the client of push_client.c gets its commands line by line, and between two lines
# the server's CPU time and memory are read. A missing, repeated or unknown message makes the round's figures invalid.
# Used by measure.rb.
# SPDX-License-Identifier: MIT

require_relative "dialogue"

module Bench
  # One run of the WebSocket client.
  class PushClient < Dialogue
    PROGRAM = "push_client"

    # @param count [Integer] WebSockets to open
    # @param verb [String] "open", "idle" or "stall"
    # @raise [Silent] when one of them does not open
    def open(count, path, verb = "open")
      opened = tell(verb, count, path)[:open]
      raise Silent, "only #{opened} of #{count} WebSockets opened" if opened < count
    end
  end

  # The kinds of scenarios that {Contestant} measures with WebSockets.
  module PushFigures
    BYTES = 100
    CHAT_BYTES = 32
    CHAT_BATCH = 50
    SINGLE_DELIVERIES = 100_000
    BURST = 10
    BURST_DELIVERIES = 200_000
    BYSTANDER_PER_SECOND = 500
    PATTERNS_DELIVERIES = 3000
    STALLED_BYTES = 8192
    STALLED_MESSAGES = 30_000

    private

    def with_sockets(path, verb = "open", count = @scenario.connections)
      @running.settle
      PushClient.run(@running.port) do |client|
        client.open(count, path, verb)
        yield client
      end
    ensure
      @running&.settle if @running&.alive?
    end

    # @return [Hash] what the client counted, with the server's CPU time
    def counted(client, *command)
      cpu = @running.cpu_us
      found = client.tell(*command)
      found.merge(used_us: @running.cpu_us - cpu, wrong: found.values_at(:missing, :doubled, :strange, :lost).sum)
    end

    # Without its figures when something was wrong.
    def judged(found, figures)
      return { wrong: 0, **figures } if found.all? { |each| each[:wrong].zero? }

      totals = %i[deliveries missing doubled strange lost].to_h { |key| [key, found.sum { |each| each[key] }] }
      notes << "round #{@rounds.size + 1}: deliveries wrong: #{totals.map { |key, n| "#{n} #{key}" }.join(", ")}"
      { wrong: found.sum { |each| each[:wrong] } }
    end

    def echo_figures(seconds)
      with_sockets("/echo") do |client|
        found = counted(client, "echo", BYTES, seconds)
        judged([found], message_us: each_us(found), messages: per_second(found), busy: busy(found),
                        **found.slice(:p50_us, :p99_us))
      end
    end

    def chat_figures(seconds)
      with_sockets("/chat") do |client|
        found = counted(client, "chat", CHAT_BYTES, seconds, CHAT_BATCH)
        judged([found], deliveries: per_second(found), delivery_us: each_us(found), busy: busy(found))
      end
    end

    def each_us(found)
      found[:used_us] / found[:deliveries]
    end

    def per_second(found)
      found[:deliveries] / found[:seconds]
    end

    def busy(found)
      found[:used_us] / found[:seconds] / 1e6
    end

    def broadcast_figures(seconds)
      with_sockets("/subscribe") do |client|
        single = publish(client, 1, SINGLE_DELIVERIES * seconds)
        burst = publish(client, BURST, BURST_DELIVERIES * seconds)
        judged([single, burst],
               single_us: each_us(single), burst_us: each_us(burst),
               first_us: single[:first_us], last_us: single[:last_us], burst_last_us: burst[:last_us])
      end
    end

    def publish(client, messages, deliveries)
      times = (deliveries / messages / @scenario.connections).ceil
      counted(client, "publish", BYTES, messages, times, 0, 0)
    end

    def bystander_figures(seconds)
      with_sockets("/subscribe") do |client|
        found = counted(client, "publish", BYTES, 1, seconds.ceil, 1000, BYSTANDER_PER_SECOND)
        notes << "#{found[:http_errors]} HTTP requests without an answer" if found[:http_errors].positive?
        judged([found], found.slice(:p50_us, :p99_us, :longest_us, :last_us))
      end
    end

    # The first half has costs that the second does not have, such as room for garbage.
    def idle_sockets_figures(_seconds)
      before = @running.anonymous_bytes
      half = @scenario.connections / 2
      with_sockets(@scenario.path, "idle", half) do |client|
        middle = @running.anonymous_bytes
        client.open(half, @scenario.path, "idle")
        after = @running.anonymous_bytes
        { bytes_per_connection: (after - before) / (2.0 * half), bytes_per_further: (after - middle) / half.to_f }
      end
    end

    # The same messages without the stalled reader come first: their cost belongs to the application.
    def stalled_figures(seconds)
      with_sockets("/subscribe", "open", 1) do |client|
        without = nil
        usual = @running.peak_bytes { without = publish_much(client, seconds) }
        client.open(1, "/subscribe", "stall")
        found = nil
        grown = @running.peak_bytes { found = publish_much(client, seconds) } - usual
        judged([without, found], grown_mib: grown / 1024.0 / 1024, mb_per_s: per_second(found) * STALLED_BYTES / 1e6)
      end
    end

    # The same messages without the client that has patterns come first. None of them matches.
    def patterns_figures(seconds)
      with_sockets("/subscribe") do |client|
        without = publish(client, 1, PATTERNS_DELIVERIES * seconds)
        client.open(1, "/patterns", "stall")
        with = publish(client, 1, PATTERNS_DELIVERIES * seconds)
        judged([without, with], publish_us: each_us(with), over_none: each_us(with) / each_us(without))
      end
    end

    def publish_much(client, seconds)
      times = (STALLED_MESSAGES * [seconds, 1.0].min / BURST).ceil
      counted(client, "publish", STALLED_BYTES, BURST, times, 0, 0)
    end
  end
end
