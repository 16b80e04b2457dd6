# frozen_string_literal: true

# The signals of a single process, as Puma has them; of a program that calls Rondo, those that end it.
# A trap handler only queues; a thread of this class does the work, because logging and file work are
# not allowed inside a handler.
# SPDX-License-Identifier: MIT

module Rondo
  # Installs and answers signals.
  # @api private
  class Signals
    NAMES = %w[INT TERM QUIT HUP USR1 USR2 TTIN TTOU INFO PWR].freeze
    # In place of a signal: the notice that the launcher has given is over.
    NOTICE_OVER = :notice_over

    # @param launcher [Launcher, Handler::Run]
    # @param raise_on_term [Boolean] end with SIGTERM's own status after TERM
    def initialize(launcher, raise_on_term: true)
      @launcher = launcher
      @raise_on_term = raise_on_term
      @queue = Thread::Queue.new
      @before = {}
      @term = false
    end

    # @return [void]
    def install
      start
      (NAMES & Signal.list.keys).each do |name|
        next if name == "USR2" && ENV["PUMA_SKIP_SIGUSR2"]

        @before[name] = trap(name) { @queue << name }
      rescue ArgumentError
        next # this Ruby keeps it for itself
      end
    end

    # Installs handlers for those signals that have none in this program.
    # @param names [Array<String>]
    # @return [void]
    def install_free(names)
      start
      names.each do |name|
        before = trap(name) { @queue << name }
        before == "DEFAULT" ? @before[name] = before : trap(name, before)
      end
    end

    # As if the signal had come; also in a trap.
    # @param name [String]
    # @return [void]
    def dispatch(name)
      @queue << name
    end

    # @param except [Array<String>] those that go on being taken
    # @return [void]
    def restore(except: [])
      @before.except(*except).each { |name, handler| trap(name, handler || "DEFAULT") }
      @before.clear
      @queue << nil
    end

    # @return [Boolean] whether TERM ended the server
    def term?
      @term && @raise_on_term
    end

    # Ends the process the way TERM would have.
    # @return [void]
    def raise_term
      raise SignalException, "SIGTERM"
    end

    private

    def start
      @thread = Thread.new { work }
    end

    def work
      while (name = @queue.pop)
        begin
          handle(name)
        rescue StandardError => e
          @launcher.log.error "#{name}: #{e.message}"
        end
      end
    end

    def handle(name)
      case name
      when "INT", "QUIT" then stop
      when "TERM"
        @term = true
        stop
      when "HUP" then @launcher.hang_up || stop
      when NOTICE_OVER then end_serving unless @launcher.serving.stopping?
      when "USR2" then @launcher.restart
      when "USR1"
        @launcher.reload_certificates
        say "USR1: a phased restart needs workers; USR2 restarts this process"
      when "TTIN", "TTOU" then say "#{name}: there are no workers; start the server with -w"
      else @launcher.log.error @launcher.thread_backtraces
      end
    end

    def stop
      end_serving unless @launcher.give_notice { dispatch(NOTICE_OVER) }
    end

    def end_serving
      say @asked ? "- Stopping at once" : "- Gracefully stopping, waiting for requests to finish"
      @launcher.serving.say_what_is_left unless @asked
      Inherited.notify("STOPPING=1")
      @asked = true
      @launcher.stop
    end

    def say(line)
      @launcher.log.say line
    end
  end
end
