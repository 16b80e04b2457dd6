# frozen_string_literal: true

# SPDX-License-Identifier: MIT

class NewsChannel < ApplicationCable::Channel
  def subscribed
    stream_from "news"
  end
end
