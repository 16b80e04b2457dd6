# frozen_string_literal: true
# SPDX-License-Identifier: MIT
# env: APP_CONFIG=three

def whole(name, default)
  Integer(ENV.fetch(name, default))
end

module ThreadsOf
  def self.table = { "one" => [1, 1], "three" => [2, 3] }
end

threads(*ThreadsOf.table.fetch(ENV.fetch("APP_CONFIG", "one")))
port whole("PORT", 9393), "127.0.0.1"
max_fast_inline whole("FAST", 4)
raise_exception_on_sigterm false
%i[on_booted on_stopped].each { |hook| public_send(hook) { hook.to_s } if respond_to?(hook) }
