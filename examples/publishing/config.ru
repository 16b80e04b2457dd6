# frozen_string_literal: true

# A page that hears from jobs and from the command line, without Redis. It has a signed name of a channel:
#
#   bin/rondo -C examples/publishing/rondo.rb -S publishing.state examples/publishing/config.ru
#   bin/rondo publish jobs "from the command line" -S publishing.state
#   TOKEN=publishing ruby -Ilib examples/publishing/job.rb "the report is ready"

PAGE = <<~HTML
  <!doctype html>
  <title>Jobs</title>
  <ul id="list"></ul>
  <script>
    const source = new EventSource("/events?channel=" + encodeURIComponent("%<name>s"));
    source.onmessage = (event) => {
      const item = document.createElement("li");
      item.textContent = event.data;
      document.getElementById("list").append(item);
    };
  </script>
HTML

Rondo::PubSub.history("jobs", size: 100, ttl: 3600) # a page that was away misses nothing

map("/events") { run Rondo::Signed::Subscriptions.new }

run lambda { |_env|
  name = Rondo::Signed.channel("jobs", expires_in: 3600)
  [200, { "content-type" => "text/html; charset=utf-8" }, [format(PAGE, name: name)]]
}
