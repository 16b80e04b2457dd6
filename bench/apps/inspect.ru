# frozen_string_literal: false

# Answers with the environment as text: what a server puts in there decides what this costs.
run lambda { |env|
  body = env.to_s
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
}
