# frozen_string_literal: true

# Waits 5 ms, as if for a database.
run lambda { |_env|
  sleep 0.005
  [200, { "content-type" => "text/plain" }, ["Hello, World!"]]
}
