# backtick_javascript: true
# frozen_string_literal: true

# The application of the tests of workers. It runs on Node only: it asks for the id of its process, and waits with a
# timer.
# SPDX-License-Identifier: MIT

Rondo::PubSub.history("kept", size: 10)

# Everybody in one room.
class Room
  def on_open(client)
    client.subscribe("room")
    client.write(`process.pid.toString()`)
  end

  def on_message(client, data)
    client.publish("room", data)
  end

  def on_shutdown(client)
    client.write("shutdown")
  end
end

# What was kept, and what comes.
class Kept
  def on_open(client)
    client.subscribe("kept", since: client.env["HTTP_LAST_EVENT_ID"] || 0)
  end
end

# Leaves a channel before what was kept there comes, which is from the master.
class Brief
  def on_open(client)
    client.subscribe("kept", since: 0)
    client.unsubscribe("kept")
    client.subscribe("kept*", match: :redis, since: 0)
  end
end

slow = lambda do |out|
  out.write("begin")
  `setTimeout(#{-> { out.write("end") && out.close }}, 500)`
end

run lambda { |env|
  case env["PATH_INFO"]
  when "/talk" then env["rack.upgrade"] = Room.new
  when "/kept" then env["rack.upgrade"] = Kept.new
  when "/brief" then env["rack.upgrade"] = Brief.new
  when "/keep" then Rondo.publish("kept", env["QUERY_STRING"])
  when "/slow" then next [200, { "content-length" => "8" }, slow]
  when "/exit" then `process.exit(3)`
  when "/block"
    puts "blocking"
    `while (true);`
  end
  [200, {}, [`process.pid.toString()`]]
}
