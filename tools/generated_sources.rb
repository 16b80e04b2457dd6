# frozen_string_literal: true

# Shared by the generators of C sources: they write their files, or with --check only compare them.
# SPDX-License-Identifier: MIT

module GeneratedSources
  # Ends the process; with --check by status 1 if one of the files differs.
  #
  # @param folder [String] below the root of the project
  # @param files [Hash{String => String}] names and texts
  def self.write_or_check(folder, files)
    paths = files.transform_keys { |name| File.expand_path("../#{folder}/#{name}", __dir__) }
    differing = paths.reject { |path, text| File.file?(path) && File.binread(path) == text.b }
    if ARGV.include?("--check")
      differing.each_key { |path| warn "#{path} is not what #{File.basename($PROGRAM_NAME)} makes" }
      exit differing.empty?
    end
    differing.each { |path, text| File.binwrite(path, text) }
  end
end
