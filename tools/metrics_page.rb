# frozen_string_literal: true

# What a server of this version says on /metrics, for generators and tests: asked of a control server whose scoreboard
# has one row. Needs the compiled extension.
# SPDX-License-Identifier: MIT

$LOAD_PATH.unshift(File.expand_path("../lib", __dir__))
require "rondo/command/control_client"
require "rondo/process/control"

# The families of metrics.
module MetricsPage
  # What the samples of a histogram have behind the name of their family.
  PARTS = %w[_bucket _sum _count].freeze

  module_function

  # @return [String] in Prometheus' text format
  def text
    board = Rondo::Scoreboard.new(1)
    control = Rondo::Control.new(board, Object.new)
    control.listen("unix://@rondo-metrics-#{Process.pid}-#{board.object_id}")
    control.start
    Rondo::ControlClient.new(control.url).get("/metrics").body
  ensure
    control&.close
  end

  # @return [Hash{String => Hash{Symbol => String}}] type and help by name, in the order of the page
  def families(page = text)
    types = page.scan(/^# TYPE (\S+) (\S+)$/).to_h
    page.scan(/^# HELP (\S+) (.+)$/).to_h { |name, help| [name, { type: types[name], help: help }] }
  end

  # @return [Hash{String => String}] types by the names that samples have
  def samples(families)
    families.each_with_object({}) do |(name, family), all|
      names = family[:type] == "histogram" ? PARTS.map { |part| "#{name}#{part}" } : [name]
      names.each { |sample| all[sample] = family[:type] }
    end
  end
end
