# frozen_string_literal: true

Bench.scenario "files_slow" do
  describe "files_slow: 1,000 clients that read 64 KiB of a file of 9 MB and stop"
  app "files"
  kind :slow
  file "9mb.bin"
  rounds 2
  within 60
  fresh true
  over_connections 1_000
  show :bytes_per_connection, :bytes_per_further, :failed
  at_most 2048, 1024, :bytes_per_connection, "user memory per slow download, bytes"
end
