# frozen_string_literal: true

# A thousand requests at once, on one thread: while one waits for its answer, the others go on.
#
#   ruby -Ilib examples/fibers.rb [URI [REQUESTS]]
#
# Without a URI it asks a server of its own, whose answers take half a second.
# SPDX-License-Identifier: MIT

require "net/http"
require "rondo"

# Answers each client after half a second, also in fibers, in a process of its own.
def serve_slowly(listener)
  Rondo.fibers(limit: 2000) do |all|
    loop do
      client = listener.accept
      all.start do
        client.gets("\r\n\r\n")
        sleep 0.5
        client.write "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nyes"
        client.close
      end
    end
  end
end

uri = ARGV[0]
unless uri
  listener = TCPServer.new("127.0.0.1", 0)
  listener.listen(4096)
  uri = "http://127.0.0.1:#{listener.addr[1]}/"
  server = fork { serve_slowly(listener) }
end

began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
pages = Rondo.fibers(limit: 1000) do |all|
  all.map(1..Integer(ARGV[1] || 1000)) { Net::HTTP.get_response(URI(uri)).code }
end
puts "#{pages.tally} in #{(Process.clock_gettime(Process::CLOCK_MONOTONIC) - began).round(2)} s"

if server
  Process.kill(:TERM, server)
  Process.wait(server)
end
