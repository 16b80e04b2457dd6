# frozen_string_literal: true

# `Capybara.server = :rondo`: loaded by `require "rondo"` where Capybara is there already, or by
# `require "rondo/capybara"`. Sets no traps; any number of servers may run in the process.
# SPDX-License-Identifier: MIT

require "capybara"
require "rondo"

Capybara.register_server(:rondo) do |app, port, host, **settings|
  server = Rondo::Server.new(app, **settings.slice(*Rondo::Settings::CORE.keys))
  server.listen(Rondo::Address.tcp_uri(host, port))
  server.run
end
