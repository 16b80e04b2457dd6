# frozen_string_literal: true

# A live counter by Server-Sent Events:  bin/rondo examples/counter.ru
#
#   open http://localhost:9292/ in two windows and press the button
#   curl -N -H "Accept: text/event-stream" http://localhost:9292/counts
#   curl -X POST http://localhost:9292/press

# Counts, and sends the number to every open page.
class Counter
  def initialize
    @mutex = Mutex.new
    @viewers = []
    @count = 0
  end

  def press
    @mutex.synchronize do
      @count += 1
      @viewers.each { |viewer| show(viewer) }
    end
  end

  # The callbacks of `rack.upgrade`.

  def on_open(client)
    @mutex.synchronize do
      @viewers << client
      show(client)
    end
  end

  def on_close(client)
    @mutex.synchronize { @viewers.delete(client) }
  end

  private

  def show(client)
    client.event(@count.to_s, event: "count", id: @count)
  end
end

PAGE = <<~HTML
  <!DOCTYPE html>
  <meta charset="utf-8">
  <title>Counter</title>
  <p>Pressed <output id="count">?</output> times.</p>
  <button onclick="fetch('/press', { method: 'POST' })">Press</button>
  <script>
    new EventSource("/counts").addEventListener("count", event => {
      document.getElementById("count").value = event.data;
    });
  </script>
HTML

counter = Counter.new

run lambda { |env|
  text = { "content-type" => "text/plain" }
  case env.values_at("REQUEST_METHOD", "PATH_INFO")
  in ["GET", "/"] then [200, { "content-type" => "text/html" }, [PAGE]]
  in ["GET", "/counts"]
    next [406, text, ["for EventSource\n"]] unless env["rack.upgrade?"] == :sse

    env["rack.upgrade"] = counter
    [200, {}, []]
  in ["POST", "/press"]
    counter.press
    [204, {}, []]
  else [404, text, ["try /\n"]]
  end
}
