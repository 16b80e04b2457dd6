# frozen_string_literal: false

# Answers with the environment as text. The cost depends on what a server puts into it.
run lambda { |env|
  body = env.to_s
  [200, { "content-type" => "text/plain", "content-length" => body.bytesize.to_s }, [body]]
}
