# frozen_string_literal: true

# What YARD understands of the source of a gem, which takes seconds to find out: once for all tests of this process.
# SPDX-License-Identifier: MIT

require "fileutils"
require "open3"
require "rbconfig"
require "tmpdir"
require "yard"

# For test classes.
module ReadSource
  ROOT = File.expand_path("../..", __dir__)

  @read = {}

  # @param gem_name [String]
  # @return [Array(String, String)] the folder of the registry, and what YARD had to say
  def self.read(gem_name)
    @read[gem_name] ||= begin
      folder = Dir.mktmpdir
      Minitest.after_run { FileUtils.rm_rf(folder) }
      words = %W[doc --no-output --quiet --no-cache -b #{folder}/found]
      words.push("--no-yardopts", "--load", "./tools/reference/public_api.rb", "gems/#{gem_name}/lib") if gem_name != "rondo"
      output, = Open3.capture2e(RbConfig.ruby, Gem.bin_path("yard", "yard"), *words, chdir: ROOT)
      ["#{folder}/found", output]
    end
  end

  # Fills YARD's registry.
  def read_the_source
    folder, output = ReadSource.read(gem_name)
    assert_empty output, "YARD does not understand it"
    YARD::Registry.load!(folder)
  end

  # @return [String] whose source is read
  def gem_name
    "rondo"
  end

  def teardown
    YARD::Registry.clear
    super
  end
end
