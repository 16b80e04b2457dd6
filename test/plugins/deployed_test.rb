# frozen_string_literal: true

# An application as `rails new` makes it, with rondo in place of puma in its Gemfile and nothing else edited, run as
# images and developers run it: by the command of its Dockerfile, by Thruster as later versions of Rails do, and by
# Foreman.
# SPDX-License-Identifier: MIT

require_relative "plugin_case"
require "json"

class DeployedRailsTest < PluginCase
  NEW = %w[--minimal --no-skip-active-record --skip-asset-pipeline --skip-bundle --skip-git --skip-brakeman --skip-rubocop --quiet].freeze
  THRUST = <<~RUBY
    #!/usr/bin/env ruby
    require "rubygems"
    require "bundler/setup"
    load Gem.bin_path("thruster", "thrust")
  RUBY
  PROCFILE = "web: bin/rails server\n"

  def setup
    super
    bundled "-e", 'load Gem.bin_path("railties", "rails")', "new", File.join(@folder, "app"), *NEW
    @folder = File.join(@folder, "app")
    gems = read("Gemfile").sub(/^gem "puma".*/, "gem \"rondo\", path: #{ROOT.inspect}").sub(/^group :development, :test do.*?^end/m, "")
    write "Gemfile", "#{gems}\ngem \"thruster\", require: false\ngem \"foreman\", require: false\n"
    write "bin/thrust", THRUST
    File.chmod(0o755, File.join(@folder, "bin/thrust"))
  end

  def run_words(*words, env: {})
    surroundings = surroundings("Gemfile").merge("BUNDLE_GEMFILE" => File.join(@folder, "Gemfile"), "BINDING" => "127.0.0.1",
                                                 "DATABASE_URL" => "sqlite3:storage/it.sqlite3", "SECRET_KEY_BASE" => "0123456789abcdef" * 4)
    server = Command.new(nil, args: words, env: BLANK.merge(surroundings, env), spawn: { chdir: @folder }, deadline: LONG)
    @servers << server
    server
  end

  # @return [String] the page by which images are found healthy; in production a proxy has ended TLS
  def up(port)
    Net::HTTP.start("127.0.0.1", port, read_timeout: LONG) { |http| http.get("/up", "x-forwarded-proto" => "https").code }
  end

  # Nothing is left of it.
  # @return [Process::Status]
  def end_of(server, signal)
    pids = descendants(server.pid)
    status = server.stop(signal: signal)
    wait_for_end_of(*pids)
    status
  end

  # As the image runs them: the entry point, which prepares the database, then the command.
  def words_of_the_dockerfile
    words = %w[ENTRYPOINT CMD].flat_map { |name| JSON.parse(read("Dockerfile")[/^#{name} (.*)/, 1]) }
    assert_equal %w[/rails/bin/docker-entrypoint ./bin/rails server], words
    [words.first.sub("/rails", @folder), *words.drop(1)]
  end

  def test_the_command_of_the_dockerfile
    { {} => 0, { "WEB_CONCURRENCY" => "2" } => 2 }.each do |env, workers|
      server = run_words(*words_of_the_dockerfile, env: env.merge("PORT" => "0"))
      assert_equal "200", up(server.port), server.log
      assert_equal workers, server.log.scan(/^- Worker \d+ .*booted/).size
      status = end_of(server, "TERM")
      assert_equal [Signal.list["TERM"], nil], [status.termsig, status.exitstatus], server.log
      assert_match(/^- Goodbye!/, server.log)
    end
  end

  def free_port
    TCPServer.open("127.0.0.1", 0) { |server| server.addr[1] }
  end

  def test_thruster
    front, back = free_port, free_port
    server = run_words("bin/thrust", "bin/rails", "server", env: { "HTTP_PORT" => front.to_s, "TARGET_PORT" => back.to_s })
    assert_equal back, server.port
    assert_equal "200", eventually("thruster") { connected { up(front) } }
    status = end_of(server, "TERM")
    assert_match(/^- Goodbye!/, server.log)
    assert_predicate status, :exited?
  end

  def connected
    yield
  rescue Errno::ECONNREFUSED
    nil
  end

  # As bin/dev does, in development.
  def test_foreman
    write "Procfile.dev", PROCFILE
    %w[-INT TERM].each do |signal| # INT as a terminal sends it, to all processes
      server = run_words(RbConfig.ruby, "-rbundler/setup", "-e", 'load Gem.bin_path("foreman", "foreman")', "start", "-f",
                         "Procfile.dev", "-p", "0", env: { "RAILS_ENV" => "development", "RACK_ENV" => nil, "BINDING" => nil })
      assert_equal "200", up(server.port)
      status = end_of(server, signal)
      assert_match(/- Goodbye!/, server.log)
      refute_match(/SIGKILL|Stopping at once/, server.log)
      assert_match(/web\.1  \| (exited with code 0|terminated by SIGTERM)$/, server.log)
      assert_equal 0, status.exitstatus
    end
  end
end
