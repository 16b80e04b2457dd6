# frozen_string_literal: true

# A server that a program begins with Rondo.start. Without workers it runs in this process (launcher.rb). With workers
# this process becomes the master (cluster.rb), and the first mold is forked from it, because the application is loaded
# already. Every later mold is the program executed anew: Rondo.start becomes the mold there. A restart by USR2
# replaces this process by a master without the application (program_master.rb), once the new mold is ready.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot/first_process"
require "rondo/boot/inherited"
require "rondo/config/configuration"
require "rondo/config/settings"
require "rondo/config/worker_count"

module Rondo
  # From the arguments of {Rondo.start} to a running server.
  # @api private
  class Program
    # The number of a sealed file with what the next master has to know.
    VARIABLE = "RONDO_PROGRAM"
    SOURCE = "Rondo.start"
    # They run in the master, which a restart by USR2 replaces by one that has not loaded the program.
    HOOKS_OF_THE_MASTER = %i[before_drain after_drain after_worker_exit].freeze
    PLAIN = [Symbol, Integer, Float, TrueClass, FalseClass, NilClass].freeze

    # Settings that say what the server serves besides the listeners with an application of their own.
    ALONE = %i[app rackup public bind port].freeze

    @lock = Mutex.new

    class << self
      # As {Rondo.start}.
      # @return [true]
      def run(app, settings, &verbs)
        begin_with { called(app, settings, &verbs) }
      end

      # @yieldreturn [Program]
      # @return [true] when the server has stopped
      # @raise [Error] one line
      def begin_with(&make)
        alone do
          ProcessTree.limit_arenas
          link = mold_link
          exit(as_mold(link, &make)) if link

          FirstProcess.stand_apart if FirstProcess.needed?
          make.call.serve
          true
        end
      end

      # @param link [Mold::Link] to the master, which gets the reason of a failure
      # @yieldreturn [Program]
      # @return [Integer] exit code
      def as_mold(link)
        yield.work_as_mold(link)
      rescue Error => e
        link.socket.notify(:failed, message: e.message.lines.map(&:chomp).join(" "))
        1
      end

      # The master without the program, after a restart.
      # @return [Integer] exit code
      # @raise [Error] one line
      def continue
        file = IO.for_fd(Integer(ENV.delete(VARIABLE), 10))
        command, bytes = Marshal.load(file.pread(file.stat.size, 0)) # rubocop:disable Security/MarshalLoad -- of ours
        file.close
        settings = Settings::Resolved.new(read(bytes))
        Master.new(settings, Configuration.new, command, bytes).run
      end

      # The master opens listeners, and has neither their applications nor what makes their handlers.
      # @param settings [Hash{Symbol => Array(Object, String)}]
      # @return [Array(String, Array<Symbol>)] bytes that {read} takes, and the names of what it cannot have
      def write(settings)
        places = settings.slice(*Configuration::PLACES)
        settings = settings.merge(places.transform_values { |all, source| [all.transform_values { true }, source] })
        kept = settings.transform_values { |pair| catch(:left) { plain(pair) } }.compact
        [Marshal.dump(kept), settings.keys - kept.keys]
      end

      # @param bytes [String] of {write}
      # @return [Hash{Symbol => Array(Object, String)}]
      # @raise [Error] another version wrote it, or it is damaged
      def read(bytes)
        Marshal.load(bytes) # rubocop:disable Security/MarshalLoad -- from a mold of ours
      rescue ArgumentError, TypeError
        raise Error, "the settings of the program cannot be read"
      end

      private

      # @param app [#call, nil] nil: the rackup file is loaded
      # @param settings [Hash{Symbol => Object}] verbs of the configuration file, with their values
      # @yield further verbs
      # @raise [ConfigurationError] one line with the place in the program
      def called(app, settings, &verbs)
        configuration = Configuration.new
        configuration.begin_with(SOURCE, settings, &verbs)
        configuration.set(:app, app) if app
        choose_first(configuration) unless ALONE.any? { |name| configuration.values.key?(name) }
        new(configuration) do
          Settings::Resolved.new({ Settings::APART => [true, SOURCE] }, configuration.values, Settings.from_environment)
        end
      end

      # Without an application of the server, the first one is that.
      def choose_first(configuration)
        listeners, = configuration.values[:listen]
        uri, app = listeners&.first
        return unless uri

        configuration.set(:bind, [uri])
        configuration.set(app.respond_to?(:call) ? :app : :rackup, app)
        configuration.set(:listen, listeners.drop(1).to_h)
      end

      # @yield while this process serves
      # @raise [Error] it does already
      def alone
        @lock.synchronize do
          raise Error, "a server runs in this process already" if Rondo.taken

          Rondo.taken = true
        end
        begin
          yield
        ensure
          Rondo.taken = false
        end
      end

      # @return [Mold::Link, nil]
      def mold_link
        return unless ENV.key?("RONDO_MOLD")

        require "rondo/cluster/mold"
        Inherited.mold? ? Mold.extract : ENV.delete("RONDO_MOLD") && nil
      end

      # For the next master, which does not know the classes of the program.
      # @raise [UncaughtThrowError] it would have to; the caller catches :left
      def plain(value)
        case value
        when String then String.new(value)
        when Array then value.map { |one| plain(one) }
        when Hash then value.to_h { |key, one| [plain(key), plain(one)] }
        else PLAIN.include?(value.class) ? value : throw(:left)
        end
      end
    end

    # What becomes the master: this process, or after a restart the one that took its place.
    class Master
      # @param settings [Settings::Resolved]
      # @param configuration [Configuration]
      # @param command [Hash] of {Inherited.command}: the program
      # @param bytes [String] of {Program.write}
      def initialize(settings, configuration, command, bytes)
        @settings = settings
        @configuration = configuration
        @command = command
        @bytes = bytes
      end

      # @param first [#call, nil] forks the first mold
      # @param root [Root, nil] as for {Cluster#initialize}
      # @return [Integer] exit code
      def run(first: nil, root: nil)
        require "rondo/cluster"
        Cluster.new(@settings, @configuration, WorkerCount.new(@settings), again: @command, first: first, root: root,
                                                                           successor: method(:successor)).run
      end

      private

      # @param mold [MoldHandle] with the new code, and its settings
      # @return [Hash] the command that continues this server, with its variables and descriptors
      def successor(mold)
        bytes = mold.program || @bytes
        Program.read(bytes) # or the next master could not
        file = IO.for_fd(TLS.seal(Marshal.dump([@command, bytes])))
        file.close_on_exec = false
        lib = File.expand_path("../..", __dir__)
        { words: [RbConfig.ruby, "-I", lib, File.join(__dir__, "program_master.rb")], folder: @command[:folder],
          variables: { VARIABLE => file.fileno.to_s }, keep: [file] }
      rescue Error, SystemCallError => e
        raise Error, "cannot restart: #{e.message}"
      end
    end

    # @param configuration [Configuration]
    # @param command [Hash] of {Inherited.command}, for restarts without workers
    # @param molds [Hash] the same for later molds, where that is another command
    # @yieldreturn [Settings::Resolved] what the configuration has now, and other sources
    def initialize(configuration, command: Inherited.command, molds: command, &resolve)
      @configuration = configuration
      @command = command
      @molds = molds
      @resolve = resolve
    end

    # @return [void] when the server has stopped
    # @raise [Error] what cannot be served, in one line
    def serve
      unless WorkerCount.new(settings).cluster?
        require "rondo/process/launcher"
        return Launcher.new(settings, @configuration, again: @command).run
      end

      bytes, left = Program.write(settings.values)
      warn_of_restarts(left - [:app])
      Master.new(settings, @configuration, @molds, bytes).run(first: -> { fork_mold }, root: Root)
    ensure
      Root.close
    end

    # @param link [Mold::Link]
    # @return [Integer] exit code
    # @raise [Error] one line
    def work_as_mold(link)
      raise Error, "workers is 0 now; stop the server and start it again" unless WorkerCount.new(settings).cluster?

      Root.forget
      Mold.new(link, settings, @configuration, program: Program.write(settings.values).first).run
    end

    private

    def settings
      @settings ||= begin
        @configuration.choose(WorkerCount.new(@resolve.call).cluster?)
        @resolve.call
      end
    end

    def warn_of_restarts(left)
      left += HOOKS_OF_THE_MASTER & @configuration.hooks.keys
      left << "Rondo::Root" if Root.any?
      return if left.empty?

      @configuration.notes << "#{left.join(", ")}: the master stops using this at the first restart by USR2, " \
                              "because the next master does not load the program"
    end

    # ---- the mold ----

    # Called by the master before it has threads.
    # @return [MoldHandle]
    def fork_mold
      require "rondo/cluster/mold"
      master = Process.pid
      MoldHandle.connected(0) do |other, own|
        fork do
          own.close
          close_inherited(master)
          link = Mold::Link.new(socket: other, generation: 0, master: master, protocol: MoldHandle::PROTOCOL,
                                introduced: MoldHandle::INTRODUCED)
          exit Program.as_mold(link) { self }
        end
      end
    end

    # What systemd or a process before handed over belongs to the master.
    def close_inherited(master)
      ENV["LISTEN_PID"] = Process.pid.to_s if ENV["LISTEN_PID"] == master.to_s
      Inherited.extract.close_rest
      TicketKeys.extract
    end
  end
end
