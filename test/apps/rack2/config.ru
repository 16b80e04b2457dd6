# frozen_string_literal: true

# A Rack 2 application: names with capitals, several values joined by "\n", an input that rewinds.
# SPDX-License-Identifier: MIT

require "rack/lint"

use Rack::Lint
use Rack::ContentLength

run lambda { |env|
  text = { "Content-Type" => "text/plain" }
  case env["PATH_INFO"]
  when "/release" then [200, text, [Rack.release]]
  when "/cookies" then [200, text.merge("Set-Cookie" => "a=1\nb=2"), ["two"]]
  when "/twice"
    first = env["rack.input"].read
    env["rack.input"].rewind
    [200, text, [first, env["rack.input"].read]]
  when "/env"
    keys = %w[rack.version rack.multithread rack.multiprocess rack.run_once rack.url_scheme]
    [200, text, [env.values_at(*keys).inspect]]
  when "/parameters" then [200, text, [Rack::Request.new(env).params.inspect]]
  when "/empty" then [204, {}, []]
  else [404, text, ["nothing here"]]
  end
}
