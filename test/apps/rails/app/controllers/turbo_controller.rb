# frozen_string_literal: true

# Pages that Turbo changes while they are open, by a WebSocket or by a stream of events, and what they are told.
# SPDX-License-Identifier: MIT

class TurboController < ApplicationController
  PAGE = <<~HTML
    <!DOCTYPE html>
    <script type="module" src="/turbo.min.js"></script>
    <%%= params[:by] == "events" ? turbo_stream_source_from(params[:room]) : turbo_stream_from(params[:room]) %%>
    <ul id="log"></ul>
  HTML

  def show
    render inline: PAGE.gsub("%%", "%"), layout: false
  end

  def say
    lines = Array(params[:text]).each do |text|
      Turbo::StreamsChannel.broadcast_append_to(params[:room], target: params.fetch(:target, "log"), html: helpers.tag.li(text))
    end
    render plain: lines.size
  end
end
