# frozen_string_literal: true

Bench.scenario "up_env" do
  describe "env.to_s over 125 connections, as Up! measures it; one worker"
  app "inspect"
  beside "hello"
  over_connections 125
  show :cpu_us, :rps, :kept, :p50_us, :p99_us, :body_bytes
  at_least 0.40, 0.55, :kept, "env.to_s on Node, share of the requests/s of its own hello", of: "node"
end
