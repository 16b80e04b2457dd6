# frozen_string_literal: true

# `rondo init` writes a configuration file with what people change, on one page, and `rondo init --full` one with every
# setting and its default; all lines are commented out.
# SPDX-License-Identifier: MIT

require "fileutils"
require "rondo/config/settings"

module Rondo
  # Writes the file.
  # @api private
  module InitFile
    SHORT = <<~RUBY
      # frozen_string_literal: true

      # Configuration of Rondo; uncomment a line to change it. Sizes may be written as "64k", "10m", "1g",
      # times as "500ms", "30s", "5m". Puma's verbs work here as well. Where a line has a default, it is shown;
      # `rondo init --full` writes all settings, and `rondo check` tries the file.
    RUBY
    # Heading => lines: the name of a setting stands for its example, or its verb with the default.
    PAGE = {
      "Where to listen. Without these: port #{Settings::SHELL[:port].default} on all interfaces." => %i[bind],
      "Processes and threads. 0 workers: one process; :auto: one for each CPU." =>
        [:workers, "workers :auto", :max_threads, :preload],
      "Calls at once that wait without a thread (docs/FIBERS.md); 0: none." => %i[fibers],
      "Hooks." => ["before_fork { }", "before_worker_boot { |index| }", "after_booted { warn \"ready\" }"],
      "Limits of requests: larger ones are answered 413 and 431." => %i[max_body_bytes max_head_bytes],
      "Deadlines: idle connections, bodies, answers; requests of a stop; workers without a sign of life." =>
        %i[keep_alive_timeout_ms body_timeout_ms write_timeout_ms drain_timeout_ms worker_timeout],
      "Workers are replaced at these limits; 0: never." => %i[max_requests max_memory max_age],
      "Files that are served without Ruby." => %i[public],
      "Proxies in front, which may name the client." => %i[trusted_proxies],
      "Certificates from Let's Encrypt." => %i[tls_domain tls_email],
      "Pub/sub between machines." => %i[redis_url],
      "Logs: a line for each request; files." => %i[log_requests redirect_stdout],
      "For tools: rondo ctl, rondo top, probes." => ['activate_control_app "auto"', :pidfile, :state_path],
      "A restart when tmp/restart.txt is touched." => %i[tmp_restart]
    }.freeze
    HEAD = <<~RUBY
      # frozen_string_literal: true

      # Configuration of Rondo; uncomment a line to change it. Sizes may be written as "64k", "10m",
      # "1g", times as "500ms", "30s", "5m". Puma's verbs work here as well. First come examples of what is changed most and of what has
      # no default, then every setting with its default.

    RUBY
    HOOKS = <<~RUBY
      after_booted { warn "ready" }
      before_fork { }
      before_worker_boot { |index| }
      before_worker_shutdown { |index| }
    RUBY

    module_function

    # @param path [String]
    # @param force [Boolean] overwrites
    # @param full [Boolean] every setting, instead of what people change
    # @return [Integer] exit code
    # @raise [ConfigurationError]
    def write(path, force: false, full: false, out: $stdout)
      raise ConfigurationError, "#{path} exists; --force overwrites it" if File.exist?(path) && !force

      FileUtils.mkdir_p(File.dirname(path))
      File.write(path, full ? text : page)
      out.puts "wrote #{path}"
      0
    rescue SystemCallError => e
      raise ConfigurationError, "cannot write #{path}: #{SystemCallError.new(nil, e.errno).message}"
    end

    # @return [String] what people change
    def page
      parts = PAGE.map do |heading, lines|
        found = lines.flat_map { |line| line.is_a?(Symbol) ? line_of(line).lines(chomp: true) : line }
        ["\n# #{heading}\n", *found.map { |line| "# #{line}\n" }]
      end
      [SHORT, *parts].join
    end

    # @return [String] every setting
    def text
      shell = Settings::ROWS.select { |row| default?(row) }.map do |row|
        entry(row.doc, row.unit, row.line || "#{row.verb} #{row.default.inspect}")
      end
      core = Settings::CORE.map { |name, row| entry(row[:doc], row[:unit], "#{name} #{default_of(row)}") }
      [HEAD, *examples, *shell, *core].join
    end

    # Whether its default can be written down, and no example stands for it.
    def default?(row)
      !row.default.nil? && row.default != [] && row.verb && row.example.nil?
    end

    # As people write it: the verb that has seconds, for a setting in milliseconds.
    def line_of(name)
      return threads if name == :max_threads

      row = Settings::SHELL[name]
      return "#{row.verb} #{"#{row.default}s".inspect}" if row&.kind == :seconds && row.default.positive?
      return row.example || row.line || "#{row.verb} #{row.default.inspect}" if row

      verb = Settings::CORE_NAMES[name]&.verb
      return "#{verb} #{"#{Settings.default(name)}s".inspect}" if verb && name.end_with?("_ms")

      "#{name} #{default_of(Settings::CORE[name])}"
    end

    def threads
      "threads #{%i[min_threads max_threads].map { |name| Settings::CORE[name][:default] }.join(", ")}"
    end

    # First the verb with which people set two settings at once.
    def examples
      [threads, *Settings::ROWS.filter_map(&:example), HOOKS]
        .flat_map(&:lines).map { |line| "# #{line.chomp}\n" }
    end

    def default_of(row)
      return !row[:default].zero? if row[:unit] == "bool"

      choices = Settings.choices(row)
      return choices[row[:default]].inspect if choices

      size = Settings.size(row[:default]) if row[:unit] == "bytes"
      size&.match?(/[kmg]\z/) ? size.inspect : row[:default]
    end

    def entry(doc, unit, line)
      "\n# #{doc.sub(/\A[a-z](?=[a-z ])/, &:upcase)} (#{unit}).\n# #{line}\n"
    end
    private_class_method :default?, :examples, :default_of, :entry, :line_of, :threads
  end
end
