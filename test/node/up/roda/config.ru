# frozen_string_literal: true

# As Up!'s application with Roda: nested routes, and an application that is frozen.
# SPDX-License-Identifier: MIT

require "roda"

class Greetings < Roda
  route do |r|
    r.root do
      r.redirect "/greet"
    end

    r.on "greet" do
      @word = "Hello"

      r.get "all" do
        "#{@word} all!"
      end

      r.is do
        r.get do
          "#{@word}!"
        end

        r.post do
          puts "somebody says #{@word}"
          r.redirect
        end
      end
    end
  end
end

run Greetings.freeze
