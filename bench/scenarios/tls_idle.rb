# frozen_string_literal: true

Bench.scenario "tls_idle" do
  describe "tls_idle: user memory for each of 2,000 TLS connections after one request on each"
  tls :p256
  kind :idle
  fresh true
  over_connections 2_000
  show :bytes_per_connection
  at_most 16_384, 15_360, :bytes_per_connection, "user memory per idle TLS connection, bytes"
end
