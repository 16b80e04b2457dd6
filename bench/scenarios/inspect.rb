# frozen_string_literal: true

Bench.scenario "inspect" do
  describe "env.to_s: 64 connections, the answer is the environment as text"
  app "inspect"
  show :cpu_us, :rps, :p50_us, :p99_us, :body_bytes
  at_least 1.35, 1.6, :rps, "env.to_s, requests/s over iodine 0.7", over: "iodine"
  at_least 1.6, 1.9, :rps, "env.to_s, requests/s over up_ruby", over: "up"
end
