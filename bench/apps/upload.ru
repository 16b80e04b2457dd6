# frozen_string_literal: true

# Reads the whole body of a request, and answers how long it was.
PORTION = 65_536

run lambda { |env|
  length = 0
  if (input = env["rack.input"])
    buffer = +""
    length += buffer.bytesize while input.read(PORTION, buffer)
  end
  [200, { "content-type" => "text/plain" }, [length.to_s]]
}
