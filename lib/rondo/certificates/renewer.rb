# frozen_string_literal: true

# Keeps the certificates of a server fresh: a thread of the process that has the listening sockets looks when one is
# due, and starts a process that fetches it (`main` below, renewal.rb). The server itself never talks to an ACME
# server, never holds an account key, and has none of the client's gems in its memory.
# SPDX-License-Identifier: MIT

require "json"
require "open3"
require "rbconfig"
require "rondo/certificates/renewal"
require "rondo/logger"

module Rondo
  module Certificates
    # The thread, and the process it starts.
    class Renewer
      # Seconds between two looks, also because somebody else may renew by hand.
      LOOK = 60
      # After a round that changed nothing: another server is at it, or the process could not run, or write. Each such
      # round in a row doubles it.
      AGAIN = 15
      LONGEST_REST = 3600
      # Of a line that has no end.
      LONGEST_LINE = 65_536
      # Seconds that a round may take.
      ROUND = 1800
      PROGRAM = 'require "rondo/certificates/renewer"; Rondo::Certificates::Renewer.main'
      TRIAL = 'require "rondo/certificates/renewer"; Rondo::Certificates::Renewer.try_gem'

      # What the process does: reads the names from standard input, whose end says that the server is gone.
      # @return [void]
      def self.main(input: $stdin, out: $stdout)
        $PROGRAM_NAME = "rondo: certificates"
        out.sync = true
        trap("INT", "IGNORE") # Ctrl-C is for the server
        trap("TERM") { exit }
        domains = Domains.new(**JSON.parse(input.gets, symbolize_names: true))
        Thread.new { end_after(input) }
        Renewal.new(domains, ->(line, good) { out.puts "#{good ? "-" : "!"} #{line}" }).run
      rescue Error => e
        out.puts "! #{e.message}"
      rescue Errno::EPIPE
        nil
      end

      # For `rondo check`: whether the process will find what it needs.
      # @return [void]
      # @raise [Failed] half a line
      def self.try
        said, status = Open3.capture2e(*command(TRIAL))
        raise Failed, Logger.escape(said.lines.first.to_s.chomp) unless status.success?
      end

      # What that process does.
      # @return [void]
      def self.try_gem
        Order.load_gem
      rescue Failed => e
        abort e.message
      end

      # @param program [String]
      # @return [Array<String>] a Ruby with this code
      def self.command(program)
        folders = $LOAD_PATH.map(&:to_s).select do |path|
          %w[rondo.rb rondo/rondo.so].any? { |file| File.exist?(File.join(path, file)) }
        end
        [RbConfig.ruby, *folders.flat_map { |path| ["-I", path] }, "-e", program]
      end

      # At once and without a trace if the round takes too long; else the token is removed before.
      def self.end_after(input)
        input.wait_readable(ROUND) ? Process.kill("TERM", Process.pid) : exit!(1)
      end
      private_class_method :end_after

      # @param domains [Domains]
      # @param log [Logger]
      # @param secrets [Hash{String => String}] variables for the process
      # @param on_new [#call] called on the thread when there are other certificates than before
      # @param look [Numeric] seconds between two looks
      # @param again [Numeric] seconds after a round that changed nothing
      def initialize(domains, log, secrets: {}, on_new: -> {}, look: LOOK, again: AGAIN)
        @domains = domains
        @log = log
        @secrets = secrets
        @on_new = on_new
        @store = Store.new(domains.storage)
        @shown = signature
        @look = look
        @again = again
        @in_vain = 0
        @rest_until = clock
        @stop, @stopper = IO.pipe
      end

      # @return [void]
      def start
        @thread = Thread.new { watch }
        @thread.name = "rondo certificates"
      end

      # Also ends the process, and waits a moment for it.
      # @return [void]
      def stop
        return if @stopper.closed?

        @stopper.close
        @thread&.join(2)
      end

      private

      # What becomes of an error here is a line, and another look: certificates do not end a server.
      def watch
        until @stopped
          pause = step
          @stopped ||= @stop.wait_readable(pause)
        end
      end

      def step
        seconds = [seconds_left, @rest_until - clock].max
        return [seconds, @look].min if seconds.positive?

        renew
        show_new
        rest
        [@again, @look].min
      rescue StandardError => e
        @log.error "! Certificates: #{Logger.escape(e.message)} (#{e.class})"
        @look
      end

      # A disk that is full says nothing of a delay that could be read afterwards.
      def rest
        @in_vain = seconds_left.positive? ? 0 : @in_vain + 1
        @rest_until = clock + [@again * (2**[@in_vain - 1, 16].min), LONGEST_REST].min if @in_vain.positive?
      end

      def clock
        Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end

      def seconds_left
        show_new
        @domains.names.map { |name| @store.state(name).due_at }.min - Time.now
      end

      def show_new
        now = signature
        return if now == @shown

        @shown = now
        @on_new.call
      end

      def signature
        @domains.names.map do |name|
          stat = File.stat(@store.path(name))
          [stat.ino, stat.mtime, stat.size]
        rescue SystemCallError
          nil
        end
      end

      # ---- the process ----

      def renew
        input, own_end = IO.pipe
        lines, output = IO.pipe
        pid = Process.spawn(@secrets, *command, in: input, out: output, err: output)
        [input, output].each(&:close)
        tell(own_end)
        read(lines)
      ensure
        # The end of its input ends it, unless it waits for somebody who reads its lines.
        [input, own_end, lines, output].each { |io| io&.close }
        wait_for(pid) if pid
      end

      # If it has ended already, its lines say why.
      def tell(own_end)
        own_end.puts JSON.generate(@domains.to_h)
      rescue Errno::EPIPE
        nil
      end

      def command
        Renewer.command(PROGRAM)
      end

      def read(lines)
        buffer = +""
        until (@stopped = IO.select([lines, @stop]).first.include?(@stop))
          buffer << lines.readpartial(4096)
          while (line = buffer.slice!(/\A.*\n/))
            say(line.chomp)
          end
          say(buffer.slice!(0..)) if buffer.bytesize > LONGEST_LINE
        end
      rescue EOFError
        say(buffer) unless buffer.empty?
      end

      # What is no line of ours is an error of Ruby.
      def say(line)
        line = line.dup.force_encoding(Encoding::UTF_8).scrub("?")
        text = Logger.escape(line.sub(/\A[-!] /, ""))
        line.start_with?("- ") ? @log.say("- Certificates: #{text}") : @log.error("! Certificates: #{text}")
      end

      # In a cluster the master may have reaped it.
      def wait_for(pid)
        Process.wait(pid)
      rescue Errno::ECHILD
        nil
      end
    end
  end
end
