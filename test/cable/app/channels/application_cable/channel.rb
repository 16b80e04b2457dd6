# frozen_string_literal: true

# As `rails new` makes it.
# SPDX-License-Identifier: MIT

module ApplicationCable
  class Channel < ActionCable::Channel::Base
  end
end
