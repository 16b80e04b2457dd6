# frozen_string_literal: true

# SPDX-License-Identifier: MIT

module ApplicationCable
  class Channel < ActionCable::Channel::Base
  end
end
