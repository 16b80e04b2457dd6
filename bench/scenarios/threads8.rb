# frozen_string_literal: true

Bench.scenario "threads8" do
  describe "threads8: plain requests, 8 application threads"
  threads 8
  show :rps, :cpu_us, :busy, :p99_us, :longest_us
  at_least 0.96, 0.99, :rps, "hello, 8 threads over 1 thread, requests/s", over: "rondo1"
end
