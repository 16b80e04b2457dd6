# frozen_string_literal: true

Bench.scenario "files_9mb_cold" do
  describe "files_9mb_cold: 4 connections, a file of 9 MB on each that is not in the kernel's cache"
  app "files"
  kind :cold
  file "cold0.bin"
  send_requests :filecold0, :filecold1, :filecold2, :filecold3
  client "-n", "4"
  within 40
  over_connections 4
  show :mb_per_s, :cpu_us_per_mb, :failed
end
