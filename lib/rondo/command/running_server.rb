# frozen_string_literal: true

# Where a running server is found: by its state file, its pid (file), the address of its control
# server, or a configuration file that names one of these. For `rondo ctl` and `rondo top`.
# SPDX-License-Identifier: MIT

require "rondo/command/command_line"
require "rondo/command/control_client"
require "rondo/config/configuration"

module Rondo
  # A server of another process.
  # @api private
  class RunningServer
    # Nothing says where the server is: a message of one line.
    class NotFound < Error; end

    # @return [Integer, nil]
    attr_reader :pid
    # @return [String, nil] of its control server
    attr_reader :url
    # @return [String, nil]
    attr_reader :token
    # @return [Hash{Symbol => String, Integer}] what was typed
    attr_reader :given

    def initialize
      @given = {}
    end

    # Adds the options that say where the server is.
    # @param options [OptionParser]
    # @return [void]
    def define(options)
      { state: ["-S", "--state FILE", "state file of the server"],
        pidfile: ["-P", "--pidfile FILE", "file with the process id of the server"],
        pid: ["-p", "--pid PID", Integer, "process id of the server"],
        url: ["--control-url URI", "address of the control server"],
        token: ["-T", "--control-token TOKEN", "token of the control server"],
        config: ["-C", "--config FILE", "configuration file that names one of these; - for none"],
        environment: ["-e", "--environment NAME", "environment whose configuration file is " \
                                                  "read"] }.each do |name, words|
        options.on(*words) { |value| @given[name] = value }
      end
      options.on("-F", "--config-file FILE") { |value| @given[:config] = value }
    end

    # Looks at files; to be called again where the server may have been started anew.
    # @return [self]
    # @raise [NotFound, ConfigurationError]
    def locate
      @named = configured.merge(@given)
      @pid, @url, @token = @named.values_at(:pid, :url, :token)
      read_state if @named[:state] && !@given[:url] && !@given[:pid]
      @pid ||= read_pidfile if @named[:pidfile]
      # To kill(2), 0 and less are groups of processes.
      raise NotFound, "#{@pid} is not a process id" unless @pid.nil? || @pid.positive?

      return self if @pid || @url

      raise NotFound, why_unknown
    end

    # @return [ControlClient]
    # @raise [NotFound, AddressError]
    def client
      url or raise NotFound, "the control server of process #{pid} is not known: name it by its state " \
                             "file or by --control-url"
      ControlClient.new(url, token)
    end

    private

    NAMES = { state: :state_path, pidfile: :pidfile, url: :control_url, token: :control_token }.freeze
    private_constant :NAMES

    def configured
      return {} if @given[:config] == "-" || (!@given[:config] && given_place?)

      typed = { environment: [@given[:environment], "command line"] }.reject { |_, (name)| name.nil? }
      path = @given[:config] || Configuration.find(Settings.environment(typed))
      values = path ? Configuration.new(path).values.transform_values(&:first) : {}
      folder = values[:directory] || "."
      found = NAMES.transform_values { |name| values[name] }.compact
      %i[state pidfile].each { |name| found[name] &&= File.expand_path(found[name], folder) }
      forget_auto(found, path)
      found.delete(:token) if ["", "none"].include?(found[:token])
      found.compact
    end

    def why_unknown
      if @auto
        return "the control server of #{@auto} has an address of its own (auto), which only a state file tells: " \
               "set state_path there, and start the server anew"
      end

      "it is not known which server is meant: name it by -S STATE, -P PIDFILE, -p PID, --control-url URI or a " \
        "configuration file that names one of these"
    end

    # Only the state file knows such an address.
    def forget_auto(found, path)
      @auto = (path if found[:url] == "auto")
      found.delete(:url) if @auto
    end

    def given_place?
      %i[state pidfile pid url].any? { |name| @given[name] }
    end

    def read_state
      lines = File.read(@named[:state]).lines.filter_map { |line| line.match(/\A(\w+): "?(.*?)"?\n?\z/)&.captures }.to_h
      @pid = lines["pid"]&.to_i
      @url = lines["control_url"]
      @token = @given[:token] || lines["control_auth_token"]
    rescue SystemCallError => e
      return if @url && e.is_a?(Errno::ENOENT) # the configuration knows the address, too

      raise NotFound, "cannot read the state file #{@named[:state]}: #{SystemCallError.new(nil, e.errno).message}"
    end

    def read_pidfile
      text = File.read(@named[:pidfile])
      text.to_i.positive? or raise NotFound, "#{@named[:pidfile]} does not contain a process id"
      text.to_i
    rescue SystemCallError => e
      return if @url

      raise NotFound, "cannot read #{@named[:pidfile]}: #{SystemCallError.new(nil, e.errno).message}"
    end
  end
end
