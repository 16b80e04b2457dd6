# frozen_string_literal: true

# A stream of events without a thread.
# SPDX-License-Identifier: MIT

class NewsController < ApplicationController
  include Rondo::Rails::EventStream

  def index
    session[:count] = session.fetch(:count, 0) + 1
    stream_from "news:#{params[:channel]}", "news:all", since: params[:since]&.to_i
  end

  def announce
    Rondo.publish("news:#{params[:channel]}", params[:text])
    head :ok
  end
end
