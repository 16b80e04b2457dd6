# frozen_string_literal: true

# The upgrade to a WebSocket or a stream of events: an action like any other.
# SPDX-License-Identifier: MIT

class LiveNotesController < ApplicationController
  def show
    return head(:upgrade_required) unless request.env["rack.upgrade?"]
    return head(:forbidden) unless valid_request_origin?

    cookies.encrypted[:secret] = { value: "e", httponly: true }
    session[:count] = session.fetch(:count, 0) + 1
    request.env["rack.upgrade"] = NoteFeed.new(session[:count])
    head :ok
  end
end
