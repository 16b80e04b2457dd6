# frozen_string_literal: true

# What belongs to one request.
# SPDX-License-Identifier: MIT

class Current < ActiveSupport::CurrentAttributes
  attribute :visitor
end
