# frozen_string_literal: true

# What every process of a server does first: its folder, where its output goes, the variables that
# applications ask for, its name in the process list. Called by the launcher, the master and the
# mold.
# SPDX-License-Identifier: MIT

require "rondo"
require "rondo/boot/application"
require "rondo/boot/process_files"
require "rondo/boot/write_trial"
require "rondo/config/binds"
require "rondo/config/fiber_count"

module Rondo
  # Prepares this process as the settings say.
  # @api private
  class ProcessSetup
    # For the process that fetches certificates alone (certificates/domains.rb).
    SECRET = "RONDO_TLS_EAB_KEY"
    # Seconds: a shell sends HUP to its programs (bash does with huponexit), and ends then.
    LEAVING = 5
    OUTPUTS = { redirect_stdout: "stdout", redirect_stderr: "stderr" }.freeze

    # @param settings [Settings::Resolved]
    def initialize(settings)
      @settings = settings
      @had_terminal = terminal?
    end

    # A terminal that is closed says so by HUP, like somebody who has new certificates. A shell says it a moment before.
    # @param reloads [Boolean] whether there are certificates
    # @yield on another thread: the terminal is gone after all
    # @return [Boolean] whether the server keeps serving, at least until the block is called
    def outlives_hang_up?(reloads, &stop)
      return false if !reloads || terminal_gone?

      Thread.new { stop.call if goes_soon? } if @had_terminal
      true
    end

    # @return [void]
    # @raise [ConfigurationError] one line
    def go_to_directory
      directory = @settings[:directory] or return
      Dir.chdir(directory)
    rescue SystemCallError
      raise ConfigurationError, "cannot go to the directory #{directory}"
    end

    # What keeps a server from starting, as far as it can be known before anything is said or loaded.
    # @return [void]
    # @raise [Error] one line
    def look_ahead
      Binds.check(@settings)
      unless [*@settings[:tls_domain]].empty?
        require "rondo/certificates/domains"
        Certificates::Domains.from(@settings).check_files
      end
      FiberCount.of(@settings).check
      Application.check(@settings)
      ProcessFiles.new(@settings[:pidfile], @settings[:state_path], Logger.new(silent: true)).try
    end

    # @param again [Boolean] the files were open before: nothing in them is lost
    # @return [Boolean] whether anything goes to a file
    # @raise [ConfigurationError] one line
    def redirect(again: false)
      OUTPUTS.map { |name, output| redirect_one(name, output, again) }.any?
    end

    # For `rondo check`: whether {#redirect} would do.
    # @return [Array<String>] the paths
    # @raise [ConfigurationError] one line
    def try_redirect
      OUTPUTS.keys.filter_map { |name| @settings[name] }.map { |path| WriteTrial.call(path) }
    end

    # The variables before {#export_environment}: a restart reads them again and must not find what we wrote.
    # @return [Hash{String => String, nil}]
    attr_reader :environment_before

    # @return [void]
    def export_environment
      name = @settings[:environment].to_s
      @environment_before = ["RACK_ENV", "RAILS_ENV", SECRET].to_h { |variable| [variable, ENV.fetch(variable, nil)] }
      ENV.delete(SECRET)
      ENV["RACK_ENV"] = name
      ENV["RAILS_ENV"] ||= name
      Signed.secrets = @settings[:signing_secret] if @settings.given?(:signing_secret)
    end

    # Port 80 and the renewal of certificates that are fetched; see {Certificates::Keeping}.
    # @param inherited [Inherited]
    # @param log [Logger]
    # @yield on the thread that renews, when there are new certificates
    # @return [Certificates::Keeping, nil]
    # @raise [Error] one line
    def keep_certificates(inherited, log, &on_new)
      return if [*@settings[:tls_domain]].empty?

      require "rondo/certificates/keeping"
      Certificates::Keeping.open(@settings, inherited, log, secrets: @environment_before.slice(SECRET), &on_new)
    end

    # @param what [String] "rondo 1.2.3" or "rondo: cluster worker 0: 4711"
    # @param urls [Array<String>] where it listens; the title has them as Puma's has
    # @return [void]
    def name_process(what, urls = [])
      addresses = urls.uniq.map { |url| Address.uri_of(url) }.join(",")
      parts = { "(#{addresses})" => addresses, "[#{tag}]" => tag }.reject { |_, text| text.empty? }.keys
      $PROGRAM_NAME = [what, *parts].join(" ")
    end

    # @param rows [Integer]
    # @return [Scoreboard]
    # @raise [Error] one line: there is no memory, or no room in the file system that stands for it
    def self.make_scoreboard(rows)
      Scoreboard.new(rows)
    rescue SystemCallError => e
      raise Error, "cannot make the memory that processes share: #{SystemCallError.new(nil, e.errno).message}"
    end

    # In a handler: what the signal does where there is none.
    # @param signal [String]
    # @return [void]
    def self.end_by(signal)
      trap(signal, "DEFAULT")
      Process.kill(signal, Process.pid)
    end

    # For the log: where every Ruby thread is.
    # @param title [String] its first line
    # @return [String]
    def self.thread_backtraces(title = "Threads (PID: #{Process.pid}):")
      threads = Thread.list.map { |thread| ["Thread #{thread.inspect}", *thread.backtrace].join("\n        ") }
      [title, *threads].join("\n    ")
    end

    private

    def goes_soon?
      limit = clock + LEAVING
      sleep 0.05 until terminal_gone? || clock > limit
      terminal_gone?
    end

    def clock
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # @return [Boolean] whether there was a terminal when this process began, and there is none now
    def terminal_gone?
      @had_terminal && !terminal?
    end

    def terminal?
      File.open("/dev/tty") { true }
    rescue SystemCallError
      false
    end

    # The tag of the settings, or the name of the application's folder; "" for none.
    def tag
      @tag ||= (@settings.given?(:tag) ? @settings[:tag] : File.basename(Dir.pwd).delete("/")).to_s
    end

    # Always at the end of the file, because the processes of a cluster write to the same one.
    def redirect_one(name, output, again)
      path = @settings[name] or return
      io = output == "stdout" ? $stdout : $stderr
      # Opened before it replaces the old output, because an error is reported there.
      File.open(path, "a") do |file|
        file.truncate(0) unless again || @settings[:redirect_append]
        # Before reopen, which takes it over: a line written meanwhile would wait in the buffer.
        file.sync = true
        io.reopen(file)
      end
    rescue SystemCallError => e
      raise ConfigurationError, "cannot write #{path}: #{SystemCallError.new(nil, e.errno).message}"
    end
  end
end
