# frozen_string_literal: true

# `rondo check`: whether configuration, application, files, addresses and descriptor limit are fit to
# start. One line each, exit code 0 or 1, for continuous integration and deploys.
# SPDX-License-Identifier: MIT

require "stringio"
require "rondo/process/launcher"

module Rondo
  # Goes through everything a start needs without serving.
  # @api private
  class Check
    # Seconds.
    ENGINE_PATIENCE = 1
    # Settings that name a file which the start writes.
    WRITTEN = Settings::ROWS.select { |row| row.kind == :written_file }.map(&:name).freeze

    # @param settings [Settings::Resolved]
    # @param configuration [Configuration]
    # @param debug [Boolean] as in {Launcher}
    # @param out [IO]
    def initialize(settings, configuration, debug: false, out: $stdout)
      @settings = settings
      @configuration = configuration
      @debug = debug
      @out = out
      @failed = false
    end

    # @return [Integer] exit code
    def run
      report("configuration") { [@configuration.path || "none", *@configuration.notes].join("; ") }
      launcher = Launcher.new(@settings, @configuration, debug: @debug)
      report("files") { launcher.folder_only } if @settings[:public]
      report("files to write") { launcher.written_only.join(", ") } if WRITTEN.any? { |name| @settings[name] }
      fibers
      server = nil
      report("application") do
        server = launcher.prepare_only
        application
      end
      databases if server
      report("addresses") { launcher.listen_only.join(", ") } if server
      certificates(server)
      report("control server") { control_server } if @settings[:control_url]
      other_programs
      report("descriptors") { descriptors(server) } if server
      @failed ? 1 : 0
    end

    private

    def application
      return "given in the configuration" if @settings.given?(:app)

      Application.none?(@settings) ? "none; only files are served" : @settings[:rackup]
    end

    def fibers
      count = FiberCount.of(@settings)
      report("fibers") { "#{count.check}; at most #{count.most || "any number"}" } if count.any?
    end

    # The log of a start has the same lines.
    def databases
      fibers = @settings[:fibers]
      Databases.lines(fibers).each { |line| @out.puts "warning databases: #{line}" } if fibers.positive?
    end

    def control_server
      control = Control.open(@settings, Scoreboard.new(1), self, log: Logger.new(silent: true))
      control.url
    ensure
      control&.close
    end

    def other_programs
      report("redis") { redis } if @settings[:redis_streams] || @settings[:redis_url]
      report("nats") { nats } if @settings[:nats]
      report("metrics") { metrics } if @settings[:metrics_to]
    end

    def redis
      connect(PubSub::Configured.redis_engine(@settings, Logger.new(io: StringIO.new)))
    end

    def nats
      connect(PubSub::Configured.nats_engine(@settings, Logger.new(io: StringIO.new)))
    end

    def connect(engine)
      engine.wait_until_connected(ENGINE_PATIENCE)
      engine.name
    ensure
      engine&.close
    end

    def metrics
      require "rondo/metrics/sender"
      Metrics.target(@settings[:metrics_to]).close
      "sent to #{@settings[:metrics_to]} every #{@settings[:metrics_interval]} s"
    end

    # The log of a server that runs says the same, but serves on without.
    def to_fetch
      require "rondo/certificates/renewer"
      domains = Certificates::Domains.from(@settings)
      domains.eab_key
      Certificates::Renewer.try
      domains.names.join(", ")
    end

    # The core has refused what cannot be served; this finds what should be better.
    def certificates(server)
      report("certificates to fetch") { to_fetch } if [*@settings[:tls_domain]].any?
      return unless server&.certificates&.any?

      require "rondo/certificates/facts"
      all = Certificates::Facts.of(server.certificates).values.flatten.uniq(&:file)
      all.each { |facts| report("certificate") { facts.line } }
      all.flat_map(&:warnings).each { |line| @out.puts "warning certificate: #{line}" }
    end

    def report(name)
      @out.puts "ok      #{name}: #{yield}"
    rescue Error => e
      @failed = true
      @out.puts "failed  #{name}: #{e.message.delete_prefix("#{name}: ")}" # some errors name what they are about
    end

    def descriptors(server)
      limit, = Process.getrlimit(:NOFILE)
      most = server.connection_limit
      needed = most + Server::Core::DESCRIPTORS_KEPT
      if @settings[:max_connections].positive? && needed > limit
        raise ConfigurationError, "max_connections #{most} needs #{needed} open files, but the limit is " \
                                  "#{limit} (see ulimit -n, LimitNOFILE)"
      end

      "at most #{most} connections, because the limit is #{limit} open files"
    end
  end
end
