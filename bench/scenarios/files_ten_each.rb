# frozen_string_literal: true

Bench.scenario "files_ten_each" do
  describe "files_ten_each: ten clients fetch 9 MB again and again, the application answers with portions of 64 KiB"
  app "files"
  kind :fetch
  file "9mb.bin"
  answered :each
  rounds 3
  within 60
  lasting 4
  over_connections 10
  show :mb_per_s, :answers, :least_answers, :most_answers, :least_mb, :most_mb, :max_over_min, :failed
  at_most 1.10, 1.02, :max_over_min, "ten clients fetch 9 MB for 4 s, portions: bytes max/min"
end
