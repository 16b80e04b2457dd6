# frozen_string_literal: false

# hello.ru beside a Ruby thread that computes without end: how much throughput a server keeps. /progress says how far
# the thread has come, because a server that never lets the thread run would keep everything. The thread starts with the
# first request, so that it runs in the process that serves.
spins = 0
spinner = nil

run lambda { |env|
  spinner ||= Thread.new { loop { spins += 1 } }
  text = env["PATH_INFO"] == "/progress" ? spins.to_s : "Hello, World!"
  [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]
}
