# frozen_string_literal: true

# Measures scenarios of files: the client of download_client.c (client.c for small files) fetches them, and between two
# of its lines the server's CPU time and memory are read. A wrong or missing answer makes the row FAILED. Used by
# measure.rb.
# SPDX-License-Identifier: MIT

require "fileutils"
require_relative "dialogue"

module Bench
  # The files: random bytes in a folder of the benchmarks' own.
  module Files
    FOLDER = File.join(BUILD, "files")
    COLD = Array.new(4) { |number| "cold#{number}.bin" }.freeze
    SIZES = { "1k.bin" => 1024, "64k.bin" => 65_536, "9mb.bin" => 9 << 20,
              **COLD.to_h { |name| [name, 9 << 20] } }.freeze

    module_function

    # Writes the files that are missing.
    def prepare
      FileUtils.mkdir_p(FOLDER)
      SIZES.each do |name, size|
        File.binwrite(path(name), Random.bytes(size)) unless File.size?(path(name)) == size
      end
    end

    # @return [String] where it is
    def path(name)
      File.join(FOLDER, name)
    end

    # Makes the kernel drop the cold ones from its cache.
    def forget_cold
      COLD.each { |name| File.open(path(name)) { |file| file.fdatasync && file.advise(:dontneed) } }
    end
  end

  # One run of the client that downloads.
  class DownloadClient < Dialogue
    PROGRAM = "download_client"
  end

  # The kinds of scenarios that {Contestant} measures with files.
  module FileFigures
    SLOW_READ = 65_536
    COLD_SECONDS = 10 # at most
    STUCK_PER_SECOND = 200
    STUCK_SECONDS = 5
    STUCK_PATH = "/stuck"

    private

    # @return [Integer] bytes of each answer
    def file_size
      Files::SIZES.fetch(@scenario.file)
    end

    # The answer to the path must be the file. Later only lengths are checked.
    def check_file
      good = ask(@scenario.path) == File.binread(Files.path(@scenario.file))
      @socket.close
      @socket = nil
      raise Silent, "#{@scenario.path} is not answered with the file" unless good
    end

    # @return [Hash] without its figures when something was wrong
    def checked(failed, why, figures)
      return { failed: 0, **figures } if failed.zero?

      notes << "round #{@rounds.size + 1}: #{failed} failed: #{why}"
      { failed: failed }
    end

    # A server that does not answer has failed, like one with a wrong answer.
    def with_downloads(&block)
      @running.settle
      DownloadClient.run(@running.port, &block)
    rescue Silent => e
      checked(1, e.message, {})
    ensure
      @running&.settle if @running&.alive?
    end

    def hot_figures(seconds)
      found = load_figures(seconds)
      checked(*mistakes(found), found)
    end

    # @return [Array] how many answers were not the file, and the wrong answers
    def mistakes(found)
      failed = found.values_at(:errors, :connect_errors, :non_2xx).sum
      sizes = found.values_at(:body_min, :body_max).uniq
      failed += 1 if sizes != [file_size]
      [failed, "errors, answers other than 2xx, or lengths of #{sizes.join(" to ")}"]
    end

    def cold_figures(seconds)
      rounds = []
      until rounds.sum { |round| round[:seconds] } > seconds
        Files.forget_cold
        rounds << load_figures(COLD_SECONDS)
        failed, why = mistakes(rounds.last)
        return checked(failed, why, {}) if failed.positive?
      end
      checked(0, nil, cold_sums(rounds))
    end

    def cold_sums(rounds)
      megabytes = rounds.sum { |round| round[:bytes_in] } / 1e6
      used = rounds.sum { |round| round[:cpu_us] * round[:requests] }
      { mb_per_s: megabytes / rounds.sum { |round| round[:seconds] }, cpu_us_per_mb: used / megabytes }
    end

    def fetch_figures(seconds)
      with_downloads do |client|
        cpu = @running.cpu_us
        found = client.tell("fetch", @scenario.path, file_size, @scenario.connections, seconds,
                            @scenario.bystanders)
        used = @running.cpu_us - cpu
        checked(found[:failed], found[:why], fetched(found, used))
      end
    end

    def fetched(found, used)
      bytes, answers, seconds = found.values_at(:bytes, :answers, :seconds)
      megabytes = bytes.sum / 1e6
      { mb_per_s: megabytes / seconds, cpu_us_per_mb: used / megabytes, busy: used / seconds / 1e6,
        max_over_min: bytes.max / [bytes.min, 1].max.to_f, least_mb: bytes.min / 1e6, most_mb: bytes.max / 1e6,
        answers: answers.sum, least_answers: answers.min, most_answers: answers.max,
        **found.slice(:p50_us, :p99_us, :longest_us) }
    end

    def stuck_figures(_seconds)
      with_downloads do |client|
        found = client.tell("stuck", @scenario.path, file_size, STUCK_PER_SECOND, STUCK_SECONDS,
                            "#{STUCK_PATH}?#{STUCK_SECONDS}")
        checked(found[:failed], found[:why], longest_ms: found[:longest_us] / 1000.0,
                                             answers: found[:http_answers], p50_us: found[:p50_us])
      end
    end

    # The first half has costs that the second does not have, such as room for garbage.
    def slow_figures(_seconds)
      half = @scenario.connections / 2
      with_downloads do |client|
        before = @running.proportional_bytes
        found, middle = slow_half(client, half)
        found, after = slow_half(client, half) if found[:failed].zero?
        next checked(found[:failed], found[:why], {}) unless after

        checked(found[:failed], found[:why], bytes_per_connection: (after - before) / (2.0 * half),
                                             bytes_per_further: (after - middle) / half.to_f)
      end
    end

    # @return [Array] the client's report, and the server's memory then
    def slow_half(client, count)
      found = client.tell("slow", @scenario.path, file_size, count, SLOW_READ)
      @running.settle
      [found, @running.proportional_bytes]
    end
  end
end
