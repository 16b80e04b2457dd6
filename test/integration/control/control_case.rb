# frozen_string_literal: true

# Shared by the tests of the control server: a server that has one, its token, and requests to it.
# SPDX-License-Identifier: MIT

require_relative "../shell_case"
require "json"

class ControlCase < ShellCase
  TOKEN = "a-token-of-the-tests"

  def setup
    super
    write "config.ru", HELLO
  end

  # @param uri [String] of the control server
  def controlled(*words, uri: "tcp://127.0.0.1:0", token: TOKEN, **options)
    token_words = token ? ["--control-token", token] : []
    server = start("--control-url", uri, *token_words, *words, **options)
    server.wait_for_log(/Use Ctrl-C to stop/)
    server
  end

  # @return [String] where the control server listens, from the log
  def control_url(server)
    server.log[/^\* Control server on (\S+)/, 1] or flunk server.log
  end

  # @return [Integer] for clients
  def control_port(server)
    XorProxy.front_port(control_url(server)[/\d+\z/].to_i)
  end

  # @return [Net::HTTPResponse]
  def control(server, path, headers = {}, token: TOKEN, verb: :get)
    http = Net::HTTP.new("127.0.0.1", control_port(server))
    http.read_timeout = PATIENCE
    headers = headers.merge("authorization" => "Bearer #{token}") if token
    verb == :get ? http.get(path, headers) : http.post(path, "", headers)
  end

  # @return [Result] of `rondo ctl`
  def ctl(*words)
    rondo("ctl", *words)
  end
end
