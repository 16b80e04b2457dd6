# frozen_string_literal: true

# Two ways to answer piece by piece:  bin/rondo examples/streaming.ru
#
#   curl -N http://localhost:9292/each     a body that is enumerated: every part leaves at once
#   curl -N http://localhost:9292/stream   a body that is called with the stream and writes to it

# A body whose parts are made while it is sent. `close` is called once, also if the client leaves.
class Countdown
  def initialize(from)
    @from = from
  end

  def each
    @from.downto(1) { |number| yield "#{number}\n" }
    yield "lift-off\n"
  end

  def close
    # Release here what the body holds: a cursor, a file.
  end
end

stream = lambda do |out|
  5.times { |number| out.write("line #{number}\n") }
ensure
  out.close
end

run lambda { |env|
  headers = { "content-type" => "text/plain" }
  case env["PATH_INFO"]
  when "/each" then [200, headers, Countdown.new(5)]
  when "/stream" then [200, headers, stream]
  else [404, headers, ["try /each or /stream\n"]]
  end
}
