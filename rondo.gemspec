# frozen_string_literal: true

require_relative "lib/rondo/version"

Gem::Specification.new do |spec|
  spec.name = "rondo"
  spec.version = Rondo::VERSION
  spec.authors = ["the Rondo authors"]
  spec.summary = "A Rack application server with a C core: fast, fair and strict about every byte"
  spec.description = <<~TEXT
    Rondo serves Rack applications (Rails, Sinatra, Roda and the rest). Its core is plain C11 and
    knows nothing of Ruby: an event loop, an HTTP/1.1 codec of its own, output queues with
    back-pressure. A thin binding calls the application in batches, on the thread that runs the loop.
  TEXT
  spec.license = "MIT"
  spec.required_ruby_version = ">= 3.1"

  spec.files = Dir.chdir(__dir__) do
    Dir["lib/**/*.rb", "exe/*", "ext/**/*.{c,h,def,mk,rb}", "examples/**/*", "docs/**/*.md",
        "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"]
      .select { |path| File.file?(path) }.sort
  end
  spec.bindir = "exe"
  spec.executables = ["rondo"]
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/rondo/extconf.rb"]

  spec.metadata["rubygems_mfa_required"] = "true"

  spec.add_dependency "rack", ">= 2.2", "< 4"
end
