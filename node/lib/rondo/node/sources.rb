# frozen_string_literal: true

# Finds the file that a `require` means: first this gem's own Ruby for Opal (with its shims), then Opal's library, then
# the application's folders, then the gems.
# SPDX-License-Identifier: MIT

require "opal"
require "rondo/node"

module Rondo
  module Node
    # A gem has more than Ruby.
    class CompiledGem < Error; end

    # Names of features to absolute paths.
    class Sources
      # Ruby of this gem that runs on Node.
      OWN = File.join(ROOT, "lib/rondo/node/opal")
      # One file for each library that does not run as it is.
      SHIMS = File.join(OWN, "shims")
      # Places of gems that Opal cannot run: one file for each file, with the reason.
      EDITS = File.join(ROOT, "lib/rondo/node/edits")
      OPAL = [Opal.core_dir, Opal.std_dir].freeze
      EXTENSIONS = ["", ".rb", ".js"].freeze
      # A line of a gem that changes the string of a variable: strings cannot be changed here, but variables can.
      IN_PLACE = /^( *)(@?[a-z_]\w*)&?\.([lr]?strip|(?:down|up|swap)case|capitalize|chom?p|g?sub|squeeze|tr)!(.*)$/
      GEM = %r{/gems/([^/]+?)-(\d[^/-]*)/}
      private_constant :EXTENSIONS, :GEM, :IN_PLACE

      # @param folder [String] that of the application
      def initialize(folder)
        @folder = folder
        @gem_folders = []
      end

      # @param feature [String] as `require` gets it
      # @return [String, nil] absolute path
      # @raise [CompiledGem]
      def find(feature)
        return absolute(feature) if feature.start_with?("/")
        return file(File.expand_path(feature)) if feature.start_with?("./", "../")

        look(feature, [SHIMS, OWN, *OPAL]) || on_load_path(feature) || in_gems(feature)
      end

      # Files of Opal keep the names by which they know each other, everything else is named by its path.
      # @param path [String]
      # @return [String] name of the module in the JavaScript
      def name_of(path)
        base = OPAL.find { |folder| path.start_with?("#{folder}/") }
        (base ? path.delete_prefix("#{base}/") : path.delete_prefix("/")).sub(/\.(?:rb|js)\z/, "")
      end

      # @param path [String]
      # @return [Boolean] whether a release of Opal has it: its contents need no check
      def opal?(path)
        OPAL.any? { |folder| path.start_with?("#{folder}/") }
      end

      # @param path [String]
      # @return [String] the text of the file, as it is compiled
      def read(path)
        source = File.read(path, encoding: Encoding::UTF_8)
        base = @gem_folders.find { |folder| path.start_with?("#{folder}/") }
        return source unless base && source.valid_encoding?

        edit(source.gsub(IN_PLACE, '\1\2 = \2.\3\4'), path.delete_prefix("#{base}/").sub(/\.rb\z/, ".txt"))
      end

      # @param path [String]
      # @return [Boolean] whether it is of the application, not of a gem
      def application?(path)
        !path.start_with?(OWN) && !opal?(path) && @gem_folders.none? { |folder| path.start_with?("#{folder}/") }
      end

      private

      def edit(source, name)
        edits = File.join(EDITS, name)
        return source unless File.file?(edits)

        File.read(edits).scan(/^- (.*)\n\+ (.*)$/).inject(source) { |text, (old, new)| text.gsub(old) { new } }
      end

      # A gem may require its own files by their paths; a shim of that name comes before them all the same.
      def absolute(path)
        base = (load_path + @gem_folders).find { |folder| path.start_with?("#{folder}/") }
        shim = base && file(File.join(SHIMS, path.delete_prefix("#{base}/")))
        shim || file(path)
      end

      def look(feature, folders)
        folders.each do |folder|
          found = file(File.join(folder, feature))
          return found if found
        end
        nil
      end

      def file(path)
        EXTENSIONS.map { |extension| path + extension }
                  .find { |candidate| candidate.end_with?(".rb", ".js", ".ru") && File.file?(candidate) }
      end

      # Folders of -I and of Bundler, without Ruby's own library: Opal has its own.
      def load_path
        @load_path ||= $LOAD_PATH.map(&:to_s).reject { |folder| ruby?(folder) } + [@folder, File.join(@folder, "lib")]
      end

      def ruby?(folder)
        folder.start_with?(ROOT) || RbConfig::CONFIG.values_at("rubylibdir", "sitedir", "vendordir", "archdir")
                                                    .compact.any? { |own| folder.start_with?(own) }
      end

      # Bundler puts folders of gems there.
      def on_load_path(feature)
        found = look(feature, load_path) or return
        name, version = found.match(GEM)&.captures
        use(Gem::Specification.find_by_name(name, version)) if name
        found
      rescue Gem::MissingSpecError
        found
      end

      def in_gems(feature)
        spec = Gem::Specification.find_by_path(feature) || Gem::Specification.find_by_path("#{feature}.rb") or return
        use(spec)
        look(feature, spec.full_require_paths)
      end

      def use(spec)
        unless spec.extensions.empty?
          raise CompiledGem, "the gem #{spec.name} needs C: its extension cannot be compiled to JavaScript"
        end

        @gem_folders |= spec.full_require_paths
      end
    end
  end
end
