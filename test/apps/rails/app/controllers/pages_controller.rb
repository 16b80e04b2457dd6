# frozen_string_literal: true

# Cookies, addresses, conditional requests, errors.
# SPDX-License-Identifier: MIT

class PagesController < ApplicationController
  include Gated

  # Not buffered by Rack::ETag, which looks at last-modified.
  def lazy
    response.headers["content-type"] = "text/plain"
    response.headers["last-modified"] = Time.now.httpdate
    self.response_body = Enumerator.new { |out| lines { |line| out << line } }
  end

  def remember
    cookies[:plain] = "a b"
    cookies.signed[:signed] = "s"
    cookies.encrypted[:secret] = { value: "e", httponly: true }
    session[:count] = session.fetch(:count, 0) + 1
    redirect_to remembered_path
  end

  def remembered
    values = [cookies[:plain], cookies.signed[:signed], cookies.encrypted[:secret], session[:count]]
    render plain: values.join(",")
  end

  def fails
    raise ArgumentError, "on purpose"
  end

  def where
    render plain: [root_url, request.remote_ip, request.protocol, request.port].join(" ")
  end

  def cached
    fresh_when(etag: "version 1", public: true)
    render plain: "cached" unless performed?
  end
end
