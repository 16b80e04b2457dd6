# frozen_string_literal: true

Bench.scenario "sleep16" do
  describe "sleep16: every request waits 5 ms, 16 application threads"
  app "sleep5ms"
  threads 16
  ideal 16 / 0.005
  show :of_ideal, :cpu_us, :p50_us, :p99_us, :longest_us
  at_least 0.96, 0.98, :of_ideal, "sleep 5 ms, 16 threads: of the ideal 3,200/s"
  at_most 1, 0.25, :cpu_us, "sleep 5 ms, 16 threads: CPU over Puma", over: "puma"
end
