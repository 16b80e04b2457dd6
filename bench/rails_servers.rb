# frozen_string_literal: true

# Servers of bench/apps/rails.ru: Rondo, Rondo with Rails' own Action Cable, and Puma, alone or behind AnyCable, if the
# gems are there.
# SPDX-License-Identifier: MIT

require "socket"
require_relative "peers"
require_relative "processes"
require_relative "servers"

module Bench
  # One running server of the Rails application.
  class RailsServer
    include Measured

    NAMES = { "rondo" => "Rondo", "stock" => "Rondo, Rails' own way", "puma" => "Puma",
              "anycable" => "Puma behind AnyCable" }.freeze
    APP = File.join(__dir__, "apps", "rails.ru")
    THREADS = 3
    # Puma, and AnyCable's part of Rails, from the gems of the benchmarks, everything else from those of the machine.
    PUMA = <<~RUBY.freeze
      Gem.paths = { "GEM_PATH" => [*Gem.path, #{Peers::HOME.dump}].join(":") }
      load Gem.bin_path("puma", "puma")
    RUBY
    START_SECONDS = 60

    # @param name [String] of {NAMES}
    # @param threads [Integer]
    # @yieldparam server [RailsServer]
    def self.run(name, threads: THREADS)
      server = new(name, threads)
      yield server
    ensure
      server&.stop
    end

    attr_reader :pid, :port

    # @return [String, nil] its version; nil: it is not installed
    def self.version(name)
      return unless Gem::Specification.any? { |gem| gem.name == "actioncable" }
      return Peers.version("puma") if name == "puma"
      return Peers.version("puma") && anycable_version if name == "anycable"

      File.read(File.join(ROOT, "lib/rondo/version.rb"))[/"(.*)"/, 1]
    end

    # @return [String, nil] a program: AnyCable, which starts the application's server
    def self.anycable
      Dir[File.join(Peers::HOME, "gems/anycable-thruster-*/exe/*/thrust")].first
    end

    # @return [String, nil] of what is inside that program
    def self.anycable_version
      path = anycable or return
      File.binread(path)[/anycable-go@v(\d+\.\d+\.\d+)/, 1]
    end

    def initialize(name, threads)
      @port, @app_port, @broadcast_port = free_ports(3)
      @app_port = @port unless name == "anycable"
      env = { "RAILS_ENV" => "production", "RONDO_STOCK" => name == "stock" ? "1" : nil, "BUNDLE_GEMFILE" => nil,
              "RUBYOPT" => nil, "RUBYLIB" => nil, "WEB_CONCURRENCY" => nil }
      env.merge!(environment_of_anycable) if name == "anycable"
      @pid = spawn(env, "taskset", "-c", SERVER_CPU.to_s, *command(name, threads),
                   chdir: __dir__, out: File::NULL, err: File::NULL, pgroup: true)
      [@app_port, @port].uniq.each { |port| wait(port) }
    rescue StandardError
      stop
      raise
    end

    # @return [Integer]
    def threads
      Processes.tree(@pid).sum { |pid| Dir.children("/proc/#{pid}/task").size }
    end

    # @return [void]
    def stop
      Process.kill("KILL", -@pid) && Process.wait(@pid) if @pid
    end

    private

    def free_ports(count)
      sockets = Array.new(count) { TCPServer.new("127.0.0.1", 0) }
      sockets.map { |socket| socket.local_address.ip_port }
    ensure
      sockets.each(&:close)
    end

    # Calls and broadcasts by HTTP, which needs no other server.
    def environment_of_anycable
      { "HTTP_PORT" => @port.to_s, "TARGET_PORT" => @app_port.to_s, "ANYCABLE_DISABLE_TELEMETRY" => "true",
        "ANYCABLE_SECRET" => "benchmark", "ANYCABLE_HTTP_RPC" => "true", "ANYCABLE_BROADCAST_ADAPTER" => "http",
        "ANYCABLE_RPC_HOST" => "http://127.0.0.1:#{@app_port}/_anycable",
        "ANYCABLE_HTTP_BROADCAST_PORT" => @broadcast_port.to_s,
        "ANYCABLE_HTTP_BROADCAST_URL" => "http://127.0.0.1:#{@broadcast_port}/_broadcast" }
    end

    def command(name, threads)
      bind = "tcp://127.0.0.1:#{@app_port}"
      options = ["-C", "-", "-w", "0", "-t", "#{threads}:#{threads}", "-b", bind, APP]
      puma = [Gem.ruby, "-e", PUMA, "--", *options]
      case name
      when "puma" then puma
      when "anycable" then [RailsServer.anycable, *puma]
      else [Gem.ruby, "-I", File.join(ROOT, "lib"), File.join(ROOT, "exe/rondo"), *options]
      end
    end

    def wait(port)
      limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + START_SECONDS
      begin
        TCPSocket.new("127.0.0.1", port).close
      rescue Errno::ECONNREFUSED
        if Process.wait(@pid, Process::WNOHANG)
          @pid = nil
          raise "#{APP} does not start"
        end
        raise "#{APP} takes too long" if Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

        sleep 0.05
        retry
      end
    end
  end
end
