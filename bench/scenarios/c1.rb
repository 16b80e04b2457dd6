# frozen_string_literal: true

Bench.scenario "c1" do
  describe "c1: one connection, one request at a time"
  over_connections 1
  show :cpu_us, :rps, :p50_us, :p99_us, :longest_us
  at_most 1.30, 1.20, :cpu_us, "one connection, one request at a time, over the C floor", over: "floor"
end
