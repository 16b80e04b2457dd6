# frozen_string_literal: true

# Evaluates configuration files, each in a process of its own with the environment that its first lines name, and
# prints what came of each as JSON: either what a server sets, or why it refuses the file.
#
#   ruby evaluate.rb puma|rondo FILE...
# SPDX-License-Identifier: MIT

require "json"
require_relative "../../support/in_child"

# Reads the files as one of the two servers.
module Evaluate
  extend InChild

  # Variables that a file sees only if it names them.
  VARIABLES = %w[PORT PIDFILE RAILS_MAX_THREADS RAILS_MIN_THREADS WEB_CONCURRENCY MAX_THREADS MIN_THREADS RAILS_ENV RACK_ENV
                 APP_ENV HOST BINDING SOCKET].freeze

  module_function

  def all(server, paths)
    paths.to_h { |path| [File.basename(path, ".rb"), JSON.parse(in_child { result(server, path) })] }
  end

  # What a file prints goes elsewhere.
  def result(server, path)
    $stdout.reopen($stderr)
    JSON.generate(one(server, path))
  end

  def one(server, path)
    VARIABLES.each { |name| ENV.delete(name) }
    ENV.update(File.read(path)[/^# env: (.*)/, 1].to_s.split.to_h { |pair| pair.split("=", 2) })
    { "settings" => send(server, path) }
  rescue StandardError, ScriptError => e
    { "refused" => "#{e.class}: #{e.message.lines.first.to_s.chomp}" }
  end

  def puma(path)
    require "puma"
    require "puma/configuration"
    require "puma/plugin"
    require "puma/log_writer"
    configuration = Puma::Configuration.new({ config_files: [path] })
    configuration.clamp
    events = configuration.events.instance_variable_get(:@hooks).transform_values(&:size)
    configuration._options.file_options.to_h { |key, value| [key, of_puma(key, value)] }.merge(events: events)
  end

  def of_puma(_key, value)
    return value.size if value.is_a?(Array) && value.first.is_a?(Hash) && value.first.key?(:block)

    plain(value)
  end

  def rondo(path)
    require "rondo"
    require "rondo/config/configuration"
    configuration = Rondo::Configuration.new(path)
    configuration.choose(configuration.options[:workers].positive?)
    { options: configuration.options.to_h.transform_values { |value| plain(value) }, notes: configuration.notes,
      hooks: configuration.hooks.transform_values(&:size), port_host: configuration.port_host,
      any_host: Rondo::Address.any_host }
  end

  def plain(value)
    case value
    when nil, true, false, String, Integer, Symbol then value
    when Float then value.infinite? ? "infinite" : value
    when Array then value.map { |one| plain(one) }
    when Hash then value.to_h { |key, one| [key.to_s, plain(one)] }
    else "an object"
    end
  end
end

puts JSON.generate(Evaluate.all(ARGV.shift.to_sym, ARGV))
