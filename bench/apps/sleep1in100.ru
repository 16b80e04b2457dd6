# frozen_string_literal: true

# One request in a hundred waits 5 ms.
count = 0
run lambda { |_env|
  sleep 0.005 if ((count += 1) % 100).zero?
  [200, { "content-type" => "text/plain" }, ["Hello, World!"]]
}
