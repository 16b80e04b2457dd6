# frozen_string_literal: false

# Reads the whole body of the request and answers its length. Rack 3 allows a GET to have no input.
run lambda { |env|
  input = env["rack.input"]
  text = (input ? input.read.to_s.bytesize : 0).to_s
  [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]
}
