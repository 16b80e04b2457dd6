# frozen_string_literal: true

# The length of an answer says which worker gave it. /stuck sleeps in C and keeps the GVL, so that no Ruby runs in
# that worker for that many seconds.
require "fiddle"

USLEEP = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
ANSWER = ("a" * (13 + (Process.pid % 97))).freeze

run lambda { |env|
  USLEEP.call(Integer(env["QUERY_STRING"]) * 1_000_000) if env["PATH_INFO"] == "/stuck"
  [200, { "content-type" => "text/plain" }, [ANSWER]]
}
