# frozen_string_literal: true

# Files that the application names: by X-Sendfile and X-Accel-Redirect below the allowed folders, and by the to_path of
# a body; which parts a client gets, and which files no client gets.
# SPDX-License-Identifier: MIT

require "pathname"
require "time"
require "tmpdir"
require_relative "rack_case"

class SendfileTest < RackCase
  TEXT = "0123456789"
  WRITTEN = Time.utc(1994, 11, 6, 8, 49, 37)
  DATE = "Sun, 06 Nov 1994 08:49:37 GMT"

  def setup
    super
    @folder = File.realpath(Dir.mktmpdir("rondo-sendfile"))
    Dir.mkdir(root)
    write("root/file.txt", TEXT)
    write("outside.txt", "secret")
  end

  def teardown
    super
    FileUtils.rm_rf(@folder)
  end

  def root
    File.join(@folder, "root")
  end

  def file
    File.join(root, "file.txt")
  end

  def write(name, content)
    path = File.join(@folder, name)
    FileUtils.mkdir_p(File.dirname(path))
    File.binwrite(path, content)
    File.utime(WRITTEN, WRITTEN, path)
    path
  end

  # An application that names a file by a header. Its body counts the calls of close.
  def serve_named(path = file, name: "x-sendfile", status: 200, headers: {}, body: @body = Body.new("the body"), **options)
    options[:x_sendfile_roots] ||= [root]
    serve(lint: false, **options) { |_env| [status, { name => path, **headers }, body] }
  end

  def assert_closed_once(body = @body, message = nil)
    eventually("the body is closed") { body.closes.positive? }
    get(serve { [200, {}, []] })
    assert_equal 1, body.closes, message
  end

  # ---- named by a header ----

  def test_the_file_instead_of_the_body
    %w[x-sendfile X-Sendfile X-SENDFILE x-accel-redirect X-Accel-Redirect].each do |name|
      body = Body.new { flunk "the body was read" }
      response = get(serve_named(name: name, body: body))
      assert_equal [200, TEXT, :length], [response.status, response.body, response.framing], name
      assert_equal ["text/plain; charset=utf-8", DATE, "bytes"],
                   [response.header("content-type"), response.header("last-modified"), response.header("accept-ranges")]
      assert_match(/\A"[0-9a-f]+-[0-9a-f]+"\z/, response.header("etag"))
      assert_nil response.header(name.downcase)
      assert_closed_once body, name
    end
    assert_empty log
  end

  def test_a_relative_path_is_looked_up_in_the_working_directory
    Dir.chdir(@folder) do
      ["root/file.txt", "./root/file.txt"].each { |path| assert_equal TEXT, get(serve_named(path)).body, path }
      { "outside.txt" => 500, "../root/file.txt" => 500, "root/../outside.txt" => 500, "root/missing" => 404 }.each do |path, status|
        assert_equal status, get(serve_named(path)).status, path
      end
      assert_equal 500, get(serve_named("root/file.txt", name: "x-accel-redirect")).status
    end
  end

  def test_status_and_fields_are_the_applications
    headers = { "content-type" => "text/odd", "etag" => '"own"', "last-modified" => "Mon, 07 Nov 1994 08:49:37 GMT",
                "content-length" => "3", "Accept-Ranges" => "bytes", "content-disposition" => "attachment",
                "set-cookie" => %w[a=1 b=2] }
    response = get(serve_named(headers: headers))
    assert_equal [200, TEXT, "10"], [response.status, response.body, response.header("content-length")]
    headers.except("content-length", "set-cookie").each do |name, value|
      assert_equal [value], response.fields.filter_map { |key, one| one if key.casecmp?(name) }, name
    end
    assert_equal %w[a=1 b=2], response.fields.filter_map { |key, one| one if key == "set-cookie" }
  end

  # RFC 9110 section 8.8.2.1, and the form of the field for times since 1970.
  def test_times_that_cannot_be_said
    [-86_400, Time.now.to_i + 86_400].each do |seconds|
      client = serve_named
      File.utime(seconds, seconds, file)
      response = get(client)
      assert_equal [200, nil], [response.status, response.header("last-modified")]
      assert_match(/\A"[0-9a-f]+-[0-9a-f]+"\z/, response.header("etag"))
      assert_equal 200, get(client, "/", "If-Modified-Since" => (Time.now + 2 * 86_400).httpdate).status
    end
  end

  def test_another_status_takes_the_whole_file
    client = serve_named(status: 404)
    response = get(client, "/", "Range" => "bytes=0-1", "If-Modified-Since" => DATE)
    assert_equal [404, TEXT, "text/plain; charset=utf-8", nil],
                 [response.status, response.body, response.header("content-type"), response.header("etag")]
    [204, 304].each do |status|
      response = get(serve_named(status: status))
      assert_equal [status, "", nil], [response.status, response.body, response.header("x-sendfile")]
      assert_closed_once @body, status.to_s
    end
  end

  def test_other_methods_take_the_whole_file
    client = serve_named
    response = client.request(bytes("POST", "/", { "Range" => "bytes=0-1", "If-None-Match" => "*" }, "x"))
    assert_equal [200, TEXT], [response.status, response.body]
    response = client.request(bytes("HEAD", "/", "Range" => "bytes=0-1"), head: true)
    assert_equal [200, "10"], [response.status, response.header("content-length")]
    assert_equal 200, get(client).status
  end

  # Ranges and conditions: fields, and the answer to them.
  PARTS = {
    { "Range" => "bytes=2-4" } => [206, "234", "bytes 2-4/10"],
    { "Range" => "bytes=-3" } => [206, "789", "bytes 7-9/10"],
    { "Range" => "bytes=20-" } => [416, "", "bytes */10"],
    { "Range" => "bytes=5-2" } => [200, TEXT, nil],
    { "Range" => "bytes=0-0", "If-Range" => DATE } => [206, "0", "bytes 0-0/10"],
    { "Range" => "bytes=0-0", "If-Range" => '"other"' } => [200, TEXT, nil],
    { "If-Modified-Since" => DATE } => [304, "", nil],
    { "If-None-Match" => '"other"' } => [200, TEXT, nil],
    { "If-None-Match" => "*" } => [304, "", nil],
    { "If-Match" => '"other"' } => [412, "", nil],
    { "If-Unmodified-Since" => "Sun, 06 Nov 1994 08:49:36 GMT" } => [412, "", nil]
  }.freeze

  def test_ranges_and_conditions
    PARTS.each do |fields, expected|
      response = get(serve_named, "/", fields)
      assert_equal expected, [response.status, response.body, response.header("content-range")], fields.inspect
      assert_closed_once @body, fields.inspect
    end
  end

  def test_the_etag_that_was_given
    client = serve_named
    etag = get(client).header("etag")
    response = get(client, "/", "If-None-Match" => etag)
    assert_equal [304, etag, DATE, nil],
                 [response.status, response.header("etag"), response.header("last-modified"), response.header("content-type")]
    assert_equal 206, get(client, "/", "Range" => "bytes=1-1", "If-Range" => etag).status
  end

  def test_the_applications_own_validators
    client = serve_named(headers: { "etag" => '"own"', "last-modified" => "Mon, 07 Nov 1994 00:00:00 GMT",
                                    "content-type" => "text/odd", "x-other" => "kept" })
    response = get(client, "/", "If-None-Match" => 'W/"own"')
    assert_equal [304, '"own"', "kept", nil],
                 [response.status, response.header("etag"), response.header("x-other"), response.header("content-type")]
    assert_equal 200, get(client, "/", "If-Modified-Since" => DATE).status
    assert_equal 206, get(client, "/", "Range" => "bytes=1-1", "If-Range" => '"own"').status
    assert_equal 200, get(client, "/", "If-None-Match" => '"x"', "If-Modified-Since" => "Mon, 07 Nov 1994 00:00:00 GMT").status
  end

  def test_several_ranges
    response = get(serve_named(headers: { "content-type" => "text/odd" }), "/", "Range" => "bytes=0-1,5-6")
    boundary = response.header("content-type")[/\Amultipart\/byteranges; boundary=(\d+)\z/, 1]
    assert_equal 206, response.status
    assert_equal ["content-type: text/odd\r\ncontent-range: bytes 0-1/10\r\n\r\n01",
                  "content-type: text/odd\r\ncontent-range: bytes 5-6/10\r\n\r\n56"],
                 response.body.split(/\r\n--#{boundary}(?:--)?\r\n/).reject(&:empty?)
  end

  def test_no_ranges_where_the_application_says_so
    [{ "accept-ranges" => "none" }, { "content-range" => "bytes 0-9/10" }].each do |headers|
      assert_equal [200, TEXT], get(serve_named(headers: headers), "/", "Range" => "bytes=1-2").then { |r| [r.status, r.body] }
    end
  end

  # Path, as it is written in the header; status; the line of the log.
  def test_what_is_outside_and_what_is_not_there
    write("rootX/file.txt", "secret")
    write("root/folder/file.txt", TEXT)
    File.symlink("../outside.txt", File.join(root, "leaves"))
    File.symlink(@folder, File.join(root, "leaves_far"))
    File.symlink("file.txt", File.join(root, "stays"))
    File.mkfifo(File.join(root, "fifo"))
    {
      file => 200, "#{root}//file.txt" => 200, "#{root}/./file.txt" => 200, "#{root}/stays" => 200,
      "#{root}/none.txt" => 404, "#{root}/folder" => 404, root => 404, "#{root}/" => 404, "#{root}/fifo" => 404,
      "#{root}/leaves" => 404, "#{root}/leaves_far/outside.txt" => 404, "/dev/null" => 500, "#{root}/file.txt/" => 404,
      "#{@folder}/outside.txt" => 500, "#{root}/../outside.txt" => 500, "#{root}X/file.txt" => 500,
      "file.txt" => 500, "./root/file.txt" => 500, "" => 500, "/" => 500, "#{file}\0" => 500, "/etc/passwd" => 500
    }.each do |path, status|
      response = get(serve_named(path))
      assert_equal status, response.status, path
      assert_closed_once @body, path
      lines = @running[-2].log.text.lines
      next assert_empty(lines, path) if status == 200

      assert_equal 1, lines.size, path
      assert_includes lines.first, "#{path.inspect}, which #{status == 500 ? "is not below x_sendfile_root" : "does not exist"}"
      assert_equal ["text/plain; charset=utf-8", status == 500 ? "Internal Server Error\n" : "not found\n"],
                   [response.header("content-type"), response.body]
      refute_includes response.body, "secret"
    end
  end

  def test_escapes_are_those_of_x_accel_redirect_only
    write("root/a b%20.txt", "odd")
    odd = "#{root}/a b%20.txt"
    { "x-sendfile" => { odd => 200, "#{root}/a%20b%2520.txt" => 404 },
      "x-accel-redirect" => { "#{root}/a%20b%2520.txt" => 200, "#{root}/a%20b%20.txt" => 404, "#{root}/a b%2520.txt" => 200,
                              "#{root}/%2e%2e/outside.txt" => 500, "#{file}%00" => 500, "#{root}/a%2" => 404,
                              "#{root}%2ffile.txt" => 200 } }.each do |name, paths|
      paths.each { |path, status| assert_equal status, get(serve_named(path, name: name)).status, "#{name}: #{path}" }
    end
  end

  # Capistrano's "current": the application may name either.
  def test_a_root_that_is_a_symlink
    link = File.join(@folder, "current")
    File.symlink("root", link)
    [[link, file], [link, "#{link}/file.txt"], ["#{link}/", file], [@folder, "#{link}/file.txt"]].each do |folder, path|
      assert_equal TEXT, get(serve_named(path, x_sendfile_roots: [folder])).body, "#{folder}: #{path}"
    end
    assert_equal 500, get(serve_named("#{link}/file.txt", x_sendfile_roots: [root])).status
  end

  def test_roots
    write("second/file.txt", "second")
    roots = [root, File.join(@folder, "second")]
    assert_equal "second", get(serve_named(File.join(@folder, "second/file.txt"), x_sendfile_roots: roots)).body
    assert_equal TEXT, get(serve_named(public: root, x_sendfile_roots: nil), "/app").body
    assert_equal 500, get(serve_named(public: root, x_sendfile_roots: [roots.last]), "/app").status
    error = assert_raises(Rondo::SettingError) { Rondo::Server.new(->(_) {}, x_sendfile_roots: ["/nowhere/at all"]) }
    assert_equal "x_sendfile_root: cannot read the folder /nowhere/at all: No such file or directory", error.message
  end

  def test_without_roots_the_header_passes
    [{}, { public: root, x_sendfile_roots: [] }].each do |options|
      client = serve(lint: false, **options) do |env|
        [200, { "X-Sendfile" => "/elsewhere", "x-accel-redirect" => "/a%20b" }, [env["HTTP_X_SENDFILE_TYPE"]]]
      end
      response = get(client, "/app", "X-Sendfile-Type" => "X-Accel-Redirect")
      assert_equal ["/elsewhere", "/a%20b", "X-Accel-Redirect"],
                   [response.header("x-sendfile"), response.header("x-accel-redirect"), response.body]
    end
  end

  def test_a_client_can_not_ask_for_it
    names = %w[X-Sendfile X-Accel-Redirect X-Sendfile-Type X-Accel-Mapping]
    seen = nil
    client = serve(x_sendfile_roots: [root], allow_underscore_headers: true) do |env|
      seen = env.keys.grep(/SENDFILE|ACCEL/)
      [200, {}, []]
    end
    fields = names.to_h { |name| [name, "/etc"] }
    4.times { get(client, "/", fields) } # a block of fields that comes again is remembered
    assert_empty seen
    get(client, "/", fields.transform_keys { |name| name.tr("-", "_").downcase })
    assert_empty seen
    client.request(bytes("POST", "/", fields, "x"))
    assert_empty seen
  end

  def test_a_client_that_is_gone
    path = write("root/large", "x" * 5_000_000)
    client = serve_named(path)
    client.write(bytes("GET", "/"))
    client.read_some
    client.reset
    assert_closed_once
    left = Queue.new
    body = Body.new("the body")
    client = serve(lint: false, x_sendfile_roots: [root]) do |_env|
      left.pop
      [200, { "x-sendfile" => path }, body]
    end
    client.write(bytes("GET", "/"))
    eventually("it is called") { left.num_waiting == 1 }
    client.reset
    left << 1
    assert_closed_once body
  end

  def test_many_fields
    headers = (1..60).to_h { |n| ["x-#{n}", "v#{n}"] }
    response = get(serve_named(headers: headers), "/", "Range" => "bytes=1-2")
    assert_equal [206, "12", "v60"], [response.status, response.body, response.header("x-60")]
  end

  def test_hijacking_goes_first
    client = serve(lint: false, x_sendfile_roots: [root]) do |_env|
      [200, { "x-sendfile" => file, "rack.hijack" => lambda { |io|
        io.write("taken")
        io.close
      } }, []]
    end
    client.write(bytes("GET", "/"))
    received = client.read_all
    assert received.end_with?("\r\n\r\ntaken")
    refute_includes received, "x-sendfile"
  end

  def test_the_error_handler_names_a_file
    failing = Class.new { define_method(:to_path) { raise "no path" } }
    { file => 503, "/etc/passwd" => 500 }.each do |path, status|
      handler = ->(_error) { [503, { "x-sendfile" => path }, @body = Body.new("the body")] }
      client = serve(lint: false, x_sendfile_roots: [root], lowlevel_error_handler: handler) { [200, {}, failing.new] }
      assert_equal status, get(client).status
      assert_closed_once @body, path
    end
  end

  # ---- Rack::Sendfile ----

  def test_rack_sendfile
    type = nil
    files = Rack::Sendfile.new(lambda { |env|
      type = env["sendfile.type"]
      Rack::Files.new(root).call(env)
    })
    { nil => nil, "X-Sendfile" => "X-Sendfile" }.each do |set, seen|
      client = serve(files, lint: false, x_sendfile_roots: [root], sendfile_type: set)
      response = get(client, "/file.txt")
      assert_equal [200, TEXT, "10"], [response.status, response.body, response.header("content-length")]
      assert_equal [seen], [type]
      assert_equal set.nil?, response.header("etag").nil?, "Rack::Files gives none, X-Sendfile does"
      assert_equal [206, "34"], get(client, "/file.txt", "Range" => "bytes=3-4").then { |r| [r.status, r.body] }
    end
  end

  # Its mapping maps paths to themselves.
  def test_rack_sendfile_with_escapes
    write("root/a b%20?.txt", TEXT)
    files = Rack::Sendfile.new(Rack::Files.new(root), nil, [["/", "/"]])
    client = serve(files, lint: false, x_sendfile_roots: [root], sendfile_type: "X-Accel-Redirect")
    response = get(client, "/a%20b%2520%3F.txt")
    assert_equal [200, TEXT], [response.status, response.body]
    refute_nil response.header("etag")
  end

  # ---- named by the body ----

  def serve_body(body = @body = FileBody.new(file), status: 200, headers: {})
    serve(lint: false) { |_env| [status, headers, body] }
  end

  BODY_PARTS = {
    {} => [200, TEXT, nil],
    { "Range" => "bytes=2-4" } => [206, "234", "bytes 2-4/10"],
    { "Range" => "bytes=20-" } => [416, "", "bytes */10"],
    { "Range" => "bytes=1-1", "If-Range" => '"own"' } => [206, "1", "bytes 1-1/10"],
    { "Range" => "bytes=1-1", "If-Range" => DATE } => [206, "1", "bytes 1-1/10"],
    { "Range" => "bytes=1-1", "If-Range" => '"other"' } => [200, TEXT, nil],
    { "If-None-Match" => '"own"' } => [200, TEXT, nil],
    { "If-Match" => '"other"' } => [200, TEXT, nil]
  }.freeze

  def test_ranges_of_a_body
    BODY_PARTS.each do |fields, expected|
      response = get(serve_body(headers: { "etag" => '"own"', "last-modified" => DATE, "content-length" => "10" }), "/", fields)
      assert_equal expected, [response.status, response.body, response.header("content-range")], fields.inspect
      assert_equal "bytes", response.header("accept-ranges")
      assert_closed_once @body, fields.inspect
    end
    response = get(serve_body, "/", "Range" => "bytes=0-1,5-6")
    assert_match(%r{\Amultipart/byteranges}, response.header("content-type"))
    assert_equal 200, get(serve_body, "/", "Range" => "bytes=1-1", "If-Range" => '"none"').status
  end

  # Status and fields of an answer that must not be cut into parts; its body.
  def test_bodies_without_ranges
    [[201, {}, TEXT], [404, {}, TEXT], [200, { "content-range" => "bytes 0-9/99" }, TEXT], [206, { "content-range" => "bytes 0-9/99" }, TEXT],
     [200, { "content-encoding" => "gzip" }, TEXT], [200, { "Accept-Ranges" => "none" }, TEXT],
     [200, { "content-length" => "4" }, "0123"]].each do |status, headers, body|
      response = get(serve_body(status: status, headers: headers), "/", "Range" => "bytes=2-3")
      assert_equal [status, body], [response.status, response.body], headers.inspect
      assert_includes [nil, "none"], response.header("accept-ranges")
      assert_closed_once
    end
  end

  def test_head_says_what_get_does
    client = serve_body
    heads = [get(client), client.request(bytes("HEAD", "/"), head: true)].map { |one| [one.status, one.fields.sort - [["date", one.header("date")]]] }
    assert_equal(*heads)
    assert_equal 200, get(client).status
    assert_closed(@body, 3)
  end

  def test_a_body_that_promises_more_is_cut
    client = serve_body(headers: { "content-length" => "20" })
    client.write(bytes("GET", "/"))
    assert client.read_all.end_with?("\r\n\r\n#{TEXT}")
    refute_includes log, "shorter"
  end

  def test_what_is_a_file
    [File.open(file), FileBody.new(Pathname(file)), Pathname(file).open].each do |body|
      response = get(serve_body(body), "/", "Range" => "bytes=2-4")
      assert_equal [206, "234"], [response.status, response.body], body.inspect
      assert_predicate body, :closed? if body.is_a?(File)
    end
    client = serve(Rack::Files.new(root))
    assert_equal [200, TEXT], get(client, "/file.txt").then { |r| [r.status, r.body] }
    assert_equal [206, "34"], get(client, "/file.txt", "Range" => "bytes=3-4").then { |r| [r.status, r.body] }
    assert_equal 416, get(client, "/file.txt", "Range" => "bytes=30-").status
  end

  def test_what_is_none_is_enumerated
    fifo = File.join(@folder, "fifo")
    File.mkfifo(fifo)
    [fifo, "/dev/null", "/dev/tty", root, "#{root}/none", "", nil].each do |path|
      response = get(serve_body(FileBody.new(path)), "/", "Range" => "bytes=1-2")
      assert_equal [200, "each was called"], [response.status, response.body], path.inspect
      assert_equal 200, serve_body(FileBody.new(path)).request(bytes("HEAD", "/"), head: true).status
    end
  end

  def test_the_application_closes_whatever_part_is_asked_for
    [{}, { "Range" => "bytes=1-1" }, { "Range" => "bytes=20-" }, { "If-None-Match" => "*" }, { "If-Match" => '"x"' }].each do |fields|
      response = get(serve_named(headers: { "connection" => "close" }), "/", fields)
      assert_equal "close", response.header("connection"), fields.inspect
    end
    response = get(serve_body(headers: { "connection" => "close" }), "/", "Range" => "bytes=20-")
    assert_equal [416, "close"], [response.status, response.header("connection")]
  end

  # ---- files that change ----

  # What a slow client gets of a file whose size changes before the client has read everything.
  def received_while(size)
    path = write("root/large", "x" * 9_000_000)
    client = connect(start(lint: false, x_sendfile_roots: [root]) { [200, { "x-sendfile" => path }, []] }, receive_buffer: 4096)
    client.write(bytes("GET", "/", "Connection" => "close"))
    received = client.read_some
    File.truncate(path, size)
    received << client.read_all
    assert_includes received, "content-length: 9000000\r\n"
    received.split("\r\n\r\n", 2).last
  end

  def test_a_file_that_shrinks_meanwhile
    assert_operator received_while(2_000).bytesize, :<, 9_000_000
    eventually("it is logged") { !log.empty? }
    assert_equal "error: Cut the answer to 127.0.0.1: the file became shorter while it was sent; 1 cut so far", log
  end

  def test_a_file_that_grows_meanwhile
    assert received_while(12_000_000) == "x" * 9_000_000, "the file differs"
    assert_empty log
  end
end
