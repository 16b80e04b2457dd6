# frozen_string_literal: true

# Shows the parameters of a form, or what is wrong with it, for both engines.
# SPDX-License-Identifier: MIT

require "rack/request"
require "rack/multipart"

def shown(value)
  case value
  when Hash then value.key?(:tempfile) ? [value[:filename], value[:type], value[:name], value[:head], value[:tempfile].read.bytesize] : value.to_a
  when String then value.bytesize > 100 ? value.bytesize : value
  else value
  end
end

run(lambda do |env|
  form = Rack::Multipart.parse_multipart(env)
  [200, {}, [form.nil? ? "nothing" : form.map { |name, value| [name, shown(value)] }.inspect]]
rescue StandardError => e
  [200, {}, ["#{e.class.name}: #{e.message}"]]
end)
