# frozen_string_literal: false

# Reads the request's body whole and says how long it was. Rack 3 allows no input at all for a GET.
run lambda { |env|
  input = env["rack.input"]
  text = (input ? input.read.to_s.bytesize : 0).to_s
  [200, { "content-type" => "text/plain", "content-length" => text.bytesize.to_s }, [text]]
}
