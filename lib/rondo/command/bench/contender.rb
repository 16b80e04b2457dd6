# frozen_string_literal: true

# A server that `rondo bench` starts: a process group of its own on a port of its own. It ends by process
# id, whatever happens, and with this process if that is killed.
# SPDX-License-Identifier: MIT

require "fileutils"
require "tmpdir"
require "rondo/command/bench/processes"
require "rondo/command/bench/servers"
require "rondo/command/bench/stats"
require "rondo/command/bench/target"

module Rondo
  class Bench
    # Starts, answers where it is, stops.
    class Contender
      # Seconds: until a server answers, and until it has ended by itself.
      BOOT = 120
      END_PATIENCE = 10

      # @param options [Options]
      # @return [Array<Contender>] Rondo first
      # @raise [Refused] a server is not installed
      def self.all(options)
        ["rondo", *options.against].map { |name| new(name, options) }
      end

      # Ends the processes of all of them.
      # @param contenders [Array<Contender, Running>]
      # @return [void]
      def self.stop(contenders)
        contenders.each(&:ask_to_end)
        contenders.each(&:stop)
      end

      # @return [String]
      attr_reader :name, :title, :version
      # @return [Target, nil] while it runs
      attr_reader :target
      # @return [Integer, nil]
      attr_reader :pid
      # @return [Array<Hash>] figures of each round
      attr_reader :rounds
      # @return [Array<String>]
      attr_reader :notes
      # @return [Target::Answer, nil] to the first path
      attr_accessor :answer

      def initialize(name, options)
        @name = name
        @options = options
        @rounds = []
        @known = Servers::OTHERS[name]
        @title = @known ? @known.title : "Rondo"
        @version = @known ? Servers.version(name) : VERSION
        @notes = [*@known&.note]
        raise Refused, "#{name} is not there: add it to the bundle, or gem install #{name}" unless @version
      end

      # @return [Boolean]
      def rondo?
        @known.nil?
      end

      # @return [self]
      # @raise [Refused] it does not start
      def start
        @folder = Dir.mktmpdir("rondo-bench")
        port = TCPServer.open("127.0.0.1", 0) { |socket| socket.addr[1] }
        place = Servers::Place.new(port: port, folder: @folder, options: @options)
        @target = Target.new("127.0.0.1", port)
        @pid = launch(rondo? ? Servers.rondo_command(place) : Servers.command(name, place))
        wait_until_it_listens
        self
      end

      # @return [Array<Integer>] all its processes
      def pids
        Processes.tree(@pid)
      end

      # @return [Stats, nil] of Rondo's control server now
      def stats
        Stats.read(Servers.control_url(@folder)) if rondo?
      end

      # @raise [Refused] it has died
      def check
        return if alive?

        raise Refused, "#{title} has ended: #{last_words}"
      end

      # @return [void]
      def ask_to_end
        return unless @pid && alive?

        @family = pids
        Process.kill(:TERM, @pid)
      end

      # @return [void]
      def stop
        end_processes if @pid
        FileUtils.rm_rf(@folder) if @folder
        @pid = @folder = nil
      end

      private

      # PDEATHSIG: a bench that is killed leaves no server behind.
      def launch(command)
        pid = fork do
          Process.setpgid(0, 0)
          %w[INT TERM HUP].each { |name| Signal.trap(name, "DEFAULT") }
          ProcessTree.set_parent_death_signal(Signal.list["TERM"])
          exec(environment, *command, in: File::NULL, %i[out err] => log)
        ensure
          exit!(127) # this is reached when there is nothing to execute; the rest is the parent's
        end
        Process.setpgid(pid, pid) rescue nil # it may have done so, and may have begun its program
        pid
      end

      def environment
        { "RACK_ENV" => @options.environment, "RAILS_ENV" => @options.environment, "APP_ENV" => @options.environment,
          "RAILS_MAX_THREADS" => @options.threads.to_s, "WEB_CONCURRENCY" => nil, "PORT" => nil,
          "NOTIFY_SOCKET" => nil, "RAILS_LOG_TO_STDOUT" => nil }
      end

      def log
        File.join(@folder, "log")
      end

      def wait_until_it_listens
        over = ProcessLoop.now + BOOT
        begin
          check
          Socket.tcp(@target.host, @target.port, connect_timeout: 1).close
        rescue SystemCallError
          raise Refused, "#{title} does not listen after #{BOOT} s: #{last_words}" if ProcessLoop.now > over

          sleep 0.05
          retry
        end
      end

      def alive?
        return false if @ended

        @ended = !Process.wait(@pid, Process::WNOHANG).nil?
        !@ended
      end

      # What it has told last, in one line.
      def last_words
        text = File.size?(log) ? File.read(log, 4000, [File.size(log) - 4000, 0].max).to_s.scrub("?") : ""
        lines = text.lines.map(&:strip).reject(&:empty?)
        telling = lines.grep(/error|exception|refused|missing|cannot/i).first || lines.last
        telling ? "#{telling[0, 300]} (-e #{@options.environment})" : "it said nothing"
      end

      def end_processes
        over = ProcessLoop.now + END_PATIENCE
        sleep 0.02 while alive? && ProcessLoop.now < over
        kill_rest
        Process.wait(@pid) unless @ended
        @ended = true
      rescue Errno::ECHILD
        @ended = true
      end

      # Members of its group only: a number may be another process by now.
      def kill_rest
        [@pid, *@family].uniq.each do |pid|
          next if pid == @pid && @ended

          Process.kill(:KILL, pid) if Process.getpgid(pid) == @pid
        rescue Errno::ESRCH
          next
        end
      end
    end
  end
end
