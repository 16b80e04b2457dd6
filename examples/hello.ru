# frozen_string_literal: true

# The smallest application:  bin/rondo examples/hello.ru

run ->(_env) { [200, { "content-type" => "text/plain" }, ["Hello, World!\n"]] }
