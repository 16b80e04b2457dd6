# frozen_string_literal: true

# SPDX-License-Identifier: MIT

class NewsController < ActionController::Base
  def speak
    NewsJob.perform_later(params[:text])
    head :accepted
  end

  def latest
    render plain: Rails.cache.read("text").to_s
  end
end
