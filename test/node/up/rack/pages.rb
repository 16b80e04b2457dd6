# frozen_string_literal: true

# SPDX-License-Identifier: MIT

class Pages
  class << self
    def call(env)
      case env["PATH_INFO"]
      when "/" then [200, {}, [first(env)]]
      when "/second" then [200, {}, [second]]
      else
        [404, {}, [third]]
      end
    end

    def first(env)
      <<-HTML
      <h1>First</h1>
      <p>By #{env["REQUEST_METHOD"]}. The next page is <a href="/second">there</a>.</p>
      HTML
    end

    def second
      <<~HTML
        <h1>Second</h1>
          <p>Indented.</p>
      HTML
    end

    def third
      %(<h1>Nothing "here"</h1>)
    end
  end
end
