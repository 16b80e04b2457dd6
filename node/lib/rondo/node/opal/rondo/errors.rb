# backtick_javascript: true
# frozen_string_literal: true

# rack.errors: writes to $stderr, for all requests the same object.
# SPDX-License-Identifier: MIT

module Rondo
  # What an application complains to.
  class Errors
    def puts(*lines)
      $stderr.puts(*lines)
    end

    def write(text)
      $stderr.write(text)
    end

    def flush
      self
    end

    def inspect
      "#<Rondo::Errors>"
    end
  end
end
