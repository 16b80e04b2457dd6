# frozen_string_literal: true

# Measures a chat by telnet: `ruby bench/chat.rb [--rounds N] [--seconds S] [--members N] [SERVER...]`. CPU time of the
# server per line that a member gets, with a thousand members, beside a chat in C with epoll (chat_floor.c) and iodine
# 0.7.60. The servers of a round are measured one after the other, as in raw.rb.
# SPDX-License-Identifier: MIT

require_relative "raw"

module Bench
  # A server where everybody hears what anybody says. Who is welcomed is a member.
  class ChatServer < RawServer
    MEMBER = <<~RUBY
      class Echo
        def on_open(client)
          client.subscribe("chat")
          client.write("x")
        end

        def on_message(client, data) = client.publish("chat", data)
      end
    RUBY
    PROGRAMS = { "rondo" => RONDO, "iodine" => IODINE }.transform_values { |text| text.sub(ECHO, MEMBER) }.freeze

    private

    def command(name)
      case name
      when "floor" then [Programs.path("chat_floor"), @port.to_s]
      when "rondo" then [Gem.ruby, "-I", File.join(ROOT, "lib"), "-e", PROGRAMS["rondo"], @port.to_s]
      when "iodine" then [Gem.ruby, "-e", PROGRAMS["iodine"], @port.to_s]
      end
    end
  end

  # All rounds, and their table.
  class ChatRun < RawRun
    BYTES = 40

    # @return [void]
    def call
      Process.setrlimit(:NOFILE, [2 * @members, Process.getrlimit(:NOFILE).last].min) if @members > 400
      Programs.build
      Programs.compile_rondo
      rounds = Array.new(@rounds) { |index| @names.rotate(index).to_h { |name| [name, chat(name)] } }
      puts "| server | µs of CPU per delivery, #{@members} members | over the floor | over iodine |",
           "|---|---|---|---|"
      @names.each { |name| puts "| #{[RawServer::TITLES.fetch(name), *figures(rounds, name)].join(" | ")} |" }
    end

    private

    def read_options(arguments)
      @rounds, @seconds, @members = 5, 2.0, 1000
      OptionParser.new do |options|
        options.on("--rounds N", Integer, "of chats (5)") { |count| @rounds = count }
        options.on("--seconds S", Float, "of each (2)") { |seconds| @seconds = seconds }
        options.on("--members N", Integer, "who are there (1000)") { |count| @members = count }
      end.parse!(arguments)
      @names = arguments.empty? ? %w[floor rondo iodine] : arguments
    end

    def figures(rounds, name)
      used = middle(rounds.map { |round| round[name] })
      [number(used), *%w[floor iodine].map { |other| number(ratio(rounds, name, other)) }]
    end

    # @return [Float] microseconds of CPU per line and member
    def chat(name)
      server = ChatServer.new(name)
      RawClient.run(server.port) do |client|
        client.tell("join", @members)
        client.tell("chat", BYTES, 0.3)
        before = Processes.cpu_us(server.pid)
        deliveries = client.tell("chat", BYTES, @seconds)[:deliveries]
        (Processes.cpu_us(server.pid) - before) / deliveries
      end
    ensure
      server&.stop
    end
  end
end

Bench::ChatRun.new(ARGV).call if $PROGRAM_NAME == __FILE__
