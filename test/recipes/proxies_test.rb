# frozen_string_literal: true

# The configurations of examples/recipes for proxies, with the proxies themselves: who the client is, event streams,
# WebSockets, the PROXY protocol.
# SPDX-License-Identifier: MIT

require_relative "recipe_case"

class RecipeProxiesTest < RecipeCase
  TRUSTED = { "TRUSTED_PROXIES" => "127.0.0.1" }.freeze

  def test_nginx
    port = free_port
    front = proxy("nginx") do |own|
      nginx(own, filled("nginx.conf", "127.0.0.1:9292" => "127.0.0.1:#{port}", "listen 80;" => "listen 127.0.0.1:#{own.port};"))
    end
    behind(front, port)
  end

  def test_haproxy
    port = free_port
    front = haproxy("haproxy.cfg", "127.0.0.1:9292" => "127.0.0.1:#{port}", "bind :80" => "bind 127.0.0.1:%d")
    behind(front, port) { eventually("haproxy sees that the server is up") { fetch(front.url, "/up").code == "200" } }
  end

  def test_caddy
    port = free_port
    front = proxy("caddy") do |own|
      run = ["caddy", "run", "--adapter", "caddyfile", "--config",
             own.write("Caddyfile", "{\n\tadmin off\n}\n#{filled("Caddyfile", "app.example.com {" => "http://:#{own.port} {",
                                                                              "127.0.0.1:9292" => "127.0.0.1:#{port}")}")]
      ["env", "HOME=#{own.folder}", *run]
    end
    behind(front, port)
  end

  # With its own address, for which it would fetch a certificate.
  def test_caddy_reads_the_file_as_it_is
    skip "caddy is not installed" unless program("caddy")
    result = run_command("caddy", "adapt", "--adapter", "caddyfile", "--config", File.join(RECIPES, "Caddyfile"), env: { "HOME" => @folder })
    assert_equal 0, result.code, result.err
    assert_includes result.out, '"app.example.com"'
    refute_match(/WARN|not formatted/, result.err)
  end

  def test_haproxy_with_the_proxy_protocol_passes_tls_and_http2_on
    port = free_port
    File.write(File.join(@folder, "config/rondo.rb"), "\nproxy_protocol_from [\"127.0.0.1\"]\n", mode: "a")
    front = haproxy("haproxy_proxy_protocol.cfg", "127.0.0.1:9292" => "127.0.0.1:#{port}", "bind :443" => "bind 127.0.0.1:%d")
    serve("bundle exec rondo -e development --tls", { "PORT" => port.to_s, "RACK_ENV" => nil, "XDG_STATE_HOME" => @folder,
                                                      "XDG_DATA_HOME" => @folder, "XDG_CACHE_HOME" => @folder })
    result = run_command("curl", "-sSk", "--http2", "--interface", CLIENT, "-w", "%{http_version}", "https://127.0.0.1:#{front.port}/client")
    assert_equal "https 127.0.0.1 #{CLIENT}\n2", result.out, result.err
  end

  def test_cloudflare
    port = free_port
    write "config/cloudflare_ips.txt", "127.0.0.1/32\n2001:db8::/32\n"
    own = File.readlines(File.join(@folder, "config/rondo.rb")).grep_v(/^trusted_proxies/).join
    write "config/rondo.rb", own + recipe("cloudflare.rb")
    serve("bundle exec rondo", { "PORT" => port.to_s })
    fields = { "CF-Connecting-IP" => "203.0.113.6", "X-Forwarded-Proto" => "https", "Host" => "app.example.com" }
    url = "http://127.0.0.1:#{port}"
    assert_equal "https app.example.com 203.0.113.6\n", fetch(url, "/client", fields, from: "127.0.0.1").body
    assert_includes fetch(url, "/client", fields).body, CLIENT # not of Cloudflare
  end

  private

  def haproxy(name, changes)
    proxy("haproxy") do |own|
      [program("haproxy"), "-db", "-f", own.write("haproxy.cfg", filled(name, changes.transform_values { |text| format(text, own.port) }))]
    end
  end

  def behind(front, port)
    serve("bundle exec rondo", TRUSTED.merge("PORT" => port.to_s))
    yield if block_given?
    assert_client_known(front.url)
    assert_stream(front.url)
    assert_websocket(front.url)
  end
end
