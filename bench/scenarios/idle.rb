# frozen_string_literal: true

Bench.scenario "idle" do
  describe "idle: user memory for each of 5,000 keep-alive connections after one request on each"
  kind :idle
  over_connections 5_000
  show :bytes_per_connection
  at_most 1024, 512, :bytes_per_connection, "user memory per idle keep-alive connection, bytes"
end
