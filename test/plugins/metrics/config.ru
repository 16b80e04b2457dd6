# frozen_string_literal: true

# An application with metrics of Yabeda, which each process of the server shows.
# SPDX-License-Identifier: MIT

require "yabeda"
require "yabeda/prometheus"

Yabeda.configure!

run ->(_env) { [200, { "content-type" => "text/plain" }, [Puma::Server.current.max_threads.to_s]] }
