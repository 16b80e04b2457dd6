# frozen_string_literal: true

# Runs one file of Rails' own tests of Action Cable with the server's Action Cable, and with our module Puma, whose
# Puma::Server is our server. client_test.rb is about our connections, which are counted; the others have connections that
# stand for real ones, and must find all of Rails as it was. All of them pass. Left out are those of the adapters redis
# and postgresql, which are in adapters_test.rb, and of the packages of JavaScript.
#
#   ruby -Ilib test/cable/rails_itself.rb FOLDER FILE      tools/run_cable does it for all files
# SPDX-License-Identifier: MIT

require "bundler/setup"

FOLDER, FILE = ARGV.shift(2)

$LOAD_PATH.unshift(FOLDER)
$LOAD_PATH << File.expand_path("../../activesupport/lib", FOLDER) # for what the gem leaves out
require "rondo"
require "rondo/puma/library"
Rondo::PumaLibrary.offer
require "logger"
require "action_cable"
require "rondo/rails/cable/cable"

Settings = Struct.new(:max_cable_subscriptions, :cable_history)
ActionCable::Server::Base.config.cable = { "adapter" => "test" }
Rondo::Rails::Cable.attach(Settings.new(1000, {}))
require "test_helper"
raise "this is not our module Puma" unless Puma.const_defined?(:OF_RONDO)

# Counts connections that the server has.
module OursCounted
  @seen = 0
  class << self
    attr_accessor :seen
  end

  def initialize(...)
    super
    OursCounted.seen += 1 if of_server
  end
end
ActionCable::Connection::WebSocket.prepend(OursCounted)
Minitest.after_run { abort "no connection was the server's" if FILE == "client_test.rb" && OursCounted.seen.zero? }

require File.join(FOLDER, FILE)
