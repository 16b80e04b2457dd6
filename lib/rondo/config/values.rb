# frozen_string_literal: true

# What the verbs of the configuration file take: each check answers the value as the settings want it, or
# refuses it with verb, file and line. Used by verbs.rb.
# SPDX-License-Identifier: MIT

require "rondo/config/settings"

module Rondo
  class Configuration
    # The checks; the verbs include them.
    module VerbValues
      RONDO = File.expand_path("..", __dir__)
      private_constant :RONDO

      private

      def duration(verb, seconds)
        number = Float(seconds)
        fail_here "#{verb} must not be negative" if number.negative?
        number == number.to_i ? number.to_i : number
      rescue ArgumentError, TypeError
        fail_here "#{verb} must be a number of seconds, not #{seconds.inspect}"
      end

      def natural(verb, count)
        number = Integer(count.to_s, 10)
        number.negative? ? fail_here("#{verb} must not be negative") : number
      rescue ArgumentError
        fail_here "#{verb} must be a number, not #{count.inspect}"
      end

      def one_of(verb, value, known)
        known.find { |name| name == value.to_s.to_sym } or
          fail_here "#{verb} must be #{known.join(" or ")}, not #{value.inspect}"
      end

      def text(verb, value)
        value.nil? || value.is_a?(String) ? value : fail_here("#{verb} must be a String, not #{value.inspect}")
      end

      def path(verb, value)
        value && File.path(value)
      rescue ArgumentError, TypeError
        fail_here "#{verb} must be a path, not #{value.inspect}"
      end

      # What is one alone may be written without brackets.
      def list(verb, value)
        return value if value.nil? || value.is_a?(Array)

        value.is_a?(String) ? [value] : fail_here("#{verb} must be a list of addresses, not #{value.inspect}")
      end

      def need_block(verb, block)
        block or fail_here "#{verb} needs a block"
      end

      def milliseconds(verb, seconds)
        (Float(seconds) * 1000).round
      rescue ArgumentError, TypeError
        fail_here "#{verb} must be a number of seconds, not #{seconds.inspect}"
      end

      def core_number(name, value)
        row = Settings::CORE.fetch(name)
        number = Settings.core_value(name, value)
        return number if number.between?(row[:min], row[:max])

        fail_here "#{name} #{value} is not between #{row[:min]} and #{row[:max]} #{row[:unit]}"
      rescue ArgumentError, TypeError
        size = ", or a size such as \"20m\"" if row[:unit] == "bytes"
        fail_here "#{name} must be a number (#{row[:unit]})#{size}, not #{value.inspect}"
      end

      def line_here
        at = caller_locations.find { |place| !place.path.start_with?("#{RONDO}/") }
        at ? "#{at.path}:#{at.lineno}" : @configuration.path.to_s
      end

      def fail_here(message)
        raise ConfigurationError, "#{line_here}: #{message}"
      end
    end
  end
end
