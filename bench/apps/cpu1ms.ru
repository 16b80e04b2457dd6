# frozen_string_literal: false

# Computes for 1 ms of the thread's CPU time, then answers like hello.ru. It uses CPU time, not the clock, so that a
# server that is interrupted in the middle still does all of the work.
CLOCK = Process::CLOCK_THREAD_CPUTIME_ID

run lambda { |_env|
  done = Process.clock_gettime(CLOCK) + 0.001
  nil while Process.clock_gettime(CLOCK) < done
  [200, { "content-type" => "text/plain", "content-length" => "13" }, ["Hello, World!"]]
}
