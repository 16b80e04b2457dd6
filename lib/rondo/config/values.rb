# frozen_string_literal: true

# Checks of values for the verbs of the configuration file (verbs.rb). A check returns the value in the form of the
# settings, or raises an error that names the verb, the file and the line.
# SPDX-License-Identifier: MIT

require "rondo/config/settings"

module Rondo
  class Configuration
    # The checks; the verbs include them.
    module VerbValues
      RONDO = File.expand_path("..", __dir__)
      # Callers that do not count.
      OURS = ["#{RONDO}/", "#{RONDO}.rb"].freeze
      private_constant :RONDO, :OURS

      private

      def checked(row, verb, value)
        Settings::KINDS.fetch(row.kind).value(row, value)
      rescue Settings::Kind::Refused => e
        fail_here "#{verb} #{e.message}"
      end

      def path(verb, value)
        value && File.path(value)
      rescue ArgumentError, TypeError
        fail_here "#{verb} must be a path, not #{value.inspect}"
      end

      def whole_number_of(verb, value)
        Integer(value.to_s, 10)
      rescue ArgumentError
        fail_here "#{verb} must be a number, not #{value.inspect}"
      end

      def need_block(verb, block)
        block or fail_here "#{verb} needs a block"
      end

      def milliseconds(verb, seconds)
        (Settings.seconds(seconds) * 1000).round
      rescue ArgumentError, TypeError
        fail_here "#{verb} must be #{Settings::TIME_FORMS}, not #{seconds.inspect}"
      end

      # What variables bring is text, and every text counts as true for Ruby.
      def truth(verb, value)
        case value
        when true, 1, "1", "true", "yes", "on" then 1
        when false, nil, 0, "0", "false", "no", "off" then 0
        else fail_here "#{verb} must be true or false, not #{value.inspect}"
        end
      end

      # The number for a setting of the core whose verb has another name.
      def renamed_number(name, verb, value)
        case Settings::CORE.fetch(name)[:unit]
        when "ms" then core_number(name, milliseconds(verb, value))
        when "bool" then truth(verb, value)
        else core_number(name, value || 0)
        end
      end

      def core_number(name, value)
        row = Settings::CORE.fetch(name)
        number = Settings.core_value(name, value)
        return number if number.between?(row[:min], row[:max])

        fail_here "#{name} #{value} is not between #{row[:min]} and #{row[:max]} #{row[:unit]}"
      rescue ArgumentError, TypeError
        forms = { "bytes" => ", or #{Settings::SIZE_FORMS}", "ms" => ", or a time such as \"30s\"" }[row[:unit]]
        fail_here "#{name} must be a number (#{row[:unit]})#{forms}, not #{value.inspect}"
      end

      def line_here
        at = caller_locations.find { |place| !place.path.start_with?(*OURS) }
        at ? "#{at.path}:#{at.lineno}" : @configuration.path.to_s
      end

      def fail_here(message)
        raise ConfigurationError, "#{line_here}: #{message}"
      end
    end
  end
end
