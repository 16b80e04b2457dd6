# frozen_string_literal: true

# SPDX-License-Identifier: MIT

require_relative "config/environment"

run ->(_env) { [200, { "content-type" => "text/plain" }, ["styles"]] }
