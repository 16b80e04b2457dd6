# frozen_string_literal: true

{ "" => [:p256, "TLS", 46, 36], "_plain" => [nil, "no TLS", 31, 20] }.each do |name, (key, way, must, stretch)|
  Bench.scenario "http2_idle#{name}" do
    describe "http2_idle#{name}: user memory for each of 2,000 connections (#{way}) after one request on each"
    tls key
    http2 1
    kind :idle
    fresh true
    rounds 3
    over_connections 2_000
    show :bytes_per_connection, :held
    at_most must * 1024, stretch * 1024, :bytes_per_connection, "user memory per idle h2 connection, #{way}, bytes"
  end
end
