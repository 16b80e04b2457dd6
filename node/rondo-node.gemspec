# frozen_string_literal: true

require_relative "lib/rondo/node"

Gem::Specification.new do |spec|
  spec.name = "rondo-node"
  spec.version = Rondo::Node::VERSION
  spec.authors = ["the Rondo authors"]
  spec.summary = "Runs Rack applications on Node: the second engine of Rondo"
  spec.description = <<~TEXT
    Compiles a Rack application to JavaScript with Opal and serves it on Node, with the rack.upgrade, the channels and
    the workers of the application server Rondo.
  TEXT
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"

  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.{rb,js,txt}", "exe/*", "{,uws/}package.json", "{,uws/}package-lock.json", "README.md", "LICENSE"].sort
  end
  spec.bindir = "exe"
  spec.executables = %w[up up_node]
  spec.require_paths = ["lib"]

  spec.metadata["rubygems_mfa_required"] = "true"
  # As in rondo.gemspec.
  if (home = ENV.fetch("RONDO_HOMEPAGE", nil))
    spec.homepage = home
    spec.metadata["source_code_uri"] = "#{home}/tree/main/node"
  end

  spec.add_dependency "opal", Rondo::Node::OPAL_VERSION
  spec.add_dependency "rack", ">= 2.2", "< 4"
end
