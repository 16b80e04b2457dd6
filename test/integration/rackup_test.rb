# frozen_string_literal: true

# Other ways to start Rondo: rackup, Rackup's handler as an object, Capybara.
# SPDX-License-Identifier: MIT

require_relative "shell_case"
require "capybara"
require "rackup"
require "rondo/capybara"
require "rackup/handler/rondo"
require "support/redis_server"

class RackupTest < ShellCase
  LIB = File.join(ROOT, "lib")
  # Answers the class of the engine that publishes, and prints messages that come from outside.
  PUBSUB = <<~'RUBY'
    require "rondo"
    Rondo.subscribe("news") { |_channel, message| warn "heard #{message}" }
    run lambda { |env|
      Rondo.publish("news", env["QUERY_STRING"]) unless env["QUERY_STRING"].empty?
      [200, { "content-type" => "text/plain" }, [Rondo::PubSub.default.class.name]]
    }
  RUBY

  # Rackup as a command; it has no -C, and only one address.
  class Rackup < ServerProcess
    def self.running
      superclass.running
    end

    private

    def command_line(_app, _settings, _config, _binds, args)
      [RbConfig.ruby, "-I#{LIB}", Gem.bin_path("rackup", "rackup"), "-s", "rondo", *args]
    end
  end

  # Without an option that names the server: Rackup takes the one of the bundle.
  class NamelessRackup < Rackup
    private

    def command_line(*)
      super - %w[-s rondo]
    end
  end

  def setup
    super
    write "config.ru", HELLO
  end

  def rackup(*words, env: {})
    server = Rackup.new(nil, args: %w[-o 127.0.0.1 -p 0] + words, env: BLANK.merge(env), spawn: { chdir: @folder })
    @servers << server
    server
  end

  # ---- the command ----

  def test_rackup_serves_and_stops
    %w[INT TERM].each do |signal|
      server = rackup
      assert_equal "hello", get(server).body
      server.stop(signal: signal)
      refute_match(/[Ee]rror|\.rb:\d+:in /, server.log)
    end
  end

  def test_it_is_the_default_and_has_a_name
    [{}, { "RACKUP_HANDLER" => "rondo" }, { "RACKUP_HANDLER" => "puma" }].each do |env|
      server = NamelessRackup.new(nil, args: %w[-o 127.0.0.1 -p 0], env: BLANK.merge(env), spawn: { chdir: @folder })
      @servers << server
      assert_match(/^Rondo starting in single mode/, server.log)
      assert_equal "hello", get(server).body
    end
  end

  # A gem puma of the bundle, before or behind this one on the load path.
  def test_puma_of_the_bundle_stays_the_default
    write "puma/rack/handler/puma.rb", "module Rackup::Handler::Puma\n  def self.run(*) = puts('the real one')\n  " \
                                       "Rackup::Handler.register :puma, self\nend\n"
    write "puma.gemspec", "Gem::Specification.new('puma', '9') { |s| s.summary = s.author = 'x'\ns.require_paths = ['puma'] }\n"
    load = "Gem.loaded_specs['puma'] = Gem::Specification.load('puma.gemspec').tap { |spec| spec.activated = true }\nrequire 'rackup'\n"
    [["puma", LIB], [LIB, "puma"]].each do |folders|
      result = run_command(RbConfig.ruby, *folders.map { |folder| "-I#{folder}" }, "-e", "#{load}Rackup::Handler.default.run(nil)")
      assert_equal "the real one\n", result.out, result.err
    end
  end

  # What is set for the process, and all signals, as for the command: without workers this is one process.
  def test_the_process_is_the_servers
    write "config.ru", PIDS
    write "config/puma.rb", <<~RUBY
      pidfile "a.pid"
      state_path "state"
      state_permission 0640
      activate_control_app "unix://control", no_token: true
      plugin :tmp_restart
      before_restart { warn "restarts" }
    RUBY
    server = rackup
    server.wait_for_log(/Use Ctrl-C/) # it looks at tmp/restart.txt from now on
    assert_equal 0o640, File.stat(File.join(@folder, "state")).mode & 0o777
    %w[two three].each do |code|
      from = server.log.bytesize
      write "config.ru", PIDS.sub("one", code)
      code == "two" ? write("tmp/restart.txt", "") : server.signal("USR2")
      server.wait_for_log(/^restarts$.*Use Ctrl-C/m, from: from)
      assert_equal [server.pid.to_s, code], [get(server).body, get(server, "/code").body]
      assert_equal "#{server.pid}\n", File.read(File.join(@folder, "a.pid"))
    end
    assert_match(/"requests_count"/, rondo("ctl", "-S", "state", "stats").out)
    assert_equal Signal.list["TERM"], server.stop(signal: "TERM").termsig
    assert_empty %w[a.pid state control].select { |name| File.exist?(File.join(@folder, name)) }
    refute_match(/[Ee]rror|Replaced|\.rb:\d+:in /, server.log)
  end

  # Answers after a byte came through the pipe.
  STUCK_AT_GATE = <<~RUBY
    run lambda { |env|
      File.open("gate", "r+") { |gate| warn("slow began") || gate.read(1) } if env["PATH_INFO"] == "/slow"
      [200, { "content-type" => "text/plain" }, ["hello"]]
    }
  RUBY
  WAITING = /^- Waiting for 1 request, the oldest GET \/slow for \d+\.\d s, at most 30 s; a second Ctrl-C or TERM stops at once$/

  def while_slow(server)
    client = Thread.new { get(server, "/slow") }
    client.report_on_exception = false # it may be cut off
    server.wait_for_log(/^slow began$/)
    yield client
  ensure
    client&.kill
  end

  def stuck_rackup
    File.mkfifo(File.join(@folder, "gate")) unless File.exist?(File.join(@folder, "gate"))
    write "config.ru", STUCK_AT_GATE
    rackup
  end

  def test_a_second_signal_ends_at_once
    { "INT" => nil, "TERM" => Signal.list["TERM"] }.each do |signal, ends_by|
      server = stuck_rackup
      while_slow(server) do
        server.signal(signal)
        server.wait_for_log(/^- Gracefully stopping, waiting for requests to finish$/)
        server.wait_for_log(WAITING)
        assert_predicate server, :alive?
        server.signal(signal)
        server.wait_for_log(/^- Stopping at once$/)
        status = server.stop(signal: 0)
        ends_by ? assert_equal(ends_by, status.termsig) : assert_equal(0, status.exitstatus)
        assert_match(/^- Ended while the application was still working on a request \(1 request, the oldest GET \/slow for/, server.log)
      end
    end
  end

  def test_a_stuck_request_ends_with_the_deadline_of_the_drain
    write "config/rondo.rb", "force_shutdown_after :immediately\nafter_stopped { warn 'stopped' }\n"
    server = stuck_rackup
    while_slow(server) do
      assert_equal 0, server.stop(signal: "INT").exitstatus
      assert_match(/^- Ended while the application was still working on a request.*\nstopped$/, server.log)
    end
  end

  def test_requests_in_flight_finish
    %w[INT TERM].each do |signal|
      server = stuck_rackup
      while_slow(server) do |client|
        server.signal(signal)
        server.wait_for_log(WAITING)
        File.write(File.join(@folder, "gate"), ".")
        assert_equal "hello", client.value.body
        server.stop(signal: 0)
        refute_match(/Ended while/, server.log)
      end
    end
  end

  def test_the_configuration_file_of_the_application_holds
    write "config/rondo.rb", "max_body_bytes 10\nafter_booted { warn 'hook' }\n"
    server = rackup
    post = ->(body) { Net::HTTP.new("127.0.0.1", server.port).post("/", body).code }
    assert_equal %w[200 413], [post.call("x" * 10), post.call("x" * 11)]
    assert_match(/^hook$/, server.log)
  end

  def test_the_static_folder_of_the_configuration_file
    write "site/note.txt", "note"
    write "config/rondo.rb", "public 'site'\n"
    server = rackup
    assert_equal %w[note hello], [get(server, "/note.txt").body, get(server).body]
    assert_match(/^\* Serving files of #{@folder}\/site$/, server.log)
  end

  def test_the_environment_chooses_the_configuration_file
    write "config/rondo/staging.rb", "after_booted { warn 'hook of staging' }\n"
    rackup(env: { "APP_ENV" => "staging" }).wait_for_log(/^hook of staging$/)
    rackup("-E", "staging").wait_for_log(/^hook of staging$/)
  end

  # ---- workers ----

  PIDS = "CODE = 'one'\nrun ->(env) { [200, {}, [env['PATH_INFO'] == '/code' ? CODE : Process.pid.to_s]] }\n"

  def workers_of(server, count, from: 0)
    server.wait_for_log(/(- Worker \d+ .*booted in.*){#{count}}/m, from: from)
  end

  def restart(server, signal, count)
    old = server.log.scan(/- Worker \d+ \(PID: (\d+)\) booted/).flatten
    from = server.log.bytesize
    server.signal(signal)
    workers_of(server, count, from: from)
    wait_for_end_of(*old)
  end

  # The program is executed anew for each restart, with the pid file that it checks.
  def test_workers
    write "config.ru", PIDS
    write "config/puma.rb", "bind 'unix://file.sock'\nbefore_worker_boot { warn 'hook' }\n"
    pidfile = File.join(@folder, "server.pid")
    server = rackup("-P", pidfile, env: { "WEB_CONCURRENCY" => "2" })
    workers_of(server, 2)
    assert_match(/^! bind \(puma\.rb\): ignored, because the options of the program say where to listen$/, server.log)
    assert_match(/^hook$/, server.log)
    refute_equal server.pid.to_s, get(server).body
    %w[USR1 USR2 USR1 USR2].each.with_index do |signal, index|
      write "config.ru", PIDS.sub("one", "code #{index}")
      restart(server, signal, 2)
      assert_equal "code #{index}", get(server, "/code").body
      eventually("the pid file") { File.exist?(pidfile) && File.read(pidfile).to_i == server.pid }
    end
    refute_path_exists "#{pidfile}.mold"
    assert_equal 0, server.stop(signal: "INT").exitstatus
    refute_path_exists pidfile
    refute_match(/[Ee]rror|\.rb:\d+:in /, server.log)
  end

  def test_where_there_cannot_be_workers
    script = "require 'rackup/handler/rondo'; " \
             "Rackup::Handler::Rondo.run(->(_env) { [200, {}, []] }, Host: '127.0.0.1', Port: 0) { |server| server.stop }"
    result = run_command(RbConfig.ruby, "-I#{LIB}", "-e", script, env: { "WEB_CONCURRENCY" => "2" })
    assert_match(/^! workers: 2 \(WEB_CONCURRENCY\): this server is one process, because the program asks for the server object$/, result.out + result.err)
  end

  def test_what_was_typed_wins_over_the_file
    write "config/rondo.rb", "bind 'unix://#{@folder}/file.sock'\n"
    server = rackup
    assert_equal [server.url], server.urls
    refute File.exist?(File.join(@folder, "file.sock"))
    assert_match(/^! bind \(rondo\.rb\): ignored, because the options of the program say where to listen$/, server.log)
  end

  def test_redis_of_the_configuration_file_or_of_the_environment
    redis = RedisServer.new
    write "config.ru", PUBSUB
    ["redis_url #{redis.url.inspect}\n", ""].zip([{}, { "REDIS_URL" => redis.url }]).each do |file, env|
      write "config/rondo.rb", "#{file}redis_required\n"
      server = rackup(env: env)
      eventually("a subscription") { redis.cli("PUBLISH", "news", "from outside") == "1" }
      server.wait_for_log(/^heard from outside$/)
      assert_equal "Rondo::PubSub::Redis", get(server, "/?from-inside").body
      server.wait_for_log(/^heard from-inside$/)
      server.stop
      eventually("the end of that") { redis.cli("PUBSUB", "NUMSUB", "news").split.last == "0" }
    end
  ensure
    redis&.close
  end

  def test_an_engine_of_the_configuration_file_is_closed_at_the_end
    write "config.ru", PUBSUB
    write "config/rondo.rb", <<~'RUBY'
      require "rondo/pubsub"
      class ::Megaphone < Rondo::PubSub::Engine
        def publish(channel, message) = warn("#{channel}: #{message}") || true
        def close(seconds) = warn("closed within #{seconds}")
      end
      pubsub_engine { Megaphone.new }
      after_stopped { warn "hook at the end" }
    RUBY
    %w[INT TERM].each do |signal|
      server = rackup
      assert_equal "Megaphone", get(server, "/?hello").body
      server.stop(signal: signal)
      assert_match(/^news: hello\n.*^hook at the end\nclosed within 2$/m, server.log, signal)
    end
  end

  def test_int_while_an_engine_is_opened
    write "config/rondo.rb", <<~RUBY
      require "rondo/pubsub"
      class ::Slow < Rondo::PubSub::Engine
        def close(_seconds) = warn("closed")
      end
      pubsub_engine { Process.kill("INT", $$) && Slow.new }
    RUBY
    result = run_command(RbConfig.ruby, "-I#{LIB}", Gem.bin_path("rackup", "rackup"), "-s", "rondo",
                         "-o", "127.0.0.1", "-p", "0")
    assert_equal 0, result.code
    refute_match(/closed|[Ee]rror|\.rb:\d+:in /, result.out + result.err)
  end

  def test_hooks_of_threads
    write "config/rondo.rb", <<~RUBY
      before_thread_start { Thread.current[:mark] = "marked" }
      before_thread_exit { warn "thread ends" }
    RUBY
    write "config.ru", "run ->(_env) { [200, {}, [Thread.current[:mark].to_s]] }\n"
    server = rackup
    assert_equal "marked", get(server).body
    server.stop(signal: "INT")
    assert_match(/^thread ends$/, server.log)
  end

  def test_options_of_the_handler
    other = write("other.rb", "early_hints\n")
    write "config.ru", "run ->(env) { [200, {}, [env.key?('rack.early_hints').to_s]] }\n"
    server = rackup("-O", "Config=#{other}", "-O", "Verbose", "-O", "Threads=0:3")
    assert_match(/Min threads: 1 \(options\)\n.*Max threads: 3 \(options\)/, server.log)
    assert_equal "true", get(server, "/said").body
    server.wait_for_log(%r{"GET /said HTTP/1\.1" 200})
    help = run_command(RbConfig.ruby, "-I#{LIB}", Gem.bin_path("rackup", "rackup"), "-s", "rondo", "--help")
    assert_includes help.out, "Server-specific options for Rackup::Handler::Rondo"
    assert_includes help.out, "-O Config=FILE"
  end

  # ---- the handler as an object ----

  def test_the_registry_knows_it
    assert_same ::Rackup::Handler::Rondo, ::Rackup::Handler.get(:rondo)
    assert_same ::Rackup::Handler::Rondo, ::Rackup::Handler.get("rondo")
  end

  def test_run_yields_a_server_that_can_be_stopped
    Dir.chdir(@folder) do
      servers = Thread::Queue.new
      thread = Thread.new do
        ::Rackup::Handler::Rondo.run(->(_env) { [200, {}, ["handled"]] },
                                     Host: "127.0.0.1", Port: 0, quiet: true) { |server| servers << server }
      end
      server = eventually("the server") { servers.pop(true) unless servers.empty? }
      assert_equal "handled", Net::HTTP.get(URI(server.addresses.first))
      server.stop
      assert thread.join(PATIENCE), "the handler did not return"
    end
  end

  def test_no_trap_is_set
    before = %w[INT TERM HUP USR1 USR2].to_h { |name| [name, trap_of(name)] }
    server = Rondo::Server.new(->(_env) { [200, {}, []] })
    server.listen("tcp://127.0.0.1:0")
    thread = Thread.new { server.run }
    Net::HTTP.get(URI(server.addresses.first))
    assert_equal before, before.keys.to_h { |name| [name, trap_of(name)] }
    server.stop
    assert thread.join(PATIENCE)
  end

  # ---- Capybara ----

  def test_capybara_starts_several_servers
    Capybara.server = :rondo
    before = Thread.list
    servers = %w[one two].map do |text|
      Capybara::Server.new(->(_env) { [200, { "content-type" => "text/plain" }, [text]] }, port: nil).boot
    end
    bodies = servers.map { |server| Net::HTTP.get(URI(server.base_url)) }
    assert_equal %w[one two], bodies
  ensure
    Capybara.server = :default
    (Thread.list - before).each { |thread| thread.kill.join } # Capybara cannot end them in any other way
  end

  # `:puma` is Capybara's default. The gems may be loaded in any order, and a program may choose before Rondo is there.
  ORDERS = { "require 'rondo'; require 'capybara'" => "", "require 'capybara'; require 'rondo'" => "",
             "require 'rondo'; require 'capybara'; Capybara.server = :puma" => "",
             "require 'capybara'; Capybara.server = :puma, { Silent: false, Threads: '0:4' }; require 'rondo'" =>
               "Capybara starting Rondo...\n* Listening on http://127.0.0.1:PORT\n",
             "require 'capybara'; require 'rondo'; Capybara.server = :rondo" => "" }.freeze

  def test_capybara_finds_rondo_by_the_name_of_puma
    ORDERS.each do |order, said|
      script = "#{order}; require 'net/http'; server = Capybara::Server.new(->(env) { [200, {}, [env.key?('rack.upgrade?').to_s]] }, port: nil).boot; " \
               "print Net::HTTP.get(URI(server.base_url))"
      result = run_command(RbConfig.ruby, "-I#{LIB}", "-e", script)
      assert_equal "#{said}true", result.out.sub(/:\d+$/, ":PORT"), result.err
    end
    assert_equal "nil", run_command(RbConfig.ruby, "-I#{LIB}", "-e", "require 'rondo'; print defined?(Capybara).inspect").out
  end

  private

  def trap_of(name)
    handler = trap(name, "DEFAULT")
    trap(name, handler)
    handler
  end
end
