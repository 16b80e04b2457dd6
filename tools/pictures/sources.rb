# frozen_string_literal: true

# What the pictures are made of: the order of folders, who includes whom, where a file lies, the ways
# out of error.def, the sections and tables of docs/ARCHITECTURE.md. What a picture names and the
# sources do not have is an error.
# SPDX-License-Identifier: MIT

module Sources
  ROOT = File.expand_path("../..", __dir__)

  module_function

  # @return [Array<String>] folders of ext/rondo, the lowest first
  def layers
    @layers ||= read("tools/check_layers")[/LAYERS = %w\[([^\]]+)\]/m, 1].split
  end

  # @return [Array<String>] those of them that may know Ruby
  def binding_layers
    @binding_layers ||= read("tools/check_layers")[/BINDING = %w\[([^\]]+)\]/m, 1].split
  end

  # @return [Hash{String => Array<String>}] which folders the sources of a folder include, beyond itself
  def includes
    @includes ||= layers.to_h do |layer|
      files = Dir[File.join(ROOT, "ext/rondo", layer, "*.{c,h}")]
      found = files.flat_map { |file| File.read(file, encoding: "UTF-8").scan(%r{^\s*#\s*include "(\w+)/}).flatten }
      [layer, layers & found.uniq - [layer]]
    end
  end

  # @param name [String] the end of a path: "http1.c", "server/server.c", "supervisor.rb"
  # @return [String] the path below ext/rondo or lib/rondo
  def path(name)
    matches = files.select { |path| path == name || path.end_with?("/#{name}") }
    raise "#{name}: #{matches.empty? ? "no such file" : "more than one file"}" unless matches.one?

    matches.first
  end

  # @return [Hash{String => Array<Integer>}] statuses of the answers that each section of error.def ends in
  def refusals
    section = nil
    read("ext/rondo/base/error.def").lines.each_with_object({}) do |line, found|
      section = line[%r{\A/\* (.*?)[.(]}, 1]&.strip if line.start_with?("/* ")
      status = line[/\ARD_ERROR\(\w+, PEER, (\d+)/, 1]
      (found[section] ||= []) << status.to_i if status
    end.transform_values { |statuses| statuses.uniq.sort }
  end

  # @param heading [String]
  # @return [String] a section of ARCHITECTURE
  def section(heading)
    text = read("docs/ARCHITECTURE.md")[/^## #{Regexp.escape(heading)}\n(.*?)(?=^## |\z)/m, 1]
    text or raise "docs/ARCHITECTURE.md has no section \"#{heading}\""
  end

  # @return [Array<Array<String>>] the cells of the first table of that section, without its head
  def table(heading)
    section(heading).lines.grep(/^\|/).drop(2).map { |row| row.strip[1..].split("|").map(&:strip) }
  end

  # @return [Array<Array(String, Array<String>)>] title and files of each numbered step of that section
  def steps(heading)
    section(heading).split(/^\d+\. /).drop(1).map do |step|
      step = step[/\A.*?(?=\n\n|\z)/m]
      title = step[/\A\*\*(.+?)\.?\*\*/, 1] or raise "#{heading}: a step without a title: #{step[0, 40]}"
      [title, step.scan(%r{`((?:\w+/)?\w+\.c)`}).flatten.map { |file| path(file) }.uniq]
    end
  end

  def read(path)
    File.read(File.join(ROOT, path), encoding: "UTF-8")
  end

  def files
    @files ||= %w[ext/rondo lib/rondo].flat_map { |base| Dir["**/*.{c,h,rb}", base: File.join(ROOT, base)] }.sort
  end
end
