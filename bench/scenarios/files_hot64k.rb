# frozen_string_literal: true

Bench.scenario "files_hot64k" do
  describe "files_hot64k: 64 keep-alive connections, a file of 64 KiB"
  app "files"
  kind :hot
  file "64k.bin"
  send_requests :file64k
  within 40
  show :cpu_us, :rps, :busy, :p50_us, :p99_us, :failed
  at_least 0.95, 1.1, :rps, "hot file of 64 KiB, requests/s over nginx", over: "nginx"
  at_most 1.05, 0.91, :cpu_us, "hot file of 64 KiB, CPU per request over nginx", over: "nginx"
end
