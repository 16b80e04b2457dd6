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
    Dir["lib/**/*.{rb,html,css,js}", "exe/*", "man/*.1", "ext/**/*.{c,h,def,mk,rb}", "ext/rondo/.document",
        "examples/**/*", "docs/**/*.{md,svg,json}", "sig/**/*.rbs",
        "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE"]
      .select { |path| File.file?(path) }.sort
  end
  spec.bindir = "exe"
  spec.executables = ["rondo"]
  spec.require_paths = ["lib"]
  spec.extensions = ["ext/rondo/extconf.rb"]

  spec.metadata["rubygems_mfa_required"] = "true"
  # Whoever publishes the gem says where its sources are: RONDO_HOMEPAGE=https://… rake gem
  if (home = ENV.fetch("RONDO_HOMEPAGE", nil))
    spec.homepage = home
    spec.metadata["source_code_uri"] = home
    spec.metadata["changelog_uri"] = "#{home}/blob/main/CHANGELOG.md"
    spec.metadata["documentation_uri"] = "#{home}/tree/main/docs"
    spec.metadata["bug_tracker_uri"] = "#{home}/issues"
  end

  spec.add_dependency "rack", ">= 2.2", "< 4"
end
