# frozen_string_literal: true

# The pid file and the state file. A pid file of a process that lives is refused; one of a process
# that died is replaced with a line in the log.
# SPDX-License-Identifier: MIT

require "fileutils"
require "rondo/boot/write_trial"

module Rondo
  # Files that tell other programs about this process.
  # @api private
  class ProcessFiles
    # @param pidfile [String, nil]
    # @param state_path [String, nil]
    # @param log [#say]
    # @param permission [Integer, nil] of the state file; nil: of its owner alone if it has a token
    def initialize(pidfile, state_path, log, permission: nil)
      @pidfile = pidfile && File.expand_path(pidfile)
      @state_path = state_path && File.expand_path(state_path)
      @log = log
      @permission = permission
      @pid = Process.pid
    end

    # @raise [ConfigurationError] another server runs with this pid file
    # @return [void]
    def claim
      return unless @pidfile && File.exist?(@pidfile)

      pid = File.read(@pidfile).to_i
      return if pid == @pid # the program that began this server has written it, or it is from before a restart
      if alive?(pid)
        raise ConfigurationError, "a server is already running: #{@pidfile} names process #{pid}"
      end

      @log.say "! Replaced #{@pidfile}, which process #{pid} left behind"
    rescue SystemCallError => e
      raise ConfigurationError, "cannot read #{@pidfile}: #{SystemCallError.new(nil, e.errno).message}"
    end

    # For `rondo check`: whether {#claim} and {#write} would do.
    # @return [Array<String>] the paths
    # @raise [ConfigurationError] one line
    def try
      claim
      [@pidfile, @state_path].compact.map { |path| WriteTrial.call(path, folders: true) }
    end

    # @param addresses [Array<String>]
    # @param control [Control, nil] whose address and token go into the state file, as Puma has them
    # @return [void]
    def write(addresses, control = nil)
      @written = true
      put(@pidfile, "#{@pid}\n") if @pidfile
      put(@state_path, state(addresses, control), mode: @permission || (control&.token && 0o600)) if @state_path
    end

    # Writes the pid file again that somebody has removed: a child may have the `at_exit` of the program that began this
    # server.
    # @return [void]
    def restore
      put(@pidfile, "#{@pid}\n") if @written && @pidfile && !File.exist?(@pidfile)
    end

    # @return [void]
    def remove
      return unless Process.pid == @pid # a fork of the application is not the server

      remove_own(@pidfile) { |text| text.to_i == @pid }
      remove_own(@state_path) { |text| text.include?("pid: #{@pid}\n") }
    end

    private

    def alive?(pid)
      return false unless pid.positive?

      Process.kill(0, pid)
      true
    rescue Errno::ESRCH
      false
    rescue Errno::EPERM
      true
    end

    def state(addresses, control)
      list = addresses.map { |url| "  - #{url}\n" }.join
      "---\npid: #{@pid}\nversion: #{VERSION}\n#{control_lines(control)}" \
        "running_from: #{Dir.pwd}\naddresses:\n#{list}"
    end

    def control_lines(control)
      return "" unless control

      token = control.token && "control_auth_token: #{quoted(control.token)}\n"
      "control_url: #{control.url}\n#{token}"
    end

    # As YAML and Puma's own reader of the file both understand it.
    def quoted(text)
      text.match?(/\A[A-Za-z][A-Za-z0-9_-]*\z/) ? text : "\"#{text}\""
    end

    # A file with a secret is readable by its owner only, from its first byte on.
    def put(path, text, mode: nil)
      FileUtils.mkdir_p(File.dirname(path))
      return File.write(path, text) unless mode

      File.open(path, File::WRONLY | File::CREAT | File::TRUNC, mode) do |file|
        file.chmod(mode)
        file.write(text)
      end
    rescue SystemCallError => e
      raise ConfigurationError, "cannot write #{path}: #{SystemCallError.new(nil, e.errno).message}"
    end

    def remove_own(path)
      File.delete(path) if path && File.exist?(path) && yield(File.read(path))
    rescue SystemCallError
      nil
    end
  end
end
