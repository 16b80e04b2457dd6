# frozen_string_literal: true

# SPDX-License-Identifier: MIT

module ApplicationCable
  class Connection < ActionCable::Connection::Base
  end
end
