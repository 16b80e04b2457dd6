# frozen_string_literal: true

Bench.scenario "browser" do
  describe "browser: 64 connections, requests with the 13 headers of a browser"
  send_requests :browser
  at_most 0.85, 0.70, :cpu_us, "13 browser headers over the floor on MRI", over: "mri"
  at_most 1.00, 0.85, :cpu_us, "13 browser headers over up_ruby", over: "up"
end
