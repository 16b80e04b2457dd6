# frozen_string_literal: true

# In development an ssl:// address needs no certificate: curl and a browser accept what the server shows, once they
# trust the authority that it names.
# SPDX-License-Identifier: MIT

require_relative "tls_case"
require "rondo"
require "rondo/certificates/trust"
require "stringio"

class TLSDevelopmentTest < TLSCase
  # On a machine with the gem `localhost` its certificates would be used: for these servers there is none.
  def environment
    write "without/localhost/authority.rb", "raise LoadError, 'not on this machine'\n"
    { "RUBYLIB" => [File.join(@folder, "without"), *ENV.fetch("RUBYLIB", nil)].join(File::PATH_SEPARATOR), "XDG_STATE_HOME" => File.join(@folder, "state"),
      "XDG_DATA_HOME" => File.join(@folder, "data"), "HOME" => @folder, "CAROOT" => nil }
  end

  def authority
    File.join(@folder, "state/rondo/development/ca.pem")
  end

  # A name below localhost is one of the loopback in every program that asks the system.
  def develop(*words, host: "localhost", **options)
    start(*words, binds: ["ssl://#{host}:0"], env: environment, **options)
  end

  def assert_served(server, host: "localhost")
    result = run_command("curl", "-sS", "--cacert", authority, "--resolve", "#{host}:#{server.port}:127.0.0.1",
                         "https://#{host}:#{server.port}/")
    assert_match(/\Ahttps on /, result.out, result.err)
  end

  def test_one_line_says_what_is_used
    server = develop
    assert_equal 1, server.log.scan(/^\* Certificate for localhost: by #{authority}; browsers trust it after `rondo cert trust`$/).size
    ["localhost", "127.0.0.1"].each { |host| assert_served(server, host: host) }
    result = rondo("cert", "trust", "--print", env: environment)
    assert_equal 0, result.code, result.err
    assert_includes result.out, authority
  end

  def test_a_name_below_localhost
    assert_served(develop(host: "app.localhost"), host: "app.localhost")
  end

  def test_a_configuration_file
    write "config/rondo.rb", "ssl_bind 'localhost', 0\n"
    port = start(binds: [], env: environment).wait_for_log(%r{Listening on https://127\.0\.0\.1:(\d+)})[1]
    result = run_command("curl", "-sS", "--cacert", authority, "https://localhost:#{port}/")
    assert_match(/\Ahttps on /, result.out, result.err)
  end

  def test_workers_and_restarts
    server = develop("-w", "2")
    server.wait_for_log(/(booted in.*){2}/m)
    assert_served(server)
    { "USR1" => /(phase: 1.*){2}/m, "USR2" => /(phase: \d.*){2}/m }.each do |signal, pattern|
      from = server.log.bytesize
      server.signal(signal)
      server.wait_for_log(pattern, from: from)
      assert_served(server)
    end
  end

  # Chromium reads its user's database, into which the command puts the authority.
  def test_a_browser_trusts_it
    skip "chromium is not installed" unless system("command -v chromium >/dev/null")
    server = develop
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--dump-dom",
             "--user-data-dir=#{@folder}/profile", "https://localhost:#{server.port}/"]
    refute_match(/https on/, run_command(*words, env: environment).out)
    Rondo::Certificates::Trust.new(authority, out: StringIO.new, home: @folder, root: @folder).run
    assert_match(/https on/, run_command(*words, env: environment).out)
  end

  def test_not_in_production
    { "RACK_ENV" => "production", "RAILS_ENV" => "staging" }.each do |variable, value|
      result = rondo("-b", "ssl://localhost:0", env: { **environment, variable => value })
      assert_complaint 1, /\Arondo: cannot listen on ssl:..localhost:0: cert is missing, and the environment is #{value}; /, result
    end
    refute_path_exists authority
  end

  def test_the_words_of_the_command
    assert_equal 1, rondo("cert", "trst").code
    assert_match(/cannot trst; did you mean trust\?/, rondo("cert", "trst").err)
    assert_match(/^Usage: rondo cert VERB/, rondo("cert", "--help").out)
  end
end
