# SPDX-License-Identifier: MIT
# A client of HTTP/2 by python3-h2: requests, then frames that no client may send, each on a connection of its own.
# Prints a line for each. Arguments: host, port.

import socket
import sys

import h2.config
import h2.connection
import h2.errors
import h2.events

HOST, PORT = sys.argv[1], int(sys.argv[2])


class Client:
    def __init__(self):
        self.socket = socket.create_connection((HOST, PORT), timeout=60)
        self.connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.connection.initiate_connection()
        self.flush()

    def flush(self):
        self.socket.sendall(self.connection.data_to_send())

    def fields(self, method, path):
        return [(":method", method), (":path", path), (":scheme", "http"), (":authority", f"{HOST}:{PORT}")]

    def events(self):
        while True:
            some = self.socket.recv(65536)
            if not some:
                return
            yield from self.connection.receive_data(some)
            self.flush()

    # Several requests at a time: the status and the body of each.
    def ask(self, *requests):
        answers = {}
        for method, path, body in requests:
            stream = self.connection.get_next_available_stream_id()
            answers[stream] = [None, b""]
            self.connection.send_headers(stream, self.fields(method, path), end_stream=body is None)
            if body is not None:
                self.connection.send_data(stream, body, end_stream=True)
        self.flush()
        left = len(answers)
        for event in self.events():
            if isinstance(event, h2.events.ResponseReceived):
                answers[event.stream_id][0] = dict(event.headers)[b":status"].decode()
            elif isinstance(event, h2.events.DataReceived):
                answers[event.stream_id][1] += event.data
                self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, h2.events.StreamEnded):
                left -= 1
                if left == 0:
                    break
        self.flush()
        return [f"{status} {body.decode()}" for status, body in answers.values()]

    # The code of the GOAWAY that ends the connection.
    def ending(self, frame):
        self.socket.sendall(frame)
        for event in self.events():
            if isinstance(event, h2.events.ConnectionTerminated):
                return h2.errors.ErrorCodes(event.error_code).name
        return "closed without a word"


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


client = Client()
print(" ".join(client.ask(("GET", "/", None), ("POST", "/size", b"12345"), ("GET", "/parts", None))))
print(len(client.ask(("GET", "/big", None))[0]))

ILLEGAL = {
    "DATA on no stream": frame(0, 1, 0, b"x"),
    "DATA on a stream that is idle": frame(0, 1, 1, b"x"),
    "HEADERS on a stream of the server": frame(1, 5, 2, b"\x82\x86\x84"),
    "HEADERS that are no HPACK": frame(1, 5, 1, b"\xff\xff\xff\xff\xff\xff"),
    "SETTINGS of five bytes": frame(4, 0, 0, b"12345"),
    "PING of seven bytes": frame(6, 0, 0, b"1234567"),
    "WINDOW_UPDATE by nothing": frame(8, 0, 0, bytes(4)),
    "WINDOW_UPDATE beyond 2^31": frame(8, 0, 0, b"\x7f\xff\xff\xff"),
    "PUSH_PROMISE": frame(5, 4, 1, bytes([0, 0, 0, 2]) + b"\x82\x86\x84"),
    "CONTINUATION of nothing": frame(9, 4, 1, b"\x82"),
}
for name, bad in ILLEGAL.items():
    print(f"{name}: {Client().ending(bad)}")
print(client.ask(("GET", "/", None))[0])
