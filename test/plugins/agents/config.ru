# frozen_string_literal: true

# An application that asks gems what they know of their server.
# SPDX-License-Identifier: MIT

require "active_record"
require "barnes"
require "barnes/instruments/puma_instrument"
require "good_job"
require "json"
require "prometheus_exporter"
require "prometheus_exporter/client"
require "prometheus_exporter/instrumentation"
require "stringio"
require "puma" if Gem.loaded_specs.key?("puma") # as Bundler.require does

ENV["DYNO"] = "web.1"

def barnes
  instrument = Barnes::Instruments::PumaInstrument.new
  instrument.start!({})
  instrument.instrument!({}, {}, gauges = {})
  { valid: instrument.valid?, gauges: gauges }
end

# It warns when the threads of both are more than the connections to the database.
def good_job
  ActiveRecord::Base.establish_connection(adapter: "sqlite3", database: ":memory:", pool: 1)
  GoodJob.logger = Logger.new(lines = StringIO.new)
  GoodJob::Configuration.total_estimated_threads(warn: true)
  lines.string[/Puma is using \d+ threads/]
end

run lambda { |env|
  answer = case env["PATH_INFO"]
           when "/barnes" then barnes
           when "/exporter" then PrometheusExporter::Instrumentation::Puma.new.collect
           when "/good_job" then good_job
           end
  [200, { "content-type" => "application/json" }, [JSON.generate(answer)]]
}
