# frozen_string_literal: true

# SPDX-License-Identifier: MIT

class NewsJob < ApplicationJob
  def perform(text)
    Rails.cache.write("text", text)
    ActionCable.server.broadcast("news", { text: text })
  end
end
