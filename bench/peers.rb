# frozen_string_literal: true

# The servers that Rondo is compared with, from their released gems, in a gem home of the benchmarks' own
# (bench/.build/peers, not in git), so that the machine's gems do not change; npm's `ws` is beside them. Used by
# servers.rb; `ruby bench/peers.rb` installs them all. Needs a compiler and npm. Peers that cannot be installed are
# named and left out.
# SPDX-License-Identifier: MIT

require "fileutils"

module Bench
  # Installs the peers and knows their versions.
  module Peers
    HOME = File.join(__dir__, ".build", "peers")
    NODE_HOME = File.join(__dir__, ".build", "node")
    WS = "8.23.0"

    # The peers to install: gem, version requirement, further options of `gem install`. Falcon 0.51 is the newest for
    # Ruby 3.1, which has no iodine 0.8. opal-up declares Opal and more, which its server never loads. AnyCable's server
    # is inside anycable-thruster; the gems after it are what its part of Rails needs beside Rails.
    GEMS = [
      ["rack", "~> 3.2.0"],
      ["rackup", "~> 2.0"],
      ["puma", "~> 8.0.0"],
      ["iodine", "0.7.60"],
      ["iodine", "0.8.3"],
      ["falcon", RUBY_VERSION < "3.2" ? "0.51.1" : ">= 0.51.1"],
      ["itsi", "0.2.27"],
      ["opal-up", "0.0.13", "--ignore-dependencies", "--force"],
      *[["anycable-thruster", "0.1.27"], ["anycable-core", "1.6.4"], ["anycable-rails-core", "1.6.2"],
        ["anyway_config", "2.9.1"], ["ruby-next-core", "1.2.1"],
        ["google-protobuf", "4.29.3", "--platform", "ruby"]].map { |gem| [*gem, "--ignore-dependencies"] }
    ].freeze

    module_function

    # @return [Hash{String => String}] the environment that makes Ruby see these gems and no others
    def environment
      { "GEM_HOME" => HOME, "GEM_PATH" => HOME, "RACK_ENV" => "production", "RUBYOPT" => nil,
        "BUNDLE_GEMFILE" => nil, "RUBYLIB" => nil }
    end

    # @param name [String] of a gem
    # @param requirement [String] as RubyGems takes them
    # @return [String, nil] the newest installed version
    def version(name, requirement = ">= 0")
      found = Dir.glob(File.join(HOME, "gems", "#{name}-[0-9]*")).map do |path|
        Gem::Version.new(File.basename(path).delete_prefix("#{name}-")[/\A[0-9.]+[0-9]/])
      end
      found.select { |version| Gem::Requirement.new(requirement).satisfied_by?(version) }.max&.to_s
    end

    # @return [String, nil] of npm's ws, when there is a node to run it
    def ws_version
      about = File.join(NODE_HOME, "node_modules", "ws", "package.json")
      File.read(about)[/"version": "([^"]+)"/, 1] if File.exist?(about)
    end

    # Installs what is missing.
    #
    # @return [Array<String>] names of those that could not be installed
    def install
      missing = GEMS.reject { |name, requirement,| version(name, requirement) }
      failed = missing.reject { |entry| install_gem(*entry) }.map { |entry| entry.first(2).join(" ") }
      failed << "ws" unless ws_version || install_ws
      failed
    end

    def install_gem(name, requirement, *options)
      warn "bench: installing #{name} #{requirement}"
      system(environment, Gem.ruby, "-S", "gem", "install", "--no-document", "--quiet",
             name, "-v", requirement, *options, out: :err)
    end

    def install_ws
      warn "bench: installing ws #{WS}"
      FileUtils.mkdir_p(NODE_HOME)
      system("npm", "install", "--no-fund", "--no-audit", "--prefix", NODE_HOME, "ws@#{WS}", out: :err)
    end
    private_class_method :install_gem, :install_ws
  end
end

if $PROGRAM_NAME == __FILE__
  failed = Bench::Peers.install
  warn "bench: not installed: #{failed.join(", ")}" unless failed.empty?
end
