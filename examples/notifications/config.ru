# frozen_string_literal: true

# A page that shows what other programs have to say, as they say it:
#
#   bin/rondo -r redis://localhost:6379 examples/notifications/config.ru
#   ruby -Ilib examples/notifications/job.rb "the report is ready"

PAGE = <<~HTML
  <!doctype html>
  <title>Notifications</title>
  <ul id="list"></ul>
  <script>
    const socket = new WebSocket(location.href.replace(/^http/, "ws"));
    socket.onmessage = (event) => {
      const item = document.createElement("li");
      item.textContent = event.data;
      document.getElementById("list").append(item);
    };
  </script>
HTML

# Messages go from the channel to the browser without a line of Ruby.
class Notifications
  def on_open(client)
    client.subscribe("notifications")
  end
end

run lambda { |env|
  env["rack.upgrade"] = Notifications.new if env["rack.upgrade?"] == :websocket
  [200, { "content-type" => "text/html; charset=utf-8" }, [PAGE]]
}
