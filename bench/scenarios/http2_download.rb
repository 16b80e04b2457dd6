# frozen_string_literal: true

{ "" => [:string, "an answer of the application"],
  "_file" => [:static, "a file of the folder"] }.each do |name, (answer, what)|
  Bench.scenario "http2_download#{name}" do
    describe "http2_download#{name}: hello on one connection over TLS, alone and while it downloads 9 MB, #{what}"
    tls :p256
    app "files"
    kind :downloading
    file "9mb.bin"
    answered answer
    http2 1
    over_connections 1
    show :over_quiet, :quiet_p99_us, :p99_us, :mb_per_s, :errors
    at_most 3, 1.5, :over_quiet, "hello on a connection that also downloads 9 MB (#{what}): p99 over the same without"
  end
end
