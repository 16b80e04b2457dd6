# frozen_string_literal: true

# A file of 9 MB in every way in which an application can answer with one; the path chooses the way. If a server has no
# static folder, Rack::Files serves all other paths. /stuck sleeps in C and keeps the GVL, so that no Ruby runs for that
# many seconds.
FOLDER = File.expand_path("../.build/files", __dir__)
PATH = File.join(FOLDER, "9mb.bin")
CONTENT = File.binread(PATH).freeze
PORTION = 65_536
HEADERS = { "content-type" => "application/octet-stream", "content-length" => CONTENT.bytesize.to_s }.freeze

# The content in portions.
class Portions
  PARTS = Array.new(CONTENT.bytesize / PORTION) { |number| CONTENT.byteslice(number * PORTION, PORTION).freeze }.freeze

  def each(&block)
    PARTS.each(&block)
  end
end

# A body that names its file. Servers that do not use the name read the body.
class Located
  def to_path
    PATH
  end

  def each
    File.open(PATH, "rb") do |file|
      while (part = file.read(PORTION))
        yield part
      end
    end
  end
end

# All other paths.
module Others
  def self.call(env)
    require "rack/files"
    @files ||= Rack::Files.new(FOLDER)
    @files.call(env)
  end
end

# Sleeps this many seconds in C.
module Stuck
  def self.for(seconds)
    require "fiddle"
    usleep = Fiddle::Function.new(Fiddle.dlopen(nil)["usleep"], [Fiddle::TYPE_INT], Fiddle::TYPE_INT, need_gvl: true)
    usleep.call(Integer(seconds) * 1_000_000)
  end
end

run lambda { |env|
  case env["PATH_INFO"]
  when "/" then [200, { "content-type" => "text/plain", "content-length" => "13" }, [+"Hello, World!"]]
  when "/string" then [200, HEADERS.dup, [CONTENT]]
  when "/each" then [200, HEADERS.dup, Portions.new]
  when "/to_path" then [200, HEADERS.dup, Located.new]
  when "/sendfile" then [200, { "content-type" => "application/octet-stream", "X-Sendfile" => PATH }, []]
  when "/stuck"
    Stuck.for(env["QUERY_STRING"])
    [200, { "content-type" => "text/plain" }, ["free"]]
  else Others.call(env)
  end
}
