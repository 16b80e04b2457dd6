# frozen_string_literal: true

# A NATS server that belongs to the test.
# SPDX-License-Identifier: MIT

require "json"
require "net/http"
require "support/child_server"

class NatsServer < ChildServer
  # @param words [Array<String>] further options of nats-server
  def initialize(*words)
    super() do
      @words = words
      @monitor = HeldPort.new
    end
  end

  # @param words [Array<String>] instead of the former ones
  def restart(*words)
    kill
    @words = words
    start
  end

  # @param page [String] of the monitor
  # @return [Hash]
  def monitor(page)
    JSON.parse(Net::HTTP.get(URI("http://127.0.0.1:#{@monitor.number}/#{page}")))
  end

  # @param subject [String]
  # @return [Integer] subscriptions of it
  def subscribers(subject)
    list = monitor("subsz?subs=1&limit=10000")["subscriptions_list"]
    list.to_a.count { |each| each["subject"] == subject }
  end

  # @param subject [String]
  # @return [Integer] clients of this node that have subscribed it
  def clients_of(subject)
    monitor("connz?subs=1")["connections"].to_a.count { |each| each["subscriptions_list"].to_a.include?(subject) }
  end

  def close
    super
    @monitor.close
  end

  # @return [String] of the log
  def log
    File.read(log_path)
  end

  def url
    "nats://127.0.0.1:#{port}"
  end

  private

  def command
    ["nats-server", "-a", "127.0.0.1", "-p", port.to_s, "-m", @monitor.number.to_s, *@words.map { |word| word.sub("FOLDER", @folder) }]
  end
end
