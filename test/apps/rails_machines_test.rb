# frozen_string_literal: true

# Two servers of one Rails application, as on two machines, with one Redis by TLS that keeps the history: clients of
# Action Cable and of Turbo go on at the other one.
# SPDX-License-Identifier: MIT

require "support/redis_server"
require_relative "app_case"
require_relative "rails_resuming"
require_relative "rails_turbo"

class RailsMachinesTest < AppCase
  include RailsResuming
  include RailsTurbo

  class << self
    def machines
      server && @machines
    end

    def start_server
      @redis = RedisServer.new(tls: true)
      @machines = Array.new(2) { start_machine }
      @machines.first
    end

    def stop_server
      @machines&.each(&:stop)
      @redis&.close
    end

    private

    def start_machine
      app = RailsApp.instance
      environment = RailsApp::ENVIRONMENT.merge("RAILS_ENV" => "production", "CABLE" => "rondo",
                                                "RONDO_REDIS_STREAMS" => "#{@redis.url}?ca_file=#{@redis.ca_file}")
      ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, deadline: 60, env: environment,
                                                          args: ["-w", "1"]).tap do |server|
        server.wait_for_log(/- Worker \d+ .*booted/)
        server.wait_for_log(/Redis at/)
      end
    end
  end

  def machines
    self.class.machines
  end

  # It leaves after three messages, whatever else is on its way, and comes back to the other machine.
  def test_a_client_of_cable_goes_on_at_the_other_machine
    room = "kept #{name}"
    client = Resuming.new(machines.map(&:url), room, most: 3)
    reader = Thread.new { client.run_to(19) }
    Timeout.timeout(60) { sleep 0.01 until client.answers.include?("confirm_history") }
    speaker = CablePeer.new(server.url).welcomed
    id = speaker.subscribe(room: room)
    20.times { |number| speaker.perform(id, "say", text: number) }
    assert_equal (0..19).to_a, reader.join(60)&.value, client.answers.inspect
    assert_empty client.answers - %w[confirm_subscription confirm_history]
    assert_operator client.connections, :>=, 7
  ensure
    speaker&.close
  end

  # The machines take turns at saying a line. Which of two lines is first is for Redis to decide.
  def test_an_event_stream_goes_on_at_the_other_machine
    room = "kept #{name}"
    path, = source_of(room)
    id = open_events(server, path)[/^id: ?(\S+)\n/, 1]
    texts = (10..29).map { |number| "line #{number}" }
    texts.each_slice(2) { |pair| pair.zip(machines) { |text, machine| say_to(room, text, by: Browser.new(machine.url)) } }
    seen = []
    machines.cycle do |machine|
      events = open_events(machine, path, "Last-Event-ID: #{id}\r\n", "</turbo-stream>\n\n")
      events.scan(/^id: ?(\S+)\n((?:data: ?.*\n)+)/).first(3).each do |place, data|
        id = place
        seen << data[/line \d+/]
      end
      break if seen.size >= texts.size
    end
    assert_equal texts, seen.sort
  end
end
