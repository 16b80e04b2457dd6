# frozen_string_literal: true

# SPDX-License-Identifier: MIT
#
# A Roda application behind Rondo: routes of all verbs, JSON, streaming, sessions, uploads.

require "json"
require_relative "app_case"

class RodaTest < AppCase
  APP = File.join(__dir__, "roda/config.ru")

  def self.start_server
    ServerProcess.new(APP, env: { "GATE" => gate })
  end

  def test_routes_of_all_verbs
    assert_equal "root", browser.get("/").body
    assert_equal({ "name" => "chair" }, json(:Put, "/items/7", name: "chair"))
    assert_equal({ "name" => "chair", "legs" => 4 }, json(:Patch, "/items/7", legs: 4))
    assert_equal({ "name" => "chair", "legs" => 4 }, JSON.parse(browser.get("/items/7").body))
    deleted = browser.http.request(Net::HTTP::Delete.new("/items/7"))
    assert_equal ["204", nil], [deleted.code, deleted.body]
    assert_equal "404", browser.get("/items/7").code
    assert_equal ["404", "no such page"], [browser.get("/items/x").code, browser.response.body]
  end

  def test_session_and_redirect
    assert_equal "302", browser.post("/login", "user" => "Ada Lovelace").code
    assert_equal "Ada Lovelace", browser.follow.body
  end

  def test_error
    assert_equal ["500", "an error: on purpose"], [browser.get("/fails").code, browser.response.body]
    assert_equal "root", browser.get("/").body
  end

  %w[enumerable async callable].each do |kind|
    define_method("test_streamed_parts_leave_at_once_#{kind}") do
      _, body = read_streamed("/stream/#{kind}", %W[first\n second\n])
      assert_equal "first\nsecond\nlast\n", body
      assert_equal "root", browser.get("/").body, "the connection goes on"
    end
  end

  def test_many_small_parts
    assert_equal (0...20_000).map { |number| "#{number}\n" }.join, browser.get("/stream/many/20000").body
  end

  def test_client_that_leaves_a_stream
    leaver = Browser.new(server.url)
    assert_raises(Interrupt) { leaver.get("/stream/many/1000000") { |answer| answer.read_body { raise Interrupt } } }
    leaver.close
    assert_equal "root", browser.get("/").body
  end

  def test_upload_of_a_hundred_megabytes
    assert_large_upload("/upload")
  end

  private

  def json(verb, path, fields)
    request = Net::HTTP.const_get(verb).new(path, "content-type" => "application/json")
    request.body = JSON.generate(fields)
    JSON.parse(browser.http.request(request).body)
  end
end
