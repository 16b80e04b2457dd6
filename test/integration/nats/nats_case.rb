# frozen_string_literal: true

# Shared by the tests of NATS: servers of two workers that share only a NATS, and the clients of streams_case.rb.
# SPDX-License-Identifier: MIT

require_relative "../pubsub/streams_case"
require "support/nats_server"

class NatsCase < StreamsCase
  STORE = ["-js", "-sd", "FOLDER/store"].freeze
  PLAIN = "rondo.p."

  private

  def start_store
    @nats = NatsServer.new(*nats_words)
  end

  def stop_store
    @nats.close
  end

  def nats_words
    STORE
  end

  def nats_verb
    "nats #{@nats.url.inspect}, jetstream: true"
  end

  # @param verb [String] line of the configuration file
  def server(*words, verb: nats_verb)
    file = "nats#{@files = @files.to_i + 1}.rb"
    write file, "#{verb}\n"
    start("-w", "2", "-C", file, *words).tap { |server| server.wait_for_log(/\* NATS at/) }
  end

  def wait_for_subscribers(channel, count)
    eventually("#{count} subscribed") { @nats.subscribers("rondo.p.#{subject(channel)}") == count }
  end

  def subject(channel)
    channel.gsub(":", "=3A")
  end

  # @return [Hash] state of the stream
  def state
    detail = @nats.monitor("jsz?streams=1").fetch("account_details").first.to_h["stream_detail"].to_a
    detail.find { |each| each["name"] == "rondo-rondo" }.to_h["state"].to_h
  end

  def length_of(_channel)
    state["last_seq"].to_i
  end

  # @return [String] path of a file for NATS
  def conf(text)
    File.join(@nats.folder, "nats.conf").tap { |path| File.write(path, text) }
  end

  def request(subject, words, answer = /"success":true/)
    text = JSON.generate(words)
    assert_includes talk("SUB back 1\r\nPUB #{subject} back #{text.bytesize}\r\n#{text}\r\n", answer), "MSG"
  end

  def talk(bytes, last = /PONG/)
    TCPSocket.open("127.0.0.1", @nats.port) do |socket|
      socket.write("CONNECT {\"verbose\":false,\"headers\":true}\r\n", bytes, "PING\r\n")
      answer = +"".b
      answer << socket.readpartial(4096) until last.match?(answer)
      answer
    end
  end
end
