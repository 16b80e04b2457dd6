# frozen_string_literal: true

# `rondo init` writes a configuration file with every setting and its default, commented out.
# SPDX-License-Identifier: MIT

require "fileutils"
require "rondo/config/settings"

module Rondo
  # Writes the file.
  # @api private
  module InitFile
    HEAD = <<~RUBY
      # frozen_string_literal: true

      # Configuration of Rondo; uncomment a line to change it. Sizes may be written as "64k", "10m",
      # "1g". Puma's verbs work here as well. First come examples of what is changed most and of what has
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

    # First the verb with which people set two settings at once.
    def examples
      threads = %i[min_threads max_threads].map { |name| Settings::CORE[name][:default] }.join(", ")
      ["threads #{threads}", *Settings::ROWS.filter_map(&:example), HOOKS]
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
    private_class_method :default?, :examples, :default_of, :entry
  end
end
