# frozen_string_literal: true

# Builds the programs that measure and the one that is measured: the C programs of this folder, and Rondo's extension.
# Used by run.rb and the clients.
# SPDX-License-Identifier: MIT

require "fileutils"
require_relative "requests"
require_relative "servers"

module Bench
  # The C programs of this folder.
  module Programs
    CORE = File.join(ROOT, "ext", "rondo")
    FLAGS = ["-I#{CORE}", "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O2"].freeze
    # What reads answers and counts waits is also in `rondo bench`.
    OF_THE_CORE = Dir.glob(File.join(CORE, "load", "{load_answer,latency}.[ch]")).freeze

    # Each program, and its sources.
    SOURCES = { "client" => "client{,_base,_requests,_tls}",
                "push_client" => "{push_client*,client_{base,bystander,tls}}",
                "download_client" => "{download_client*,client_{base,bystander,tls}}",
                "restart_client" => "{restart_client,client_{base,tls}}",
                "drain_client" => "{drain_client,client_base}",
                "http2_client" => "{http2_client*,client_{base,tls}}",
                "raw_client" => "{raw_client,client_base}", "raw_floor" => "{raw_floor,floor_base}",
                "chat_floor" => "{chat_floor,floor_base}",
                "floor" => "floor{,_base}", "push_floor" => "{push_floor,floor_base}",
                "slow_backend" => "{slow_backend,floor_base}",
                "file_floor" => "{file_floor,floor_base}" }.freeze

    # The floor on MRI, which Ruby loads.
    EXTENSION = "mri_floor"

    TLS = %w[-lssl -lcrypto].freeze
    READERS = %w[client push_client download_client restart_client http2_client].freeze

    module_function

    # Compiles Rondo's extension, so that the measured program is the one of the sources.
    def compile_rondo
      system(File.join(ROOT, "tools", "compile")) || abort("bench: Rondo does not compile")
    end

    # Compiles them into bench/.build when they are older than their sources.
    def build
      FileUtils.mkdir_p(BUILD)
      build_extension
      SOURCES.each do |name, pattern|
        reads = READERS.include?(name)
        sources = Dir.glob(File.join(__dir__, "#{pattern}.[ch]")) + (reads ? OF_THE_CORE : [])
        next if FileUtils.uptodate?(path(name), sources)

        units = sources.select { |source| source.end_with?(".c") }
        system(ENV.fetch("CC", "cc"), *FLAGS, *units, *(TLS if reads), "-o", path(name), exception: true)
      end
    end

    # Compiles the floor on MRI against the Ruby that runs this.
    def build_extension
      sources = Dir.glob(File.join(__dir__, "{#{EXTENSION}.c,floor_base.[ch]}"))
      built = path("#{EXTENSION}.so")
      stamp = path("#{EXTENSION}-#{RUBY_VERSION}")
      return if FileUtils.uptodate?(built, sources) && File.file?(stamp)

      units = sources.select { |source| source.end_with?(".c") }
      folders = RbConfig::CONFIG.values_at("rubyhdrdir", "rubyarchhdrdir").map { |folder| "-isystem#{folder}" }
      system(ENV.fetch("CC", "cc"), *folders, *FLAGS, "-O3", "-shared", "-fPIC", *units, "-o", built, exception: true)
      FileUtils.rm_f(Dir.glob(path("#{EXTENSION}-*")))
      FileUtils.touch(stamp)
    end

    # Compiles a library that is preloaded into a server.
    #
    # @return [String] where it is
    def library(name)
      built = path("#{name}.so")
      source = File.join(__dir__, "#{name}.c")
      return built if FileUtils.uptodate?(built, [source])

      FileUtils.mkdir_p(BUILD)
      flags = %w[-Wall -Wextra -Werror -O2 -shared -fPIC]
      system(ENV.fetch("CC", "cc"), *flags, source, "-o", built, exception: true)
      built
    end

    # @return [String] where it is
    def path(name)
      File.join(BUILD, name)
    end

    # @return [String] a file with that request of {Requests}
    def request_file(name)
      path("#{name}.request").tap { |file| File.binwrite(file, Requests::ALL.fetch(name)) }
    end
  end
end
