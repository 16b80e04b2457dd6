# frozen_string_literal: true

# Runs histories by their seeds, and shows one of them step by step.
# SPDX-License-Identifier: MIT

require "simulate/history"
require "simulate/promises"

module Simulate
  # A promise that was broken, by the seed of its history.
  Failure = Struct.new(:seed, :faults, :message) do
    def to_s
      "seed #{seed} (#{faults.join(", ")}): #{message}\n  tools/simulate --seed #{seed}"
    end
  end

  # What histories had in all of them.
  Sum = Struct.new(:histories, :messages, :replayed, :resets, :returns, :faults) do
    def add(history)
      self.histories += 1
      events = history.clients.flat_map { |client| client.seen.values.flat_map(&:events) }.map(&:first).tally
      self.messages += events.fetch(:message, 0)
      self.replayed += events.fetch(:replayed, 0)
      self.resets += events.fetch(:reset, 0)
      self.returns += events.fetch(:came, 0)
      self.faults += history.events.values.sum
    end
  end

  module_function

  # @param seeds [Enumerable<Integer>]
  # @param most [Integer] failures after which it ends
  # @return [Array(Sum, Array<Failure>)]
  def run(seeds, most = 10)
    sum = Sum.new(0, 0, 0, 0, 0, 0)
    failures = []
    seeds.each do |seed|
      history, failure = try(seed)
      sum.add(history)
      failures << failure if failure
      break if failures.size == most
    end
    [sum, failures]
  end

  def try(seed, trace: nil, **options)
    history = History.new(seed, **options)
    history.trace = trace
    history.run
    Promises.new(history).check
    [history, nil]
  rescue StandardError => e
    place = " (#{e.class} at #{e.backtrace.first})" unless e.is_a?(BrokenPromise)
    [history, Failure.new(seed, history&.faults.to_a, "#{e.message.lines.first.to_s.chomp}#{place}")]
  end

  # @return [Array<String>] lines
  def show(seed)
    trace = []
    history, failure = try(seed, trace: trace)
    history.clients.each do |client|
      client.seen.each { |channel, seen| trace << "#{client.name} on #{channel}: #{seen.events.map { |event| words(event) }.join(", ")}" }
    end
    history.redis.ever.each { |channel, rows| trace << "Redis wrote to #{channel}: #{rows.map { |row| "#{row.text} #{row.id - (10**15)}" }.join(", ")}" }
    [*trace, failure ? failure.to_s : "seed #{seed}: all promises kept"]
  end

  def words((type, id, text))
    [type, (id - (10**15) if id && id > 1), (text if text.is_a?(String))].compact.join(" ")
  end
end
