# frozen_string_literal: true

Bench.scenario "cpu1ms" do
  describe "cpu1ms: 64 connections, every request computes for 1 ms"
  app "cpu1ms"
  # In a second all 64 connections get only fifteen turns.
  lasting 2
  show :rps, :p50_us, :p99_us, :longest_us, :longest_over_median
  at_most 1.20, 1.08, :longest_over_median, "app of 1 ms CPU: longest wait over the median"
  at_most 1.00, 0.95, :longest_over_median, "the same over a C program that computes for 1 ms", over: "floor"
end
