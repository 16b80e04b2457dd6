# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# The generated Rails application in fibers of a single thread, in development.

require_relative "rails_behaviour"
require_relative "rails_cable"
require_relative "rails_live"
require_relative "rails_push"

# What only fibers do.
module RailsInFibers
  # Both requests are in the application at once, on the only thread there is.
  def test_each_request_keeps_its_own
    visitors = { "ann" => %w[bob en], "bob" => %w[ann de] }
    url = server.url
    assert_equal "200", browser.get("/up").code # code that was changed is loaded anew
    answers = visitors.map do |name, (other, locale)|
      Thread.new { Browser.new(url).get("/meet?name=#{name}&other=#{other}&locale=#{locale}").body }
    end
    assert_equal ["ann en ann", "bob de bob"], answers.map(&:value)
  end

  # The request that finds the file changed waits until the other one has ended.
  def test_code_is_not_taken_from_a_request_that_waits
    lingering = send_get("/linger?flag=#{CGI.escape(flag)}")
    Timeout.timeout(60) { sleep 0.01 until File.exist?("#{flag}.here") }
    changing("app/models/greeting.rb", "the first", "the second") do
      reloading = send_get("/linger?flag=#{CGI.escape(flag)}")
      wait_for_interlock(/start_exclusive/)
      File.write(flag, "")
      assert_equal "the first: one module", body_of(lingering)
      assert_equal "the second: one module", body_of(reloading)
    end
  ensure
    File.write(flag, "")
  end

  private

  def flag
    @flag ||= File.join(server.directory, "flag#{name}")
  end

  def send_get(path)
    TCPSocket.new("127.0.0.1", server.port).tap do |socket|
      socket.write("GET #{path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    end
  end

  def body_of(socket)
    assert socket.wait_readable(60), "no answer"
    socket.read.split("\r\n\r\n", 2).last
  ensure
    socket.close
  end

  def wait_for_interlock(pattern)
    Timeout.timeout(60) { sleep 0.01 until browser.get("/interlock").body.match?(pattern) }
  end
end

class RailsFibersTest < AppCase
  include RailsBehaviour
  include RailsPush
  include RailsCable
  include RailsLive
  include RailsReload
  include RailsInFibers

  def self.start_server
    app = RailsApp.instance
    fibers = { "RONDO_FIBERS" => "50", "MIN_THREADS" => "1", "RAILS_MAX_THREADS" => "1", "GATE" => gate }
    RailsServerProcess.new(app.rails, args: ["-P", File.join(app.path, "tmp/pids/fibers.pid")], spawn: { chdir: app.path }, deadline: 60,
                                      env: RailsApp::ENVIRONMENT.merge("RACK_ENV" => nil, "RAILS_ENV" => "development").merge(fibers))
  end

  def test_what_is_said_at_boot
    assert_match(/^\*       Fibers: 50, each with a stack of .* \(RONDO_FIBERS\)$/, server.log)
    assert_match(/^! 50 fibers, and fewer connections to databases: primary \(\d+\)\. /, server.log)
  end

  # By our own command: there the library is loaded before Rails.
  def test_an_application_that_wants_threads
    app = RailsApp.instance
    error = assert_raises(ServerProcess::Failure) do
      ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, settings: { fibers: 10 },
                                                          env: RailsApp::ENVIRONMENT.merge("RAILS_ENV" => "production", "ISOLATION" => "thread"))
    end
    assert_match(/^rondo: fibers: the application sets config\.active_support\.isolation_level to :thread, .*$/, error.message)
  end
end
