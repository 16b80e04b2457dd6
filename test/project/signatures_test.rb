# frozen_string_literal: true

# The reference of each gem is complete: what reflection finds of the public interface (tools/reference/public_api.rb
# defines it) has words in the source and a signature in sig/, and what sig/ names is there and takes what its signature
# says.
# SPDX-License-Identifier: MIT

require "test_helper"
require "support/public_interface"

class SignaturesTest < Minitest::Test
  include PublicInterface

  def test_the_public_interface_has_words_and_signatures_and_nothing_else_has
    assert_all_signed(400)
  end

  def test_rbs_finds_the_signatures_valid
    folders = SIGNATURES.flat_map { |folder| ["-I", folder] }
    output, status = Open3.capture2e(RbConfig.ruby, Gem.bin_path("rbs", "rbs"), *folders, "validate", chdir: ROOT)
    assert status.success?, output
  end

  private

  def outermost
    %w[::Rondo ::Rack::Handler::Rondo ::Rackup::Handler::Rondo]
  end

  # The gem for applications of iodine.
  class IodineTest < Minitest::Test
    include PublicInterface

    def test_the_public_interface_has_words_and_signatures_and_nothing_else_has
      assert_all_signed(70)
    end

    private

    def gem_name
      "rondo-iodine"
    end

    def outermost
      %w[::Iodine]
    end
  end

  # The gem for applications of Up!.
  class UpTest < Minitest::Test
    include PublicInterface

    def test_the_public_interface_has_words_and_signatures_and_nothing_else_has
      assert_all_signed(3)
    end

    private

    def gem_name
      "rondo-up"
    end

    def outermost
      %w[::Up ::Rackup::Handler::Up]
    end
  end
end
