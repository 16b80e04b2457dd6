# frozen_string_literal: true

Bench.scenario "files_stuck" do
  describe "files_stuck: 200 requests a second for a file of 1 KiB while Ruby is stuck for 5 s"
  app "files"
  kind :stuck
  file "1k.bin"
  rounds 2
  within 60
  show :longest_ms, :p50_us, :answers, :failed
  at_most 50, 10, :longest_ms, "static files while Ruby is stuck for 5 s: slowest answer, ms"
end
