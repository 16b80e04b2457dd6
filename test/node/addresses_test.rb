# frozen_string_literal: true

# Addresses come from uWebSockets.js as bytes; the text of RFC 5952 is made here (engine/uws/request.js).
# SPDX-License-Identifier: MIT

require "test_helper"
require "ipaddr"
require "open3"

class NodeAddressesTest < Minitest::Test
  FILE = File.expand_path("../../node/lib/rondo/node/engine/uws/request.js", __dir__)
  SCRIPT = "const { addressOf } = require(process.argv[1]);" \
           "for (const hex of process.argv.slice(2)) console.log(addressOf(Buffer.from(hex, 'hex')));"
  TEXTS = %w[127.0.0.1 0.0.0.0 :: ::1 1:: 2001:db8::1 2001:db8:0:1:1:1:1:1 1:0:0:2::3 1::2:0:0:3:4 fe80::1:2:3:4
             1:2:3:4:5:6:7:8 0:1:2:3:4:5:6:7 1:2:3:4:5:6:7:0 a::b:0:c ::ffff:0:0:1 10::20].freeze

  def test_the_text_of_an_address
    output, status = Open3.capture2e("node", "-e", SCRIPT, FILE, *TEXTS.map { |text| IPAddr.new(text).hton.unpack1("H*") })
    assert status.success?, output
    assert_equal TEXTS.map { |text| IPAddr.new(text).to_s }, output.lines(chomp: true)
  end

  def test_an_address_of_ipv4_in_ipv6
    output, = Open3.capture2e("node", "-e", SCRIPT, FILE, "00000000000000000000ffff7f000001")
    assert_equal "127.0.0.1\n", output
  end
end
