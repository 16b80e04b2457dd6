# frozen_string_literal: true

# `rondo init`: a configuration file in which every setting stands with its default, commented out.
# SPDX-License-Identifier: MIT

require "fileutils"
require "rondo/settings"

module Rondo
  # Writes the file.
  module InitFile
    HEAD = <<~RUBY
      # frozen_string_literal: true

      # Configuration of Rondo. Every line shows a default; uncomment to change it. Sizes may be
      # written as "64k", "10m", "1g". Puma's verbs work here as well.

      # bind "tcp://0.0.0.0:9292"
      # bind "unix:///run/app.sock?mode=0660"
      # port 9292
      # environment "development"
      # pidfile "tmp/pids/server.pid"
      # trusted_proxies ["10.0.0.0/8"]
      # plugin :tmp_restart
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
      lines = Settings::CORE.map do |name, row|
        value = row[:unit] == "bool" ? !row[:default].zero? : row[:default]
        "\n# #{row[:doc].sub(/\A\w/, &:upcase)} (#{row[:unit]}).\n# #{name} #{value}\n"
      end
      HEAD + lines.join
    end
  end
end
