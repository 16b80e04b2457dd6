# frozen_string_literal: true

Bench.scenario "pipelined" do
  describe "pipelined: 64 connections with 16 plain requests on the way on each"
  client "-p", "16"
  show :cpu_us, :rps, :p50_us, :p99_us
  at_most 1.15, 1.00, :cpu_us, "pipelined x16 over the floor on MRI", over: "mri"
  at_least 1.1, 1.35, :rps, "pipelined x16, requests/s over up_ruby", over: "up"
end
