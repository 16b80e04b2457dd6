# frozen_string_literal: true

Bench.scenario "pipelined" do
  describe "pipelined: 64 connections with 16 plain requests on the way on each"
  client "-p", "16"
  at_least 1.1, 1.35, :rps, "pipelined x16, requests/s over up_ruby", over: "up"
end
