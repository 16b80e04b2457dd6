# frozen_string_literal: true

# The contents of a request's env, and that the env belongs to this request alone.
# SPDX-License-Identifier: MIT

require_relative "rack_case"

class RackEnvTest < RackCase
  BASE_KEYS = %w[
    REQUEST_METHOD SCRIPT_NAME PATH_INFO QUERY_STRING SERVER_NAME SERVER_PORT SERVER_PROTOCOL
    REMOTE_ADDR rack.url_scheme rack.errors rack.input rack.hijack? rack.hijack
    rack.response_finished rack.upgrade?
  ].freeze
  CONSTANT_INSPECT = /\A(#<Rondo::\w+>|"[^"]*"|nil|true|false|\[\])\z/

  def env_of(request, **options)
    seen = nil
    client = serve(**options) do |env|
      seen = env.dup
      [200, {}, []]
    end
    assert_equal 200, client.request(request).status
    seen
  end

  def test_exactly_the_documented_keys
    env = env_of(bytes("GET", "/"))
    assert_equal (BASE_KEYS + ["HTTP_HOST"]).sort, env.keys.sort
  end

  def test_the_page_has_them_all
    page = File.read(File.expand_path("../../../docs/REQUEST.md", __dir__))
    table = page[/ Fifteen keys are always\npresent:\n\n(.*?)\n\n/m, 1]
    keys = table.lines.drop(2).flat_map { |row| row[/\A\| (.*?) \|/, 1].scan(/`(.*?)`/) }.flatten
    assert_equal BASE_KEYS.sort, keys.sort
    assert_equal 15, keys.size
  end

  def test_it_is_a_plain_unfrozen_hash_without_default
    client = serve(->(env) { [200, {}, [env.class.name, env.frozen?.inspect, env["none"].inspect]] }, lint: false)
    assert_equal "Hashfalsenil", get(client).body
  end

  def test_request_line
    env = env_of(bytes("GET", "/a%20b/%2e%2e/c?x=1&y=%zz?"))
    assert_equal "GET", env["REQUEST_METHOD"]
    assert_equal "/a%20b/%2e%2e/c", env["PATH_INFO"]
    assert_equal "x=1&y=%zz?", env["QUERY_STRING"]
    assert_equal "", env["SCRIPT_NAME"]
    assert_equal "HTTP/1.1", env["SERVER_PROTOCOL"]
  end

  def test_no_query_is_an_empty_string
    assert_equal "", env_of(bytes("GET", "/"))["QUERY_STRING"]
    assert_equal "", env_of(bytes("GET", "/?"))["QUERY_STRING"]
  end

  def test_http_1_0
    assert_equal "HTTP/1.0", env_of(bytes("GET", "/", version: "1.0"))["SERVER_PROTOCOL"]
  end

  %w[GET HEAD POST PUT DELETE OPTIONS PATCH TRACE PROPFIND BREW].each do |method|
    define_method("test_method_#{method}") do
      method_seen = Queue.new
      client = serve do |env|
        method_seen << env["REQUEST_METHOD"]
        [204, {}, []]
      end
      assert_equal 204, client.request(bytes(method, "/"), head: method == "HEAD").status
      assert_equal method, take(method_seen)
    end
  end

  def test_methods_are_case_sensitive
    assert_equal "get", env_of(bytes("get", "/"))["REQUEST_METHOD"]
  end

  def test_options_asterisk
    assert_equal "*", env_of(bytes("OPTIONS", "*"))["PATH_INFO"]
  end

  def test_server_name_and_port_come_from_host
    env = env_of(bytes("GET", "/", "Host" => "shop.example:8080"))
    assert_equal %w[shop.example 8080 shop.example:8080], env.values_at("SERVER_NAME", "SERVER_PORT", "HTTP_HOST")
    env = env_of(bytes("GET", "/", "Host" => "shop.example"))
    assert_equal %w[shop.example 80], env.values_at("SERVER_NAME", "SERVER_PORT")
    env = env_of(bytes("GET", "/", "Host" => "[::1]:81"))
    assert_equal %w[[::1] 81], env.values_at("SERVER_NAME", "SERVER_PORT")
  end

  def test_absolute_form_replaces_host
    env = env_of(bytes("GET", "http://other.example:81/p?q", "Host" => "first.example"))
    assert_equal %w[other.example 81 /p q],
                 env.values_at("SERVER_NAME", "SERVER_PORT", "PATH_INFO", "QUERY_STRING")
    assert_equal "other.example:81", env["HTTP_HOST"]
  end

  def test_absolute_form_without_path
    assert_equal "/", env_of(bytes("GET", "http://test.example", "Host" => "test.example"))["PATH_INFO"]
  end

  def test_1_0_without_host
    env = env_of("GET / HTTP/1.0\r\n\r\n")
    assert_match(/\A[\w.-]+\z/, env["SERVER_NAME"])
    assert_match(/\A\d+\z/, env["SERVER_PORT"])
    refute env.key?("HTTP_HOST")
  end

  def test_default_host
    env = env_of("GET / HTTP/1.0\r\n\r\n", default_host: "main.example:8443")
    assert_equal %w[main.example 8443], env.values_at("SERVER_NAME", "SERVER_PORT")
  end

  { "main.example" => %w[main.example 80], "[::1]:3000" => %w[[::1] 3000], "[::1]" => %w[[::1] 80] }.each do |text, place|
    define_method("test_default_host_#{text}") do
      env = env_of("GET / HTTP/1.0\r\n\r\n", default_host: text)
      assert_equal place, env.values_at("SERVER_NAME", "SERVER_PORT")
    end
  end

  ["", "::1", "main.example:http", "main.example:99999", "http://main.example", "[::1", "a b"].each do |text|
    define_method("test_default_host_refuses_#{text.inspect}") do
      error = assert_raises(Rondo::SettingError) { Rondo::Server.new(->(_) {}, default_host: text) }
      assert_match(/\Adefault_host: /, error.message)
    end
  end

  def test_remote_addr
    assert_equal "127.0.0.1", env_of(bytes("GET", "/"))["REMOTE_ADDR"]
  end

  def test_url_scheme
    assert_equal "http", env_of(bytes("GET", "/"))["rack.url_scheme"]
    env = env_of(bytes("GET", "/"), url_scheme: "https")
    assert_equal %w[https 443], env.values_at("rack.url_scheme", "SERVER_PORT")
  end

  # One client, one host, the same fields: only the version tells the requests apart.
  def test_versions_alternate
    client = serve { |env| [200, { "x-protocol" => env["SERVER_PROTOCOL"] }, []] }
    4.times do
      %w[1.0 1.1 1.7].zip(%w[HTTP/1.0 HTTP/1.1 HTTP/1.1]) do |version, protocol|
        client.write("GET / HTTP/#{version}\r\nHost: h\r\nAccept: a/b\r\nConnection: keep-alive\r\n\r\n")
        assert_equal protocol, client.response.header("x-protocol"), version
      end
    end
  end

  def test_header_names
    env = env_of(bytes("GET", "/", "X-One" => "1", "aCCept" => "*/*", "x-a.b" => "dot"))
    assert_equal "1", env["HTTP_X_ONE"]
    assert_equal "*/*", env["HTTP_ACCEPT"]
    assert_equal "dot", env["HTTP_X_A.B"]
  end

  def test_content_type_and_length_have_no_prefix
    env = env_of(bytes("POST", "/", { "Content-Type" => "text/x", "Content-Length" => 3 }, "abc"))
    assert_equal %w[text/x 3], env.values_at("CONTENT_TYPE", "CONTENT_LENGTH")
    refute_includes env.keys.join(" "), "HTTP_CONTENT"
  end

  def test_repeated_fields_are_joined
    env = env_of(bytes("GET", "/", "X-One" => %w[a b], "Accept" => %w[c d], "Cookie" => %w[e=1 f=2]))
    assert_equal "a, b", env["HTTP_X_ONE"]
    assert_equal "c, d", env["HTTP_ACCEPT"]
    assert_equal "e=1; f=2", env["HTTP_COOKIE"]
  end

  def test_frozen_lists
    env = env_of(bytes("GET", "/", "X-One" => %w[a b c], "Accept" => %w[d e]), frozen_headers: 1)
    assert_equal ["a, b, c", "d, e"], env.values_at("HTTP_X_ONE", "HTTP_ACCEPT")
    assert(env.values_at("HTTP_X_ONE", "HTTP_ACCEPT").all?(&:frozen?))
  end

  # No copy of the list is left for each of its values.
  def test_a_list_grows_where_it_is
    [0, 1].each do |frozen|
      values = ["grows #{frozen} #{"a" * 400}"] * 100
      GC.disable
      env = env_of(bytes("GET", "/", "X-One" => values), frozen_headers: frozen)
      list = "#{values.first}, "
      copies = ObjectSpace.each_object(String).count { |text| text.encoding == Encoding::BINARY && text.start_with?(list) }
      GC.enable
      assert_equal values.join(", "), env["HTTP_X_ONE"]
      assert_operator copies, :<, 5
    end
  ensure
    GC.enable
  end

  def test_names_that_could_be_mistaken_for_others
    env = env_of(bytes("GET", "/", "Proxy" => "evil", "X_Forwarded_For" => "1.1.1.1",
                                   "Content_Length" => "7", "Remote-Addr" => "1.2.3.4"))
    refute env.key?("HTTP_PROXY")
    refute env.key?("HTTP_X_FORWARDED_FOR")
    refute env.key?("CONTENT_LENGTH")
    assert_equal "127.0.0.1", env["REMOTE_ADDR"]
    assert_equal "1.2.3.4", env["HTTP_REMOTE_ADDR"]
  end

  def test_names_with_underscores_on_request
    env = env_of(bytes("GET", "/", "X_One" => "line"), allow_underscore_headers: 1)
    assert_equal "line", env["HTTP_X_ONE"]
    env = env_of(bytes("GET", "/", "X_One" => "line", "X-One" => "dash"), allow_underscore_headers: 1)
    assert_equal "dash", env["HTTP_X_ONE"]
  end

  def test_values_with_blanks_around_and_empty_ones
    env = env_of("GET / HTTP/1.1\r\nHost: h\r\nX-One: \t v w \t\r\nX-None:\r\n\r\n")
    assert_equal "v w", env["HTTP_X_ONE"]
    assert_equal "", env["HTTP_X_NONE"]
  end

  def test_bytes_beyond_ascii_are_binary_and_unchanged
    env = env_of("GET /p HTTP/1.1\r\nHost: h\r\nX-One: gr\xC3\xBC\xC3\x9F\r\nX-Odd: \xFF\xFE\r\n\r\n".b)
    assert_equal "gr\xC3\xBC\xC3\x9F".b, env["HTTP_X_ONE"]
    assert_equal "\xFF\xFE".b, env["HTTP_X_ODD"]
    assert_equal [Encoding::BINARY], env.values_at("HTTP_X_ONE", "HTTP_X_ODD").map(&:encoding).uniq
  end

  def test_keys_are_frozen_and_values_of_the_client_are_not
    env = env_of(bytes("POST", "/path?query", { "X-Short" => "s", "X-Long" => "l" * 200, "Cookie" => "c=1" }, "b"))
    assert(env.keys.all?(&:frozen?))
    %w[PATH_INFO QUERY_STRING HTTP_X_SHORT HTTP_X_LONG HTTP_COOKIE].each do |key|
      refute_predicate env[key], :frozen?, key
    end
    %w[REQUEST_METHOD SERVER_PROTOCOL rack.url_scheme].each { |key| assert_predicate env[key], :frozen?, key }
  end

  def test_frozen_headers
    env = env_of(bytes("GET", "/", "X-Short" => "s", "X-Long" => "l" * 200), frozen_headers: 1)
    assert_predicate env["HTTP_X_SHORT"], :frozen?
    assert_predicate env["HTTP_X_LONG"], :frozen?
  end

  def test_changing_values_in_place_leaves_the_next_request_alone
    client = serve(lint: false) do |env|
      before = env.select { |_, value| value.is_a?(String) }.transform_values(&:dup)
      env.each_value { |value| value << "-changed" if value.is_a?(String) && !value.frozen? }
      env["own"] = "1"
      env.delete("REQUEST_METHOD")
      [200, {}, [Marshal.dump(before)]]
    end
    request = bytes("GET", "/p?q", "X-Short" => "s", "X-Long" => "l" * 200, "Accept" => "a" * 60,
                                   "User-Agent" => "tester", "Host" => "long-enough-to-be-shared.example:8080")
    first = Marshal.load(client.request(request).body)
    5.times { assert_equal first, Marshal.load(client.request(request).body) }
    assert_equal first, Marshal.load(connect.request(request).body)
    assert_equal "l" * 200, first["HTTP_X_LONG"]
  end

  SECRETS = { "HTTP_COOKIE" => "Cookie", "HTTP_AUTHORIZATION" => "authorization", "HTTP_X_CSRF_TOKEN" => "X-CSRF-Token" }.freeze

  # The fields around a secret came before, and are not parsed again; its value is another one each time.
  def test_secrets_among_fields_that_came_before
    SECRETS.each do |key, name|
      client = serve { |env| [200, {}, [Marshal.dump(env.select { |_, value| value.is_a?(String) })]] }
      clients = [client, connect]
      values = ["a=b", "c" * 100, "gr\xC3\xBC".b, "a=b", "d", ""]
      values.product(clients).each do |value, one|
        fields = { "Accept" => "text/html", name => value, "X-Long" => "l" * 100 }
        env = Marshal.load(one.request(bytes("GET", "/p", fields)).body)
        assert_equal [value.b, "text/html", "l" * 100, "/p"], env.values_at(key, "HTTP_ACCEPT", "HTTP_X_LONG", "PATH_INFO")
        refute_predicate env[key], :frozen?
      end
      env = Marshal.load(get(client, "/p", "Accept" => "text/html", "X-Long" => "l" * 100).body)
      refute_includes env, key
    end
  end

  def test_an_env_that_is_kept_never_changes
    kept = []
    client = serve do |env|
      kept << env
      [200, {}, []]
    end
    20.times { |n| get(client, "/p#{n}?q#{n}", "X-Number" => n.to_s, "X-Long" => "#{n}-" * 40) }
    GC.start
    assert_equal 20, kept.map(&:object_id).uniq.size
    kept.each_with_index do |env, n|
      assert_equal ["/p#{n}", "q#{n}", n.to_s, "#{n}-" * 40],
                   env.values_at("PATH_INFO", "QUERY_STRING", "HTTP_X_NUMBER", "HTTP_X_LONG")
    end
  end

  def test_every_object_of_the_server_inspects_to_a_constant
    client = serve(lint: false) do |env|
      own = env.reject { |key, _| key.start_with?("HTTP_") || key =~ /\A[A-Z_]+\z/ }
      [200, {}, own.map { |key, value| "#{key}=#{value.inspect}\n" }]
    end
    bodies = [get(client), get(client), post(connect, "/", "x" * 10)].map(&:body)
    bodies.each { |body| body.each_line(chomp: true) { |line| assert_match CONSTANT_INSPECT, line.split("=", 2)[1] } }
    assert_equal 1, bodies.uniq.size
  end

  def test_chunked_bodies_come_with_their_length_and_without_their_coding
    client = serve(lint: false) do |env|
      [200, {}, [env.values_at("CONTENT_LENGTH", "HTTP_TRANSFER_ENCODING").inspect]]
    end
    response = client.request(bytes("POST", "/", { "Transfer-Encoding" => "chunked" }, chunked("ab", "c")))
    assert_equal '["3", nil]', response.body
  end

  def test_trailers_never_reach_the_env
    client = serve(lint: false) { |env| [200, {}, [env.keys.grep(/SECRET|AUTHORIZATION/).inspect]] }
    body = "1\r\nx\r\n0\r\nX-Secret: 1\r\nAuthorization: Basic x\r\n\r\n"
    assert_equal "[]", client.request(bytes("POST", "/", { "Transfer-Encoding" => "chunked" }, body)).body
  end

  def test_pipelined_requests_have_their_own_env
    client = serve { |env| [200, {}, [env["PATH_INFO"], env["HTTP_X_ONE"].to_s]] }
    client.write((1..50).map { |n| bytes("GET", "/#{n}", n.odd? ? { "X-One" => "o#{n}" } : {}) }.join)
    (1..50).each { |n| assert_equal "/#{n}#{"o#{n}" if n.odd?}", client.response.body }
  end
end
