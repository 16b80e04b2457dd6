# frozen_string_literal: true

Bench.scenario "files_hot1k" do
  describe "files_hot1k: 64 keep-alive connections, a file of 1 KiB"
  app "files"
  kind :hot
  file "1k.bin"
  send_requests :file1k
  within 40
  show :cpu_us, :rps, :busy, :p50_us, :p99_us, :failed
  at_least 0.95, 1.1, :rps, "hot file of 1 KiB, requests/s over nginx", over: "nginx"
  at_most 1.05, 0.91, :cpu_us, "hot file of 1 KiB, CPU per request over nginx", over: "nginx"
end
