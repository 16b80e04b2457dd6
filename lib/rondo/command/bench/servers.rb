# frozen_string_literal: true

# The servers that `rondo bench` can start, each by its own command, with the same application, threads
# and workers. They come from the application's bundle or from the installed gems.
# SPDX-License-Identifier: MIT

require "open3"
require "rbconfig"

module Rondo
  class Bench
    # Names, versions and commands.
    module Servers
      # Where a server takes what it is told.
      #
      # @!attribute title [String]
      # @!attribute note [String, nil] what it does in another way
      # @!attribute words [Proc] the words behind its name, from a {Place}
      Known = Struct.new(:title, :note, :words, keyword_init: true)

      # What a server is told.
      #
      # @!attribute port [Integer] of 127.0.0.1
      # @!attribute folder [String] for its own files
      # @!attribute options [Options]
      Place = Struct.new(:port, :folder, :options, keyword_init: true) do
        # @return [Integer]
        def threads
          options.threads
        end

        # @return [Integer]
        def workers
          options.workers
        end

        # @return [String]
        def file
          options.file
        end

        # @return [String] with the file's name in it
        def write(name, text)
          File.join(folder, name).tap { |path| File.write(path, text) }
        end
      end

      RONDO = File.expand_path("../../../../exe/rondo", __dir__)
      LIB = File.expand_path("../../..", __dir__)
      # Runs the executable of a gem, as the bundle or RubyGems finds it.
      EXECUTABLE = "name = ARGV.shift; $PROGRAM_NAME = path = Gem.bin_path(name, name); load path"
      VERSION_OF = "print Gem::Specification.find_by_name(ARGV[0]).version"

      OTHERS = {
        "puma" => Known.new(title: "Puma", words: lambda do |place|
          ["-C", "-", "-b", "tcp://127.0.0.1:#{place.port}", "-t", "#{place.threads}:#{place.threads}",
           "-w", place.workers.to_s, "-e", place.options.environment, "-q", place.file]
        end),
        "falcon" => Known.new(title: "Falcon", note: "fibers in place of threads", words: lambda do |place|
          ["serve", "-b", "http://127.0.0.1:#{place.port}", "-n", [place.workers, 1].max.to_s, "-c", place.file]
        end),
        "unicorn" => Known.new(title: "Unicorn", note: "one request at a time in each process", words: lambda do |place|
          config = place.write("unicorn.rb", "worker_processes #{[place.workers, 1].max}\n")
          ["-l", "127.0.0.1:#{place.port}", "-c", config, "-E", place.options.environment, place.file]
        end),
        "iodine" => Known.new(title: "iodine", words: lambda do |place|
          ["-b", "127.0.0.1", "-p", place.port.to_s, "-t", place.threads.to_s, "-w", [place.workers, 1].max.to_s,
           place.file]
        end)
      }.freeze

      module_function

      # @param place [Place]
      # @return [Array<String>]
      def rondo_command(place)
        workers = place.workers.zero? ? [] : ["-w", place.workers.to_s]
        [RbConfig.ruby, "-I", LIB, RONDO, "-C", "-", "-q", "-b", "tcp://127.0.0.1:#{place.port}",
         "-t", "#{place.threads}:#{place.threads}", *workers, "-e", place.options.environment,
         "--control-url", control_url(place.folder), "--control-token", "none", place.file]
      end

      # @param folder [String]
      # @return [String] of Rondo's control server
      def control_url(folder)
        "unix://#{folder}/control"
      end

      # @param name [String] a key of {OTHERS}
      # @param place [Place]
      # @return [Array<String>]
      def command(name, place)
        [RbConfig.ruby, "-e", EXECUTABLE, "--", name, *OTHERS.fetch(name).words.call(place)]
      end

      # Asks a process of its own, which finds gems as the server will.
      #
      # @return [String, nil]
      def version(name)
        out, status = Open3.capture2(RbConfig.ruby, "-e", VERSION_OF, "--", name, err: File::NULL)
        out if status.success?
      end
    end
  end
end
