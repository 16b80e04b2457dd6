# frozen_string_literal: true

require_relative "../../lib/rondo/version"

Gem::Specification.new do |spec|
  spec.name = "rondo-iodine"
  spec.version = Rondo::VERSION
  spec.authors = ["the Rondo authors"]
  spec.summary = "Applications written for iodine 0.7 start on Rondo without an edited line"
  spec.description = <<~TEXT
    The library `iodine` and the command of that name, as far as iodine 0.7.60 documents them, over the application
    server Rondo: the same calls, return values, errors and units.
  TEXT
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"

  spec.files = Dir.chdir(__dir__) { Dir["lib/**/*.rb", "sig/**/*.rbs", "exe/*", "README.md", "LICENSE"].sort }
  spec.bindir = "exe"
  spec.executables = ["iodine"]
  spec.require_paths = ["lib"]

  spec.metadata["rubygems_mfa_required"] = "true"
  # As in rondo.gemspec.
  if (home = ENV.fetch("RONDO_HOMEPAGE", nil))
    spec.homepage = home
    spec.metadata["source_code_uri"] = "#{home}/tree/main/gems/#{spec.name}"
  end

  spec.add_dependency "rack", ">= 2.2", "< 4"
  spec.add_dependency "rondo", Rondo::VERSION
end
