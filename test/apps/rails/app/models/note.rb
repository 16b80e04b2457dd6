# frozen_string_literal: true

# SPDX-License-Identifier: MIT

class Note < ApplicationRecord
  validates :text, presence: true
end
