# frozen_string_literal: true

# The path by which Rackup, Rack 2, Rails and Capybara look for a server of the bundle. If the bundle has no puma, that
# server is Rondo, also where it was asked for by the name of Puma.
# SPDX-License-Identifier: MIT

require "rondo/puma/gem"

if (folder = Rondo::PumaGem.folder)
  gem "puma"
  require File.join(folder, Rondo::PumaGem::HANDLER)
elsif Object.const_defined?(:Rackup) && Rackup.const_defined?(:Handler)
  require "rackup/handler/rondo"
  Rackup::Handler::Puma = Rackup::Handler::Rondo
  Rackup::Handler.register :puma, Rackup::Handler::Rondo
else
  require "rack/handler/rondo"
  Rack::Handler::Puma = Rack::Handler::Rondo
  Rack::Handler.register :puma, "Rack::Handler::Rondo" if Rack::Handler.respond_to?(:register)
end

if folder.nil? && defined?(Capybara)
  require "rondo/capybara"
  # The block for `:puma` that is under way is Capybara's own.
  (defined?(Rackup::Handler::Puma) ? Rackup::Handler::Puma : Rack::Handler::Puma).extend Rondo::CapybaraServer::Chosen
end
