# frozen_string_literal: true

Bench.scenario "c1" do
  describe "c1: one connection, one request at a time"
  over_connections 1
  show :cpu_us, :rps, :p50_us, :p99_us, :longest_us
end
