# frozen_string_literal: true

# An application as `rails new` of Rails 8.1 makes it, with solid_queue, solid_cache and solid_cable, Thruster and
# bootsnap, and with rondo in place of puma in its Gemfile. tools/run_rails_new makes it and lays test/rails_new/app over
# it; Debian 13 has the Ruby for it (tools/try_debian13 --rails).
# SPDX-License-Identifier: MIT

require "integration/shell_case"
require "json"
require "support/cable_peer"

class RailsNewTest < ShellCase
  LONG = 240
  OWN = %w[BUNDLER_SETUP BUNDLE_BIN_PATH BUNDLER_VERSION BUNDLE_FROZEN RUBYOPT RUBYLIB HTTP_PORT TARGET_PORT].to_h { |name| [name, nil] }.freeze

  def setup
    super
    @folder = ENV.fetch("RONDO_NEW_APP") { skip "tools/run_rails_new makes the application" }
    FileUtils.rm_rf(File.join(@folder, "tmp/pids"))
    @peers = []
  end

  def teardown
    @peers&.each(&:close)
    super
  end

  def surroundings(environment)
    BLANK.merge(OWN, "BUNDLE_GEMFILE" => File.join(@folder, "Gemfile"), "RAILS_ENV" => environment, "PORT" => "0",
                     "RAILS_LOG_LEVEL" => "info")
  end

  def run_words(*words, environment: "production", env: {})
    server = Command.new(nil, args: words, env: surroundings(environment).merge(env), spawn: { chdir: @folder }, deadline: LONG)
    @servers << server
    server
  end

  def page(port, path)
    Net::HTTP.start("127.0.0.1", port, read_timeout: LONG) { |http| http.get(path) }
  end

  def assert_up(server)
    assert_equal "200", page(server.port, "/up").code, server.log
  end

  # A request gives a job to solid_queue; it writes to solid_cache and broadcasts by solid_cable.
  def assert_news(url, text)
    peer = CablePeer.new(url, origin: url.sub("http:", "https:")).welcomed
    @peers << peer
    id = peer.subscribe("NewsChannel")
    assert_equal "202", page(URI(url).port, "/speak?text=#{text}").code
    assert_equal({ "text" => text }, peer.hear_of(id))
    assert_equal text, page(URI(url).port, "/latest").body
  end

  def assert_ends(server, signal)
    server.stop(signal: signal, deadline: LONG)
    assert_match(/^- Goodbye!/, server.log)
  end

  def test_in_development
    server = run_words("bin/dev", environment: "development")
    assert_match(/Rails 8\.1/, server.log)
    assert_up server
    from = server.log.bytesize
    assert system(surroundings("development"), "bin/rails", "restart", chdir: @folder, out: File::NULL)
    server.wait_for_log(/^- Restarting\.\.\.\n.*^Use Ctrl-C to stop$/m, from: from, deadline: LONG)
    assert_up server
    assert_ends server, "INT"
  end

  def test_workers_and_all_that_is_solid
    server = run_words("bin/rails", "server", "-u", "rondo", env: { "WEB_CONCURRENCY" => "2", "SOLID_QUEUE_IN_PUMA" => "1" })
    server.wait_for_log(/(^- Worker \d+ .*booted.*){2}/m, deadline: LONG)
    assert_news server.url, "before"
    old = server.log.scan(/^- Worker \d+ \(PID: (\d+)\) booted/).flatten.map(&:to_i)
    from = server.log.bytesize
    server.signal("USR1")
    server.wait_for_log(/(^- Worker \d+ .*booted.*){2}/m, from: from, deadline: LONG)
    wait_for_end_of(*old) # they still take clients, and send them away
    assert_news server.url, "after"
    assert_ends server, "TERM"
  end

  # The entry point prepares the database. Thruster runs the server, passes requests on to it, and sends what X-Sendfile
  # names.
  def test_the_command_of_the_dockerfile
    front, back = free_port, free_port
    server = run_words(*words_of_the_dockerfile, env: { "HTTP_PORT" => front.to_s, "TARGET_PORT" => back.to_s, "PORT" => nil,
                                                        "SOLID_QUEUE_IN_PUMA" => "1" })
    assert_equal back, server.port
    eventually("Thruster") { listens?(front) }
    %w[/up /robots.txt].each { |path| assert_equal "200", page(front, path).code, server.log }
    assert_equal read("public/robots.txt"), page(front, "/robots.txt").body
    assert_news "http://127.0.0.1:#{front}", "through"
    assert_ends server, "TERM"
  end

  def words_of_the_dockerfile
    words = %w[ENTRYPOINT CMD].flat_map { |name| JSON.parse(read("Dockerfile")[/^#{name} (.*)/, 1]) }
    assert_equal %w[/rails/bin/docker-entrypoint ./bin/thrust ./bin/rails server], words
    [words.first.sub("/rails", @folder), *words.drop(1)]
  end

  def free_port
    TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end

  def listens?(port)
    TCPSocket.new("127.0.0.1", port).close
    true
  rescue Errno::ECONNREFUSED
    false
  end
end
