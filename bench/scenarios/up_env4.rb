# frozen_string_literal: true

Bench.scenario "up_env4" do
  describe "env.to_s over 125 connections, as Up! measures it; four workers"
  app "inspect"
  processes 4
  over_connections 125
  show :cpu_us, :rps, :p50_us, :p99_us, :body_bytes
end
