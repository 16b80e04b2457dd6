# frozen_string_literal: true

# Answers that come piece by piece; between the pieces they wait at a gate, a named pipe.
# SPDX-License-Identifier: MIT

class StreamsController < ApplicationController
  include ActionController::Live
  include Gated

  def live
    response.headers["content-type"] = "text/plain"
    lines { |line| response.stream.write(line) }
  ensure
    response.stream.close
  end

  def events
    response.headers["content-type"] = "text/event-stream"
    sse = SSE.new(response.stream, event: "tick")
    3.times { |number| sse.write({ number: number }) }
  ensure
    sse.close
  end
end
