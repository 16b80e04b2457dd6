# frozen_string_literal: true

Bench.scenario "files_9mb" do
  describe "files_9mb: 4 connections, a file of 9 MB again and again"
  app "files"
  kind :fetch
  file "9mb.bin"
  within 40
  over_connections 4
  show :mb_per_s, :cpu_us_per_mb, :busy, :failed
  at_least 1.0, 1.1, :mb_per_s, "file of 9 MB, MB/s over the better of nginx and Puma", over: %w[nginx puma]
end
