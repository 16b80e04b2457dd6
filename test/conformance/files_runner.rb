# frozen_string_literal: true

# SPDX-License-Identifier: MIT
# Delivers the cases of files_rules.rb, as runner.rb delivers those of HTTP, to one server for each of
# FilesRules::SERVERS. It compares every byte of the answer except the time.

require "tmpdir"
require_relative "runner"
require_relative "files_rules"

class FilesRunner < ConformanceRunner
  APP = File.expand_path("files.ru", __dir__)
  # The number of cuts of a case. Their positions differ from case to case.
  CUTS = 3
  BOUNDARY = /; boundary=(.+)\z/n

  class << self
    def table
      FilesRules.cases
    end
  end

  private

  def serve(&block)
    Dir.mktmpdir("rondo-files") do |root|
      FilesFolder.build(root)
      # If there is no application, the directory must not have one either.
      app = APP if %i[app failing].include?(@settings)
      ServerProcess.run(app, settings: PATIENT, unix: true, spawn: { chdir: root }, **folder(root), &block)
    end
  end

  # There are several ways to configure the folder.
  def folder(root)
    case @settings
    when :app then { args: ["-www", File.join(root, "public")] }
    when :alone then { args: ["--public", "public/"] }
    else { config: "public #{File.join(root, "pages").inspect}\n" }
    end
  end

  def cuts(test)
    offsets = (1...test.bytes.bytesize).to_a
    shift = test.bytes.sum + test.id.sum
    Array.new(CUTS) { |i| offsets[((i * offsets.size / CUTS) + shift) % offsets.size] }.uniq
  end

  def follow_up
    @follow_up ||= FilesRules::Table.new.expecting(@settings) { |table| table.nothing("/follow-up") }
  end

  def wrong_answer(answer, response)
    return "expected #{answer.statuses.join(" or ")}, got #{response&.status || "nothing"}" unless
      answer.statuses.include?(response&.status)

    wrong_fields(answer, response) || (answer.parts ? wrong_parts(answer, response) : wrong_body(answer, response))
  end

  def wrong_fields(answer, response)
    got = response.fields.reject { |field| field[0] == "date" }
    got.delete(%w[connection close]) unless answer.fields.key?("connection") # wrong_ending looks at it
    strange = got.map(&:first).tally.find { |name, times| times > 1 || !answer.fields.key?(name) }
    return "#{strange[0]}: #{response.header(strange[0])} is too much" if strange

    answer.fields.each do |name, value|
      found = response.header(name)
      right = value.is_a?(Regexp) ? found&.match?(value) : found == (value || found)
      return "expected #{name}: #{value || "something"}, got #{found.inspect}" unless found && right
    end
    nil
  end

  def wrong_body(answer, response)
    return nil if answer.body.nil? || answer.body == response.body

    "expected #{brief(answer.body)}, got #{brief(response.body)}"
  end

  def brief(bytes)
    bytes.bytesize > 100 ? "#{bytes.bytesize} bytes, #{bytes.byteslice(0, 40).inspect}..." : bytes.inspect
  end

  # Matches the whole body, so that there are no bytes before, between or after the parts.
  def wrong_parts(answer, response)
    boundary = response.header("content-type")[BOUNDARY, 1]
    return "the boundary is in a part" if answer.parts.any? { |_, _, bytes| bytes.include?("--#{boundary}") }

    parts = answer.parts.map do |type, range, bytes|
      "\r\n--#{boundary}\r\ncontent-type: #{type}\r\ncontent-range: #{range}\r\n\r\n#{bytes}"
    end
    expected = "#{parts.join}\r\n--#{boundary}--\r\n".b
    expected == response.body ? nil : "expected #{brief(expected)}, got #{brief(response.body)}"
  end
end
