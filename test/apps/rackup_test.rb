# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# Started by others: `rackup -s rondo`, and Capybara's servers, several of them in one process.

require_relative "app_case"
require "capybara"
require "capybara/dsl"
require "rondo/capybara"

class RackupAppsTest < AppCase
  APP = File.expand_path("../integration/rack/clients.ru", __dir__)

  # `rackup` with the gems of our Gemfile.
  class Process < ServerProcess
    def self.running
      ServerProcess.running
    end

    private

    def command_line(app, _settings, _config, _binds, args)
      ["bundle", "exec", "rackup", "-s", "rondo", "-o", "127.0.0.1", "-p", "0", *args, app]
    end
  end

  def self.start_server
    Process.new(APP, env: { "RONDO_TEST_LINT" => "1" })
  end

  def test_it_serves
    assert_equal "Hello, World!\n", browser.get("/hello").body
    assert_equal 20, browser.get("/stream").body.lines.size
    assert_equal "404", browser.get("/none").code
  end

  %w[INT TERM].each do |signal|
    define_method("test_it_stops_on_#{signal}") do
      other = self.class.start_server
      assert_equal "200", Browser.new(other.url).get("/hello").code
      status = other.stop(signal: signal)
      assert status.exited? || status.termsig == Signal.list[signal], status.inspect
    end
  end

  def test_development_puts_rackups_middleware_in_front
    other = Process.new(APP, env: { "RACK_ENV" => nil })
    assert_equal "Hello, World!\n", Browser.new(other.url).get("/hello").body
  ensure
    other&.stop
  end
end

class CapybaraTest < Minitest::Test
  def setup
    @before = Capybara.server
    Capybara.server = :rondo
  end

  # Capybara's servers last as long as its process. What other tests here publish would go to them.
  def teardown
    @booted&.each { |server| server.instance_variable_get(:@server_thread).kill.join }
    refute_predicate Rondo::PubSub, :serving?
    Capybara.server = @before
  end

  def boot(&app)
    (@booted ||= []) << Capybara::Server.new(app, port: nil, host: "127.0.0.1").boot
    @booted.last
  end

  def test_several_servers
    servers = Array.new(3) { |n| boot { |env| [200, {}, ["#{n}#{env["PATH_INFO"]}"]] } }
    servers.each_with_index do |server, n|
      assert_predicate server, :responsive?
      assert_equal "#{n}/page", Net::HTTP.get(server.host, "/page", server.port)
    end
    assert_equal 3, servers.map(&:port).uniq.size
  end

  def test_errors_of_the_application_reach_the_test
    server = boot { raise ArgumentError, "on purpose" }
    assert_match(/\A500/, Net::HTTP.get_response(server.host, "/", server.port).code)
    assert_kind_of ArgumentError, server.error
  end

  def test_the_test_waits_for_requests_that_go_on
    ahead = Queue.new
    server = boot do |_env|
      ahead.pop
      [200, {}, ["done"]]
    end
    answer = Thread.new { Net::HTTP.get(server.host, "/", server.port) }
    ahead << 1
    assert_equal "done", answer.value
    server.wait_for_pending_requests
  end
end
