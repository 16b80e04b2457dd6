# What wsproto says that a server has to answer to the bytes of a client. Run by
# test_websocket_judge.rb: each line of the input is one connection in hexadecimal digits, each of the
# output its verdict as JSON: [[[opcode, payload], ...], code], where the code is that of the Close that
# ends it: 1005 for one without a code, 0 when there is none.
# SPDX-License-Identifier: MIT

import json
import sys

from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Ping, TextMessage


def judge(data):
    connection = Connection(ConnectionType.SERVER)
    answers, parts = [], []
    connection.receive_data(data)
    for event in connection.events():
        if isinstance(event, CloseConnection):
            return [answers, int(event.code)]
        if isinstance(event, Ping):
            answers.append([10, event.payload.hex()])
        elif isinstance(event, (TextMessage, BytesMessage)):
            is_text = isinstance(event, TextMessage)
            parts.append(event.data.encode() if is_text else bytes(event.data))
            if event.message_finished:
                answers.append([1 if is_text else 2, b"".join(parts).hex()])
                parts = []
    return [answers, 0]


for line in sys.stdin:
    print(json.dumps(judge(bytes.fromhex(line))))
