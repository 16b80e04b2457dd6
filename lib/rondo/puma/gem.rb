# frozen_string_literal: true

# Whether and where the gem puma is: if the program may use it, Rondo does not take its place, neither as its handler
# (lib/rack/handler/puma.rb) nor as its module (library.rb).
# SPDX-License-Identifier: MIT

module Rondo
  # The gem of another server.
  # @api private
  module PumaGem
    # What Rackup, Rack 2 and Capybara require.
    HANDLER = "rack/handler/puma.rb"
    # Whose folder has this as well is no Puma.
    OWN = "rondo.rb"
    private_constant :OWN

    module_function

    # With Bundler only a gem of the bundle counts, without it every one that is installed.
    # @return [String, nil] the folder with its code
    def folder
      there = $LOAD_PATH.map(&:to_s).find do |path|
        File.file?(File.join(path, HANDLER)) && !File.file?(File.join(path, OWN))
      end
      there || (defined?(::Gem::Specification) && of_specification) || nil
    end

    # @return [Boolean]
    def there?
      !folder.nil?
    end

    def of_specification
      ::Gem::Specification.find_all_by_name("puma").first&.full_require_paths&.find do |path|
        File.file?(File.join(path, HANDLER))
      end
    end
    private_class_method :of_specification
  end
end
