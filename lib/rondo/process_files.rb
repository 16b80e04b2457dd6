# frozen_string_literal: true

# The pid file and the state file. A pid file of a process that lives is refused; one of a process
# that died is replaced with a line in the log.
# SPDX-License-Identifier: MIT

require "fileutils"

module Rondo
  # Files that tell other programs about this process.
  class ProcessFiles
    # @param pidfile [String, nil]
    # @param state_path [String, nil]
    # @param log [#say]
    def initialize(pidfile, state_path, log)
      @pidfile = pidfile && File.expand_path(pidfile)
      @state_path = state_path && File.expand_path(state_path)
      @log = log
      @pid = Process.pid
    end

    # @raise [ConfigurationError] another server runs with this pid file
    # @return [void]
    def claim
      return unless @pidfile && File.exist?(@pidfile)

      pid = File.read(@pidfile).to_i
      if pid != @pid && alive?(pid)
        raise ConfigurationError, "a server is running already: #{@pidfile} names process #{pid}"
      end

      @log.say "! #{@pidfile} was left over from process #{pid}; replaced"
    end

    # @param addresses [Array<String>]
    # @return [void]
    def write(addresses)
      put(@pidfile, "#{@pid}\n") if @pidfile
      put(@state_path, state(addresses)) if @state_path
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

    def state(addresses)
      list = addresses.map { |url| "  - #{url}\n" }.join
      "---\npid: #{@pid}\nversion: #{VERSION}\nrunning_from: #{Dir.pwd}\naddresses:\n#{list}"
    end

    def put(path, text)
      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
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
