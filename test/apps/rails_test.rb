# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A generated Rails application behind Rondo: in production by our own command, in development by
# `rails server`.

require_relative "rails_behaviour"
require_relative "rails_cable"
require_relative "rails_https"
require_relative "rails_live"
require_relative "rails_push"
require_relative "rails_turbo"
require "rondo"

class RailsProductionTest < AppCase
  include RailsBehaviour
  include RailsCable
  include RailsTurbo
  include RailsHTTPS
  include RailsLive
  include RailsPush

  def self.start_server
    app = RailsApp.instance
    ServerProcess.new(File.join(app.path, "config.ru"), spawn: { chdir: app.path }, deadline: 60, binds: RailsHTTPS.binds,
                                                        config: %(x_sendfile_root "storage", "public"\nsendfile_type "X-Sendfile"),
                                                        env: RailsApp::ENVIRONMENT.merge("RAILS_ENV" => "production", "GATE" => gate))
  end

  def test_send_file_by_x_sendfile
    response = browser.get("/download")
    assert_nil response["x-sendfile"]
    assert_match(/\A"\h+-\h+"\z/, response["etag"])
    assert_equal "304", browser.get("/download", "if-none-match" => response["etag"]).code
    assert_equal 'attachment; filename="large.bin"; filename*=UTF-8\'\'large.bin', response["content-disposition"]
  end

  def test_errors
    assert_equal "500", browser.get("/fails").code
    refute_includes browser.response.body, "on purpose"
    assert_equal File.binread(File.join(RailsApp.instance.path, "public/500.html")), browser.response.body
    assert_equal "404", browser.get("/nowhere").code
    server.wait_for_log(/on purpose/)
  end
end

class RailsDevelopmentTest < AppCase
  include RailsBehaviour
  include RailsPush
  include RailsReload

  def self.start_server(*args, env: {})
    app = RailsApp.instance
    RailsServerProcess.new(app.rails, args: args, spawn: { chdir: app.path }, deadline: 60,
                                      env: RailsApp::ENVIRONMENT.merge("RACK_ENV" => nil, "RAILS_ENV" => "development",
                                                                       "GATE" => gate).merge(env))
  end

  def restart(server, signal)
    from = server.log.bytesize
    old = server.log.scan(/- Worker \d+ \(PID: (\d+)\) booted/).flatten
    server.signal(signal)
    server.wait_for_log(/(- Worker \d+ .*booted.*){2}/m, from: from)
    Timeout.timeout(60) { sleep 0.01 while old.any? { |pid| File.exist?("/proc/#{pid}") } }
  end

  # This process becomes the master, and `rails server` is executed anew for each restart.
  def test_workers
    pidfile = File.join(RailsApp.instance.path, "tmp/pids/workers.pid")
    other = self.class.start_server("-P", pidfile, env: { "WEB_CONCURRENCY" => "2" })
    other.wait_for_log(/(- Worker \d+ .*booted.*){2}/m)
    %w[USR1 USR2 USR1].each do |signal|
      assert_equal "cached", Browser.new(other.url).get("/cached").body
      restart(other, signal)
      Timeout.timeout(60) { sleep 0.01 until File.exist?(pidfile) && File.read(pidfile).to_i == other.pid }
    end
    assert_equal "200", Browser.new(other.url).get("/notes").code
    assert_equal 2, other.log.scan(/^- Starting phased restart$/).size
    assert_predicate other.stop(signal: "INT"), :success?
    refute_path_exists pidfile
  ensure
    other&.kill
  end

  # Its config/puma.rb has `port` and `plugin :tmp_restart`. Puma listens on the loopback addresses then, and on no other.
  def test_as_rails_new_leaves_it
    app = RailsApp.instance
    pidfile = File.join(app.path, "tmp/pids/plain.pid")
    other = PlainRailsServerProcess.new(app.rails, args: ["-P", pidfile], spawn: { chdir: app.path }, deadline: 60,
                                                   env: RailsApp::ENVIRONMENT.merge("RACK_ENV" => nil, "RAILS_ENV" => "development", "PORT" => nil,
                                                                                    "PORT_OF_THE_FILE" => "0", "GATE" => self.class.gate))
    other.wait_for_log(/^Use Ctrl-C to stop$/)
    assert_equal Rondo::Address.resolve(kind: :tcp, host: "localhost").map { |place| place[:host] }.sort,
                 other.own_urls.map { |url| url[%r{//\[?(.*?)\]?:\d+\z}, 1] }.sort
    assert_equal other.pid, File.read(pidfile).to_i
    from = other.log.bytesize
    assert system(RailsApp::ENVIRONMENT, app.rails, "restart", chdir: app.path, out: File::NULL)
    other.wait_for_log(/^- Restarting\.\.\.\n.*^Use Ctrl-C to stop$/m, from: from)
    assert_equal "cached", Browser.new(other.url).get("/cached").body
    assert_equal other.pid, File.read(pidfile).to_i
    assert_equal Signal.list["TERM"], other.stop(signal: "TERM").termsig
    refute_match(/Replaced/, other.log)
    refute_path_exists pidfile
  ensure
    other&.kill
  end

  # A stuck request, whatever its reason, does not keep the server from ending.
  def test_a_second_ctrl_c_ends_at_once
    other = self.class.start_server("-P", File.join(RailsApp.instance.path, "tmp/pids/other.pid"))
    client = TCPSocket.new("127.0.0.1", other.port)
    with_gate do
      client.write("GET /lazy HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
      assert client.wait_readable(60), "it does not begin"
      other.signal("INT")
      other.wait_for_log(%r{^- Waiting for 1 request, the oldest GET /lazy for \d+\.\d s, at most 30 s; a second Ctrl-C})
      other.signal("INT")
      assert_predicate other.stop(signal: 0), :success?
      assert_match(/^- Stopping at once$/, other.log)
    end
  ensure
    client&.close
    other&.kill
  end

  def test_it_boots_rondo
    assert_match(/Booting Rondo/, server.log)
    assert_match(/Rails 7\.2/, server.log)
  end

  def test_errors
    assert_equal "500", browser.get("/fails").code
    assert_includes browser.response.body, "on purpose"
    assert_includes browser.response.body, "pages_controller.rb"
    assert_equal "404", browser.get("/nowhere").code
    assert_includes browser.response.body, "No route matches"
  end

  # Stacks may keep some.
  def test_action_cable_does_not_keep_old_code
    before = classes_of_channels
    20.times { |number| listen_to_version("version #{number}") }
    assert_operator classes_of_channels - before, :<, 18
  end

  def classes_of_channels
    peer = CablePeer.new(server.url).welcomed
    id = peer.subscribe(room: "reload")
    peer.perform(id, "classes").hear_of(id)["classes"]
  ensure
    peer&.close
  end

  def test_code_is_loaded_anew
    assert_equal "cached", browser.get("/cached").body
    changing("app/controllers/pages_controller.rb", 'plain: "cached"', 'plain: "changed"') do
      assert_equal "changed", browser.get("/cached").body
    end
  end
end
