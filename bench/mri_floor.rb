# frozen_string_literal: true

# Serves a rackup file by the floor on MRI (mri_floor.c, which programs.rb has compiled): `ruby bench/mri_floor.rb PORT
# FILE`. The file has one `run` with a proc.
# SPDX-License-Identifier: MIT

require_relative ".build/mri_floor"

# What a rackup file of bench/apps calls.
module MRIFloorFile
  class << self
    attr_reader :app
  end

  # @param app [#call]
  # @return [void]
  def run(app)
    MRIFloorFile.instance_variable_set(:@app, app)
  end
end

extend MRIFloorFile # rubocop:disable Style/MixinUsage

load ARGV.fetch(1)
Process.warmup if Process.respond_to?(:warmup)
MRIFloor.serve(ARGV.fetch(0), MRIFloorFile.app,
               { "REQUEST_METHOD" => "GET", "SCRIPT_NAME" => "", "PATH_INFO" => "/", "QUERY_STRING" => "",
                 "SERVER_NAME" => "127.0.0.1", "SERVER_PORT" => ARGV.fetch(0), "SERVER_PROTOCOL" => "HTTP/1.1",
                 "REMOTE_ADDR" => "127.0.0.1", "rack.url_scheme" => "http", "rack.errors" => $stderr,
                 "rack.input" => nil })
