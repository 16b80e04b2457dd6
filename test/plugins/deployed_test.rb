# frozen_string_literal: true

# An application as `rails new` makes it, with rondo in place of puma in its Gemfile and nothing else edited, run as
# images and developers run it: by the command of its Dockerfile, by Thruster as later versions of Rails do, by Foreman,
# with solid_queue in the server, and under its own system tests.
# SPDX-License-Identifier: MIT

require_relative "plugin_case"
require "json"

class DeployedRailsTest < PluginCase
  NEW = %w[--minimal --no-skip-active-record --no-skip-active-job --no-skip-system-test --skip-asset-pipeline --skip-bundle --skip-git
           --skip-brakeman --skip-rubocop --quiet].freeze
  THRUST = <<~RUBY
    #!/usr/bin/env ruby
    require "rubygems"
    require "bundler/setup"
    load Gem.bin_path("thruster", "thrust")
  RUBY
  DRIVER = "/usr/bin/chromedriver" # Debian's; Selenium would download one
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

  def surroundings_of_the_app
    BLANK.merge(surroundings("Gemfile"), "BUNDLE_GEMFILE" => File.join(@folder, "Gemfile"), "BINDING" => "127.0.0.1",
                                         "SECRET_KEY_BASE" => "0123456789abcdef" * 4)
  end

  def run_words(*words, env: {})
    env = { **surroundings_of_the_app, "DATABASE_URL" => "sqlite3:storage/it.sqlite3", **env }
    server = Command.new(nil, args: words, env: env, spawn: { chdir: @folder }, deadline: LONG)
    @servers << server
    server
  end

  # @return [String] what a command of the application writes
  def run_to_its_end(*words, env: {})
    output, status = Open3.capture2e(surroundings_of_the_app.merge(env), *words, chdir: @folder)
    assert_predicate status, :success?, output
    output
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
      server.wait_for_log(/(^- Worker \d+ .*booted.*){#{workers}}/m)
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

  DATABASES = <<~YAML
    production:
      primary: { adapter: sqlite3, database: storage/it.sqlite3, timeout: 5000 }
      queue: { adapter: sqlite3, database: storage/queue.sqlite3, timeout: 5000, migrations_paths: db/queue_migrate }
  YAML
  ROUTES = <<~RUBY
    class NoteJob < ActiveJob::Base
      def perform = File.write("noted", Process.pid.to_s)
    end

    Rails.application.routes.draw do
      get "/note", to: ->(_env) { NoteJob.perform_later && [202, {}, [Process.pid.to_s]] }
    end
  RUBY

  # The line of config/puma.rb is the one that later versions of Rails generate.
  def install_solid_queue
    write "Gemfile", "#{read("Gemfile")}gem \"solid_queue\"\n"
    write "config/database.yml", DATABASES
    write "config/routes.rb", ROUTES
    write "config/puma.rb", "#{read("config/puma.rb")}plugin :solid_queue if ENV[\"SOLID_QUEUE_IN_PUMA\"]\n"
    run_to_its_end "bin/rails", "solid_queue:install"
    run_to_its_end "bin/rails", "db:prepare"
  end

  def test_solid_queue_in_puma
    install_solid_queue
    %w[0 2].each do |workers|
      server = run_words("bin/rails", "server", env: { "PORT" => "0", "SOLID_QUEUE_IN_PUMA" => "1", "WEB_CONCURRENCY" => workers,
                                                       "DATABASE_URL" => nil })
      asked = Net::HTTP.start("127.0.0.1", server.port, read_timeout: LONG) { |http| http.get("/note", "x-forwarded-proto" => "https") }
      assert_equal "202", asked.code, server.log
      eventually("the job") { File.size?(File.join(@folder, "noted")) }
      refute_includes [asked.body, server.pid.to_s], read("noted")
      end_of(server, "TERM")
      assert_match(/^- Goodbye!/, server.log)
      File.delete(File.join(@folder, "noted"))
    end
  end

  PAGE = <<~'RUBY'
    Rails.application.routes.draw do
      get "/", to: ->(env) { [200, { "content-type" => "text/html" }, ["<h1>upgrades: #{env.key?("rack.upgrade?")}</h1>"]] }
    end
  RUBY
  SYSTEM_TEST = <<~RUBY
    require "application_system_test_case"

    class HomeTest < ApplicationSystemTestCase
      test "visiting the home page" do
        visit "/"
        assert_selector "h1", text: "upgrades: true"
        assert_nil Gem.loaded_specs["puma"]
      end
    end
  RUBY

  # Capybara's server is :puma, and the generated class does not say otherwise. Chromium has no sandbox for root.
  def test_system_tests
    write "test/application_system_test_case.rb",
          read("test/application_system_test_case.rb").sub(/driven_by .*/) { |line| "#{line} do |options|\n  options.add_argument('no-sandbox')\nend" }
    write "config/routes.rb", PAGE
    write "test/system/home_test.rb", SYSTEM_TEST
    said = run_to_its_end("bin/rails", "test:system", env: { "RAILS_ENV" => "test", "RACK_ENV" => nil, "SE_CHROMEDRIVER" => DRIVER,
                                                             "SE_OFFLINE" => "true" })
    assert_match(/^Capybara starting Rondo\.\.\.\n\* Listening on /, said)
    assert_match(/^1 runs, 2 assertions, 0 failures, 0 errors, 0 skips$/, said)
  end
end
