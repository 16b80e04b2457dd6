# frozen_string_literal: true

# A body of 9 MB (9 x 1024 x 1024 bytes) in parts of 16 KiB, without a length: it is sent while it is made, and the row
# shows the cost of its framing. The parts are one frozen string, so the bytes are the server's work, not the
# application's.
PART = ("0123456789abcdef" * 1024).freeze
PARTS = 576

body = Object.new
def body.each
  PARTS.times { yield PART }
end

run ->(_env) { [200, { "content-type" => "application/octet-stream" }, body] }
