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
