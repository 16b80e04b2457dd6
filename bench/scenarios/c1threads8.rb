# frozen_string_literal: true

Bench.scenario "c1threads8" do
  describe "c1threads8: one connection, 8 application threads"
  threads 8
  over_connections 1
  show :cpu_us, :rps, :p50_us, :p99_us
  at_most 1.15, 1.05, :cpu_us, "c=1: CPU per request, 8 threads over 1 thread", over: "rondo1"
end
