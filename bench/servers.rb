# frozen_string_literal: true

# Every server that the benchmarks know: how it starts with one worker, and a running one as an object. Rondo first,
# then its peers (installed by peers.rb). Used by run.rb, measure.rb, instructions.rb.
# SPDX-License-Identifier: MIT

require "etc"
require "fileutils"
require "open3"
require "socket"
require "tmpdir"
require_relative "http2_figures"
require_relative "many_processes"
require_relative "peers"
require_relative "processes"
require_relative "secure"

module Bench
  ROOT = File.expand_path("..", __dir__)
  BUILD = File.join(__dir__, ".build")
  SERVER_CPU = 0
  CLIENT_CPU = Etc.nprocessors > 1 ? 1 : 0

  # How one server starts.
  #
  # @!attribute name [String] as on the command line of run.rb
  # @!attribute title [String] as in the tables
  # @!attribute version [Proc] answers the version, or nil when it is not installed
  # @!attribute command [Proc] called with port, application file, an empty folder and the number of
  #   application threads
  # @!attribute apps [Array<String, Symbol>] the applications of bench/apps it can serve; :rack for all
  #   but those that need an upgrade to WebSocket or serve files
  # @!attribute answers [Array<Symbol>] how it can answer with a file, of {Scenario::ANSWERS}
  # @!attribute secure [Proc, nil] answers its command with TLS: the same arguments, and a {Pair}; nil when it has none
  Server = Struct.new(:name, :title, :version, :command, :apps, :answers, :environment, :secure,
                      keyword_init: true) do
    # @return [Boolean]
    def installed?
      !version.call.nil?
    end

    # @param scenario [Scenario]
    # @return [Boolean] whether it can serve this scenario
    def takes_part?(scenario)
      return false if scenario.http2 ? !Http2.speaks?(name, tls: !scenario.tls.nil?) : name == "nghttpd"
      return false unless knows_processes?(scenario)
      return false if scenario.tls ? secure.nil? : title == Servers::PLAIN
      return serves_files?(scenario) if scenario.app == "files"

      apps.include?(scenario.app) || (apps.include?(:rack) && scenario.app != "push")
    end

    private

    def knows_processes?(scenario)
      return false if scenario.alone && name != "rondo"
      return false if scenario.workers && !command.equal?(Servers.all.fetch("rondo").command)

      !scenario.processes || ManyProcesses.knows?(name)
    end

    # A scenario with stuck Ruby needs a server that runs Ruby.
    def serves_files?(scenario)
      return false unless answers.to_a.include?(scenario.answered)

      !%i[stuck beside_stuck stuck_streams].include?(scenario.kind) || apps.include?(:rack)
    end
  end

  # The list of servers.
  module Servers
    RACK = [:rack].freeze
    RACK_AND_PUSH = [:rack, "push"].freeze
    FILE_ANSWERS = %i[static string each to_path].freeze # as Rack applications
    FOLDER_ANSWERS = [*FILE_ANSWERS, :sendfile].freeze   # with a folder of the server's
    PLAIN = "Rondo without TLS"
    NGINX = <<~CONF
      user %<user>s;
      worker_processes 1;
      daemon off;
      pid %<folder>s/nginx.pid;
      error_log %<folder>s/error.log;
      events { worker_connections 16384; }
      http {
        access_log off;
        keepalive_requests 1000000000;
        keepalive_timeout 600;
        server_tokens off;
        client_body_temp_path %<folder>s; proxy_temp_path %<folder>s; fastcgi_temp_path %<folder>s;
        uwsgi_temp_path %<folder>s; scgi_temp_path %<folder>s;
        server {
          listen 127.0.0.1:%<port>d backlog=1024;
          %<locations>s
        }
      }
    CONF
    NGINX_HELLO = 'location / { default_type text/plain; return 200 "Hello, World!"; }'
    NGINX_FILES = <<~CONF
      location = / { default_type text/plain; return 200 "Hello, World!"; }
      location / {
        root %<root>s;
        sendfile on;
        tcp_nopush on;
        open_file_cache max=1000;
      }
    CONF

    module_function

    # @return [Hash{String => Server}] all, in the order of the tables
    def all
      @all ||= [rondo, rondo1, plain, node, uws, bare, *floors, *peers].to_h { |server| [server.name, server] }
    end

    def rondo
      command = lambda do |port, app, _, threads|
        rondo_command("-t", threads.to_s, "-b", address(port), "-q", *folder_option(app), app)
      end
      secure = lambda do |port, app, folder, threads, pair|
        command.call(port, app, folder, threads).map do |word|
          word == address(port) ? Secure.address(port, pair) : word
        end
      end
      Server.new(name: "rondo", title: "Rondo", version: -> { rondo_version }, command: command, secure: secure,
                 apps: RACK_AND_PUSH, answers: FOLDER_ANSWERS, environment: { "RACK_ENV" => "production" })
    end

    # The same without TLS, where the scenario has it: the comparison for what TLS costs.
    def plain
      rondo.dup.tap do |server|
        server.name, server.title = "plain", PLAIN
        server.secure = ->(port, app, folder, threads, _) { server.command.call(port, app, folder, threads) }
      end
    end

    # The second engine.
    def node
      command = lambda do |port, app, *|
        rondo_command("node", "-b", "127.0.0.1", "-p", port.to_s, app).insert(1, "-I", File.join(ROOT, "node/lib"))
      end
      Server.new(name: "node", title: "Rondo on Node", version: -> { node_version("opal") }, command: command,
                 apps: %w[hello inspect push], environment: { "RONDO_NODE_CACHE" => File.join(BUILD, "node") })
    end

    # The same with uWebSockets.js, as tools/run_uws installs it, where this system can load it.
    def uws
      library = File.join(ROOT, "build/uws/node_modules/@btc-vision/uwebsockets.js/uws.js")
      loads = -> { Open3.capture2e("node", "-e", "require(#{library.dump})").last.success? }
      node.dup.tap do |server|
        server.name, server.title = "uws", "Rondo on Node, uWebSockets.js"
        server.version = -> { node_version("opal") if File.file?(library) && loads.call }
        server.command = ->(*given) { node.command.call(*given).insert(-2, "--engine", "uws", "--uws-file", library) }
      end
    end

    # What the second engine stands on, without it and without Opal.
    def bare
      Server.new(name: "bare", title: "node:http", version: -> { node_version }, command: method(:script).to_proc,
                 apps: %w[hello], environment: {})
    end

    # The program of the same name for Node.
    def script(port, app, *)
      ["node", app.sub(/\.ru\z/, ".js"), port.to_s]
    end

    # @param gem_name [String, nil] what is needed besides
    def node_version(gem_name = nil)
      return if gem_name && Gem::Specification.find_all_by_name(gem_name).empty?

      Open3.capture2("node", "--version").first.delete("v").strip
    rescue Errno::ENOENT
      nil
    end

    # One thread, whatever the scenario says: the comparison for the cost of more threads.
    def rondo1
      command = ->(port, app, *) { rondo_command("-t", "1", "-b", address(port), "-q", app) }
      rondo.dup.tap do |server|
        server.name, server.title, server.command, server.apps = "rondo1", "Rondo -t 1", command, RACK
        server.answers = server.secure = nil
      end
    end

    # Not through bin/rondo, because setup and compilation must be over before the measurement.
    def rondo_command(*arguments)
      [Gem.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe", "rondo"), *arguments]
    end

    # Rondo and iodine use the same name.
    def folder_option(app)
      app.end_with?("files.ru") ? ["-www", Files::FOLDER] : []
    end

    def rondo_version
      return unless File.exist?(File.join(ROOT, "exe", "rondo"))

      number = File.read(File.join(ROOT, "lib", "rondo", "version.rb"))[/VERSION\s*=\s*"([^"]+)"/, 1]
      revision, = Open3.capture2("git", "-C", ROOT, "rev-parse", "--short", "HEAD", err: File::NULL)
      [number, *revision.split].join(" at ")
    end

    def floors
      [
        Server.new(name: "floor", title: "C floor", version: -> { "-" }, command: method(:floor_command).to_proc,
                   apps: %w[hello push cpu1ms], answers: %i[static], environment: {}),
        Server.new(name: "mri", title: "floor on MRI", version: -> { RUBY_VERSION },
                   command: ->(port, app, *) { [Gem.ruby, File.join(__dir__, "mri_floor.rb"), port.to_s, app] },
                   apps: %w[hello inspect allocations cpu1ms], answers: nil, environment: {}),
        Server.new(name: "nginx", title: "nginx", version: -> { nginx_version },
                   command: method(:nginx_command).to_proc, apps: %w[hello], answers: %i[static], environment: {},
                   secure: method(:secure_nginx).to_proc),
        nghttpd
      ]
    end

    # A page of it is a file.
    def nghttpd
      Server.new(name: "nghttpd", title: "nghttpd", version: -> { Http2.nghttpd_version }, apps: %w[hello],
                 command: ->(port, _, folder, *) { Http2.nghttpd(port, folder) },
                 secure: ->(port, _, folder, _, pair) { Http2.nghttpd(port, folder, pair) }, environment: {})
    end

    def floor_command(port, app, *)
      case File.basename(app)
      when "push.ru" then [Programs.path("push_floor"), port.to_s]
      when "files.ru" then [Programs.path("file_floor"), port.to_s, Files::FOLDER]
      when "cpu1ms.ru" then [Programs.path("floor"), port.to_s, "1000"]
      else [Programs.path("floor"), port.to_s]
      end
    end

    def peers
      [
        peer("up", "up_ruby (opal-up)", "opal-up", RACK_AND_PUSH) { |port, app, folder| up(port, app, folder) },
        iodine("iodine", "~> 0.7.0", FOLDER_ANSWERS), iodine("iodine8", "~> 0.8.0"), ws,
        peer("itsi", "Itsi", "itsi", secure: method(:secure_itsi)) do |port, app, folder, threads|
          itsi(port, app, folder, threads)
        end,
        peer("falcon", "Falcon", "falcon", secure: method(:secure_falcon)) do |port, app|
          gem_command("falcon", "serve", "-n", "1", "-b", "http://127.0.0.1:#{port}", "-c", app)
        end,
        peer("puma", "Puma", "puma", answers: FILE_ANSWERS, secure: method(:secure_puma)) do |port, app, _, threads|
          puma(puma_threads(threads), address(port), app)
        end,
        peer("puma1", "Puma -t 1:1", "puma") { |port, app| puma("1:1", address(port), app) }
      ]
    end

    def peer(name, title, gem_name, apps = RACK, answers: nil, secure: nil, &command)
      Server.new(name: name, title: title, version: -> { Peers.version(gem_name) }, secure: secure&.to_proc,
                 command: command, apps: apps, answers: answers, environment: Peers.environment)
    end

    # Two of its versions are installed side by side.
    def iodine(name, requirement, answers = nil)
      version = -> { Peers.version("iodine", requirement) }
      command = lambda do |port, app, _, threads|
        iodine_command(version.call, port, "-t", threads.to_s, "-w", "1", *folder_option(app), app)
      end
      Server.new(name: name, title: "iodine #{requirement[/[\d.]+(?=\.0)/]}", version: version, command: command,
                 apps: RACK_AND_PUSH, answers: answers, environment: Peers.environment)
    end

    def iodine_command(version, port, *words)
      gem_command("iodine", "_#{version}_", "-b", "127.0.0.1", "-p", port.to_s, *words)
    end

    def ws
      Server.new(name: "ws", title: "npm ws", version: -> { Peers.ws_version }, command: method(:script).to_proc,
                 apps: %w[push], environment: { "NODE_PATH" => File.join(Peers::NODE_HOME, "node_modules") })
    end

    def puma(threads, address, app)
      gem_command("puma", "--no-config", "-w", "0", "-t", threads, "-b", address, "-q", "-s", app)
    end

    def puma_threads(threads)
      threads > 1 ? "#{threads}:#{threads}" : "5:5"
    end

    def secure_puma(port, app, _folder, threads, pair)
      puma(puma_threads(threads), Secure.address(port, pair), app)
    end

    def secure_itsi(port, app, folder, threads, pair)
      itsi(port, app, folder, threads).tap { Secure.itsi(folder, pair) }
    end

    def secure_falcon(port, app, folder, _threads, pair)
      [Gem.ruby, *Secure.falcon(port, app, folder, pair)]
    end

    def secure_nginx(port, app, folder, threads, pair)
      nginx_command(port, app, folder, threads).tap { Secure.nginx(folder, pair) }
    end

    # With its default queue of 30 requests it answers 503 to more connections than that.
    def itsi(port, app, folder, threads)
      config = File.join(folder, "Itsi.rb")
      File.write(config, "workers 1\nthreads #{threads}\nruby_thread_request_backlog_size 10_000\n" \
                         "bind 'http://127.0.0.1:#{port}'\nrackup_file '#{app}'\n")
      gem_command("itsi", "serve", "-C", config)
    end

    # It takes no application name: it always runs the folder's config.ru. RubyGems refuses to start it without the gems
    # that it declares, so its executable is run by hand.
    def up(port, app, folder)
      FileUtils.cp(app, File.join(folder, "config.ru"))
      home = Dir.glob(File.join(Peers::HOME, "gems", "opal-up-*")).max
      [Gem.ruby, "-I", File.join(home, "lib"), File.join(home, "bin", "up_ruby"),
       "-b", "127.0.0.1", "-p", port.to_s, "-w", "1"]
    end

    # The command of a server with other options: how many workers and threads.
    #
    # @param command [Array<String>] as with one worker
    # @param words [Array<String>]
    # @return [Array<String>]
    def with_workers(name, command, words, app, port)
      case name
      when "rondo" then rondo_command(*words, "-b", address(port), "-q", app)
      when "puma" then gem_command("puma", "--no-config", *words, "-b", address(port), "-s", app)
      when "iodine" then iodine_command(Peers.version("iodine", "~> 0.7.0"), port, *words, app)
      when "falcon" then gem_command("falcon", "serve", *words, "-b", "http://127.0.0.1:#{port}", "-c", app)
      when "itsi" then itsi_with_workers(command, *words.map(&:to_i))
      else command
      end
    end

    # @param server [Server] Rondo
    # @param fibers [Integer]
    # @return [Server]
    def with_fibers(server, fibers)
      server.dup.tap do |copy|
        copy.title = "#{server.title} --fibers #{fibers}"
        copy.command = ->(*arguments) { server.command.call(*arguments).insert(-2, "--fibers", fibers.to_s) }
      end
    end

    # Its file has one worker and one thread.
    def itsi_with_workers(command, workers, threads)
      path = command.last
      File.write(path, File.read(path).sub("workers 1", "workers #{workers}").sub("threads 1", "threads #{threads}"))
      command
    end

    # @return [Array<String>]
    def nginx_with_workers(port, folder, workers)
      command = nginx_command(port, nil, folder)
      path = File.join(folder, "nginx.conf")
      File.write(path, File.read(path).sub("worker_processes 1;", "worker_processes #{workers};"))
      command
    end

    def gem_command(executable, *arguments)
      [Gem.ruby, File.join(Peers::HOME, "bin", executable), *arguments]
    end

    def address(port)
      "tcp://127.0.0.1:#{port}"
    end

    # Its worker runs as the user who started it, because others may not see the files.
    def nginx_command(port, app, folder, _threads = 1)
      locations = app&.end_with?("files.ru") ? format(NGINX_FILES, root: Files::FOLDER) : NGINX_HELLO
      File.write(File.join(folder, "nginx.conf"),
                 format(NGINX, folder: folder, port: port, locations: locations, user: Etc.getpwuid.name))
      ["nginx", "-p", folder, "-c", File.join(folder, "nginx.conf")]
    end

    def nginx_version
      Open3.capture2e("nginx", "-v").first[%r{nginx/([0-9.]+)}, 1]
    rescue Errno::ENOENT
      nil
    end
    private_class_method :rondo_command, :rondo1, :node, :uws, :bare, :script, :node_version,
                         :folder_option, :floors, :nghttpd, :floor_command, :peers, :peer,
                         :puma, :itsi, :itsi_with_workers, :up, :iodine,
                         :iodine_command, :ws, :gem_command, :address, :nginx_command, :nginx_version, :rondo_version,
                         :plain, :puma_threads, :secure_puma, :secure_itsi, :secure_falcon, :secure_nginx
  end

  # A server that is running, with everything below it, pinned to its CPU.
  class Running
    include Measured

    # A server that did not start, with its output.
    class BootError < StandardError; end

    BOOT_SECONDS = 60
    SETTLE_SECONDS = 2

    attr_reader :server, :port, :pid, :log

    # @param server [Server]
    # @param app [String] name of an application of bench/apps
    # @param threads [Integer] application threads, where it can have more than one
    # @param tls [Symbol, nil] the kind of the key of its certificate; nil: plain
    # @param http2 [Boolean] whether it must speak HTTP/2
    # @param workers [Integer, nil] processes of Rondo; nil: it has no other than its own
    # @param wrapper [Array<String>] a command to run it under, valgrind for one
    # @raise [BootError] when it does not answer within a minute
    # @param processes [Integer, nil] that serve; nil: one
    def initialize(server, app, threads: 1, tls: nil, workers: nil, processes: nil, http2: false,
                   wrapper: ["taskset", "-c", SERVER_CPU.to_s])
      @server = server
      @http2 = http2
      @tls = tls
      @folder = Dir.mktmpdir("bench")
      File.chmod(0o755, @folder) # the worker of nginx runs as another user
      @log = File.join(@folder, "log")
      @port = free_port
      app = File.join(__dir__, "apps", "#{app}.ru")
      command = command(app, threads)
      command = ManyProcesses.command(server.name, command, app, @port, processes) if processes
      Http2.nginx(@folder) if http2 && server.name == "nginx"
      environment = workers ? server.environment.merge("WEB_CONCURRENCY" => workers.to_s) : server.environment
      @pid = spawn(environment, *wrapper, *command, chdir: @folder, pgroup: true,
                                                    in: File::NULL, %i[out err] => @log)
      wait_until_it_answers
    end

    # @return [Boolean] whether its port takes TLS
    def secure?
      !@tls.nil? && server.title != Servers::PLAIN
    end

    # @return [Boolean]
    def alive?
      return false unless @pid

      Process.wait(@pid, Process::WNOHANG).nil? || (@pid = nil)
    rescue Errno::ECHILD
      @pid = nil
    end

    # Waits until it has finished the work of the last client: its neighbours have the same CPU.
    def settle
      deadline = now + SETTLE_SECONDS
      loop do
        before = cpu_us
        sleep 0.03
        break if cpu_us - before < 1000 || now > deadline
      end
    end

    # @yield while its memory is watched
    # @return [Integer] the most bytes that were resident meanwhile
    def peak_bytes(&block)
      Processes.peak_bytes(@pid, &block)
    end

    # Stops it until {#resume}: its background threads must not disturb its neighbours.
    def pause
      signal(:STOP)
    end

    # Lets it continue.
    def resume
      signal(:CONT)
    end

    # Ends it and all processes that it started.
    def stop
      resume
      signal(:TERM)
      deadline = now + 3
      sleep 0.02 while alive? && now < deadline
    ensure
      signal(:KILL)
      alive? && Process.wait(@pid)
      FileUtils.remove_entry(@folder, true)
    end

    # @return [String] the last lines it printed
    def last_words
      File.exist?(@log) ? File.readlines(@log).last(5).join.strip : ""
    end

    private

    def command(app, threads)
      return server.command.call(@port, app, @folder, threads) unless @tls

      server.secure.call(@port, app, @folder, threads, Pair.new(@tls, File.join(BUILD, "certificates")))
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # The group lives longer than its first process if that one died alone, so both are tried.
    def signal(name)
      @group ||= @pid
      Process.kill(name, -@group) if @group
    rescue Errno::ESRCH
      nil
    end

    # Two consecutive ports: up_ruby takes the second one for its own purposes.
    def free_port
      (20_000..29_998).step(2).to_a.shuffle.find do |port|
        [port, port + 1].each { |each| TCPServer.new("127.0.0.1", each).close }
      rescue Errno::EADDRINUSE
        false
      end
    end

    def wait_until_it_answers
      @group = @pid
      deadline = now + BOOT_SECONDS
      until answers?
        ended = !alive?
        next sleep(0.05) unless ended || now > deadline

        words = last_words
        stop
        raise BootError, "#{server.name} did not start#{" (it ended)" if ended}: #{words}"
      end
    end

    def answers?
      return Http2.answers?(@port, tls: secure?) if @http2

      Socket.tcp("127.0.0.1", @port, connect_timeout: 1) do |socket|
        wire = secure? ? OpenSSL::SSL::SSLSocket.new(socket).tap(&:connect) : socket
        wire.write("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        socket.wait_readable(5) && wire.readpartial(64).start_with?("HTTP/1.1 200")
      end
    rescue SystemCallError, EOFError, OpenSSL::SSL::SSLError
      false
    end
  end
end
