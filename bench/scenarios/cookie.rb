# frozen_string_literal: true

Bench.scenario "cookie" do
  describe "cookie: 64 connections, requests with the headers of a browser that is logged in"
  send_requests :cookie
  at_most 0.85, 0.70, :cpu_us, "13 browser headers and a cookie over the floor on MRI", over: "mri"
  at_most 1.00, 0.85, :cpu_us, "13 browser headers and a cookie over up_ruby", over: "up"
end
