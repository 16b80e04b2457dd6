# frozen_string_literal: true

# A Roda application: a tree of routes, typed segments, JSON, streaming in three ways, uploads.
# SPDX-License-Identifier: MIT

require "digest/sha2"
require "roda"

class Tree < Roda
  plugin :all_verbs
  plugin :json
  plugin :json_parser, content_type_regexp: %r{\Aapplication/json\b}i
  plugin :cookies
  plugin :streaming
  plugin :sessions, secret: "a secret that is long enough for the sessions of a test" * 2
  plugin(:error_handler) { |error| "an error: #{error.message}" }
  plugin(:not_found) { "no such page" }

  ITEMS = {}

  # What a streamed answer writes, waiting at the gate after each line but the last.
  def lines
    gate = File.open(ENV.fetch("GATE"), "r")
    %w[first second].each do |line|
      yield "#{line}\n"
      gate.readchar
    end
    yield "last\n"
  ensure
    gate&.close
  end

  route do |r|
    r.root { "root" }

    r.on "items" do
      r.is Integer do |id|
        r.get { ITEMS[id] }
        r.put { ITEMS[id] = r.params }
        r.patch { ITEMS[id] = ITEMS.fetch(id).merge(r.params) }
        r.delete do
          ITEMS.delete(id)
          r.halt [204, {}, []]
        end
      end
      r.get(true) { ITEMS.values }
    end

    r.get("stream", "enumerable") { stream { |out| lines { |line| out << line } } }
    r.get("stream", "async") { stream(async: true) { |out| lines { |line| out << line } } }
    r.get("stream", "callable") do
      body = lambda do |stream|
        lines { |line| stream.write(line) }
      ensure
        stream.close
      end
      r.halt [200, { "content-type" => "text/plain" }, body]
    end
    r.get("stream", "many", Integer) do |count|
      stream { |out| count.times { |number| out << "#{number}\n" } }
    end

    r.post "upload" do
      file = r.params.fetch("file")
      digest = Digest::SHA256.file(file[:tempfile].path).hexdigest
      "#{r.params["title"]} #{file[:filename]} #{file[:tempfile].size} #{digest}"
    end

    r.post("login") do
      session["user"] = r.params.fetch("user")
      r.redirect "/whoami"
    end
    r.get("whoami") { session["user"].to_s }
    r.get("fails") { raise "on purpose" }
  end
end

use Rack::Lint
run Tree.freeze.app
