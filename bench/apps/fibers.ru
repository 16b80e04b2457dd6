# frozen_string_literal: true

# Requests that wait and requests that compute, beside plain ones: /wait takes 5 ms, /asleep ten minutes, /count says
# how many are asleep, /compute?SECONDS computes without ever waiting, and everything else is answered at once.

asleep = Queue.new
text = ->(body) { [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]] }

compute = lambda do |seconds|
  ends = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  rounds = 0
  rounds += 1 while Process.clock_gettime(Process::CLOCK_MONOTONIC) < ends
  rounds.to_s
end

run lambda { |env|
  case env["PATH_INFO"]
  when "/wait"
    sleep 0.005
    text.call("Hello, World!")
  when "/asleep"
    asleep << true
    sleep 600
    text.call("awake")
  when "/count" then text.call(asleep.size.to_s)
  when "/compute" then text.call(compute.call(env["QUERY_STRING"].to_f))
  else text.call("Hello, World!")
  end
}
