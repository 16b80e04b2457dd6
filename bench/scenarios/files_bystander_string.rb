# frozen_string_literal: true

Bench.scenario "files_bystander_string" do
  describe "files_bystander_string: the same, the application answers with one String"
  app "files"
  kind :fetch
  file "9mb.bin"
  answered :string
  bystanders 500
  rounds 3
  within 40
  lasting 3
  over_connections 10
  show :p99_us, :p50_us, :longest_us, :mb_per_s, :failed
  at_most 3000, 1000, :p99_us, "HTTP p99 beside ten clients that fetch 9 MB, one String, µs"
end
