# frozen_string_literal: true

# Clients that are not ours and have TLS of their own: wget (GnuTLS), node, Ruby's Net::HTTP.
# SPDX-License-Identifier: MIT

require_relative "tls_case"

class TLSClientsTest < TLSCase
  BODY = "0123456789" * 300_000
  NODE = <<~JS
    const https = require("https"), fs = require("fs");
    const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ca: fs.readFileSync(process.argv[2]) });
    const get = (path) => new Promise((done) => https.get({ host: "localhost", family: 4, port: process.argv[3], path, agent }, (answer) => {
      const protocol = answer.socket.getProtocol(); // it is the agent's again at the end
      let size = 0;
      answer.on("data", (bytes) => size += bytes.length).on("end", () => done(size + " " + protocol));
    }));
    (async () => { for (const path of ["/big", "/parts", "/big"]) console.log(await get(path)); process.exit(0); })();
  JS

  def test_wget
    server = secure
    result = run_command("wget", "-q", "-O", "got", "--tries=1", "--timeout=#{PATIENCE}", "--ca-certificate=#{@certificates.authority}",
                         "--no-check-certificate", "https://127.0.0.1:#{server.port}/big")
    assert_equal 0, result.code, result.err
    assert_equal BODY, read("got")
  end

  def test_node
    server = secure
    write "client.js", NODE
    result = run_command("node", "client.js", @certificates.authority, server.port.to_s)
    assert_equal "3000000 TLSv1.3\n21 TLSv1.3\n3000000 TLSv1.3\n", result.out, result.err
  end

  def test_net_http
    server = secure
    Net::HTTP.start("localhost", server.port, ipaddr: "127.0.0.1", use_ssl: true, ca_file: @certificates.authority) do |http|
      2.times { assert_equal BODY, http.get("/big").body }
      assert_equal "5000", http.post("/size", "x" * 5000).body
    end
  end
end
