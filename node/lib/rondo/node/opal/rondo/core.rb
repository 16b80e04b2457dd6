# frozen_string_literal: true

# Methods of Ruby's core that Opal lacks, and that libraries call while they are loaded.
# SPDX-License-Identifier: MIT

# Opal's modules.
class Module
  # @return [self] nobody is warned
  def deprecate_constant(*_names)
    self
  end
end

# Applications of Up! switch on a compiler of Ruby, and ask only whether the name is defined. Here V8 compiles.
module RubyVM
  # The compiler that applications ask for.
  module YJIT
    class << self
      # @return [Boolean] it is always on
      def enabled?
        true
      end

      # @return [Boolean] whether it was switched on by this call
      def enable(**)
        false
      end
    end
  end
end
