# frozen_string_literal: true

Bench.scenario "stream" do
  describe "stream: 8 connections, bodies of 9 MB in parts of 16 KiB without a length"
  app "stream9mb"
  over_connections 8
  show :cpu_us_per_mb, :mb_per_s, :rps, :p50_us, :longest_us
end
