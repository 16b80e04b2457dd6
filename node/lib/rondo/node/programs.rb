# frozen_string_literal: true

# The programs that this gem calls: node, npm and esbuild; and the packages that npm installs.
# SPDX-License-Identifier: MIT

require "open3"
require "rondo/node"

module Rondo
  module Node
    # Finds and runs them.
    module Programs
      # Of the lock file, which npm installs from.
      LOCK = File.join(ROOT, "package-lock.json")
      # The folder of another lock file, for those who want uWebSockets.js.
      UWS = File.join(ROOT, "uws")
      private_constant :UWS

      class << self
        # @return [String] path of a node that is new enough
        # @raise [Error] there is none
        def node
          path = find("node") or raise Error, "there is no node in PATH: install Node.js #{NODE_MAJOR} or newer"
          version = capture(path, "--version").first[/\Av(\d+)\./, 1]
          return path if version.to_i >= NODE_MAJOR

          raise Error, "#{path} is too old: Node.js #{NODE_MAJOR} or newer is needed, this is #{version || "none"}"
        end

        # @param cache [Cache]
        # @return [String] a folder `node_modules` with the packages of the lock file
        # @raise [Error] npm is missing, or it fails
        def packages(cache)
          own = File.join(ROOT, "node_modules")
          File.directory?(own) ? own : installed(cache, ROOT)
        end

        # @param cache [Cache]
        # @return [String] path of the file of uWebSockets.js that is required
        # @raise [Error] npm is missing, or it fails
        def uws(cache)
          File.join(installed(cache, UWS), "@btc-vision/uwebsockets.js/uws.js")
        end

        # @param packages [String] the folder of `packages`
        # @param words [Array<String>] of esbuild's command line
        # @raise [Error]
        def esbuild(packages, *words)
          output, status = capture({ "NODE_PATH" => packages }, File.join(packages, ".bin", "esbuild"), *words)
          raise Error, "esbuild: #{first_line(output)}" unless status.success?
        end

        # @param path [String] a file of JavaScript
        # @return [Array(Integer, String), nil] line and message, if it is not valid
        def syntax_error(path)
          output, status = capture(node, "--check", path)
          return if status.success?

          [output[/^#{Regexp.escape(path)}:(\d+)/, 1].to_i, output[/^SyntaxError: .*/] || first_line(output)]
        end

        private

        def find(name)
          ENV.fetch("PATH", "").split(File::PATH_SEPARATOR)
             .map { |folder| File.join(folder, name) }
             .find { |path| File.file?(path) && File.executable?(path) }
        end

        # What the lock file in a folder names.
        def installed(cache, source)
          lock = File.join(source, "package-lock.json")
          folder = cache.path("packages", Digest::SHA256.file(lock).hexdigest[0, 32])
          install(cache, source, folder) unless File.directory?(folder)
          File.join(folder, "node_modules")
        end

        def install(cache, source, folder)
          npm = find("npm") or raise Error, "there is no npm in PATH: packages are missing"
          cache.replace(folder) do |temporary|
            %w[package.json package-lock.json].each do |name|
              File.binwrite(File.join(temporary, name), File.binread(File.join(source, name)))
            end
            output, status = capture(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", chdir: temporary)
            raise Error, "npm ci: #{first_line(output)}" unless status.success?
          end
        end

        def capture(*command, **options)
          Open3.capture2e(*command, **options)
        rescue SystemCallError => e
          raise Error, "cannot run #{command.grep(String).first}: #{e.message}"
        end

        def first_line(output)
          lines = output.scrub("?").lines.map(&:strip).reject(&:empty?)
          lines.find { |line| line.match?(/error/i) } || lines.first || "it failed"
        end
      end
    end
  end
end
