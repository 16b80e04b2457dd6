# frozen_string_literal: true

# Says which process answers: by its number, and by the length of the answer, for counting. /slow waits 5 ms; /sleep and
# /loop hold their thread for two seconds.
run lambda { |env|
  case env["PATH_INFO"]
  when "/slow" then sleep 0.005
  when "/sleep" then sleep 2
  when "/loop"
    over = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 2
    nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < over
  end
  [200, { "content-type" => "text/plain" }, [Process.pid.to_s.ljust(10 + (Process.pid % 50))]]
}
