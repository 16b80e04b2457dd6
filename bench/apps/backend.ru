# frozen_string_literal: true

# Asks a backend for each request, as applications ask databases and other services: with a new connection, and without
# a line about fibers. BACKEND is its port. From /spin on, a Ruby thread of the process computes without end.

require "net/http"

url = URI("http://127.0.0.1:#{ENV.fetch("BACKEND")}/")
spinner = nil

run lambda { |env|
  spinner ||= Thread.new { loop { nil } } if env["PATH_INFO"] == "/spin"
  [200, { "content-type" => "text/plain" }, [Net::HTTP.get(url)]]
}
