# frozen_string_literal: true

# Looks for libraries while the application is loaded. Some must be found before the application's own classes use them:
# config/application.rb may use config.rondo, and Rails forgets its isolation level once it has obeyed.
# SPDX-License-Identifier: MIT

module Rondo
  # Calls others each time that a class or module ends, until they have found what they look for.
  # @api private
  module WhileLoading
    # @param seekers [Array<#call>] each gets the class or module whose body has ended, and nil before all, and returns
    #   whether it has found what it looks for; then it is not called again
    # @yield loads the application
    # @return what the block returns
    def self.seek(seekers)
      missing = seekers.reject { |seeker| seeker.call(nil) }
      return yield if missing.empty?

      trace = TracePoint.new(:end) do |event|
        missing.reject! { |seeker| seeker.call(event.self) }
        trace.disable if missing.empty?
      end
      begin
        trace.enable
        yield
      ensure
        trace.disable
      end
    end
  end
end
