# frozen_string_literal: true

Bench.scenario "up_hello" do
  describe "hello over 125 connections, as Up! measures it; one worker"
  over_connections 125
  at_least 0.80, 0.90, :rps, "hello on Node, requests/s over bare node:http", of: "node", over: "bare"
end
