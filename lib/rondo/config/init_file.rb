# frozen_string_literal: true

# `rondo init`: a configuration file in which every setting stands with its default, commented out.
# SPDX-License-Identifier: MIT

require "fileutils"
require "rondo/config/settings"

module Rondo
  # Writes the file.
  module InitFile
    HEAD = <<~'RUBY'
      # frozen_string_literal: true

      # Configuration of Rondo; uncomment a line to change it. Sizes may be written as "64k", "10m",
      # "1g". Puma's verbs work here as well. First what is changed most and examples of what has no
      # default, then every setting with its default.

      # threads THREADS
      # bind "tcp://0.0.0.0:9292"
      # bind "unix:///run/app.sock?mode=0660"
      # directory "/srv/app"
      # public "public"
      # x_sendfile_root "storage"
      # sendfile_type "X-Sendfile"
      # pidfile "tmp/pids/server.pid"
      # state_path "tmp/pids/server.state"
      # tag "app"
      # stdout_redirect "log/requests.log", "log/server.log", true
      # log_formatter { |line| "#{Time.now.utc} #{line}" }
      # trusted_proxies ["10.0.0.0/8", "unix"]
      # proxy_protocol_from ["10.0.0.1"]
      # rack_url_scheme "https"
      # set_default_host "localhost:9292"
      # allowed_origins :same, "https://*.example.com"
      # lowlevel_error_handler { |error, _env, status| [status, {}, [error.class.name]] }
      # after_booted { warn "ready" }
      # before_fork { }
      # before_worker_boot { |index| }
      # before_worker_shutdown { |index| }
      # plugin :tmp_restart
      # activate_control_app "auto", data_only: false
      # redis_url "redis://localhost:6379"
      # pubsub_engine { Rondo::PubSub::Redis.new("rediss://redis.example", ssl_params: { ca_file: "ca.pem" }) }
    RUBY
    # Settings of the shell whose default is a value that can be written down.
    SHELL = %i[environment rackup port workers preload worker_timeout worker_boot_timeout
               worker_shutdown_timeout worker_check_interval mold_boot_timeout worker_culling_strategy
               max_requests max_memory memory_measure max_age recycle_jitter
               quiet silent log_requests log_format redirect_append
               raise_exception_on_sigterm redis_required].freeze
    # What stands before the value of those whose verb is not their name.
    VERBS = { preload: "preload_app!", redirect_append: "stdout_redirect nil, nil," }.freeze

    module_function

    # @param path [String]
    # @param force [Boolean] overwrites
    # @return [Integer] exit code
    # @raise [ConfigurationError]
    def write(path, force: false, out: $stdout)
      raise ConfigurationError, "#{path} exists; --force overwrites it" if File.exist?(path) && !force

      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, text)
      out.puts "wrote #{path}"
      0
    rescue SystemCallError => e
      raise ConfigurationError, "cannot write #{path}: #{SystemCallError.new(nil, e.errno).message}"
    end

    # @return [String]
    def text
      shell = Settings::SHELL.slice(*SHELL).map do |name, row|
        entry(VERBS.fetch(name, name), row.doc, row.unit, row.default.inspect)
      end
      core = Settings::CORE.map do |name, row|
        entry(name, row[:doc], row[:unit], default_of(row))
      end
      [head, *shell, *core].join
    end

    # The verb with which people set two settings at once.
    def head
      HEAD.sub("THREADS", %i[min_threads max_threads].map { |name| Settings::CORE[name][:default] }.join(", "))
    end

    def default_of(row)
      return !row[:default].zero? if row[:unit] == "bool"

      choices = Settings.choices(row)
      return choices[row[:default]].inspect if choices

      size = Settings.size(row[:default]) if row[:unit] == "bytes"
      size&.match?(/[kmg]\z/) ? size.inspect : row[:default]
    end

    def entry(verb, doc, unit, value)
      "\n# #{doc.sub(/\A[a-z](?=[a-z ])/, &:upcase)} (#{unit}).\n# #{verb} #{value}\n"
    end
    private_class_method :head, :default_of, :entry
  end
end
