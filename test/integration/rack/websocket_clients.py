# What the client `websockets` for Python makes of the server. Run by websocket_clients_test.rb; prints
# what it saw as JSON, the same as websocket_clients.js does.
# SPDX-License-Identifier: MIT

import asyncio
import json
import sys

import websockets

URL = sys.argv[1].replace("http", "ws")


def shown(message):
    return message if isinstance(message, str) else message.hex()


async def told(message):
    async with websockets.connect(URL + "/") as socket:
        await socket.send(message)
        await socket.wait_closed()
        return [socket.close_code, socket.close_reason]


REFUSED = websockets.InvalidStatus, getattr(websockets, "InvalidStatusCode", websockets.InvalidStatus)


async def refused():
    try:
        async with websockets.connect(URL + "/refused"):
            return "open"
    except REFUSED as error:
        return error.response.status_code if hasattr(error, "response") else error.status_code


async def main():
    seen = {}
    socket = await websockets.connect(URL + "/", subprotocols=["xml", "chat"])
    seen["protocol"] = socket.subprotocol
    seen["echo"] = []
    large = "large\u20ac" * 20000
    for message in ["h\u00e4llo", bytes([0, 255, 128]), "", large]:
        await socket.send(message)
        answer = await socket.recv()
        seen["echo"].append("large" if answer == large else shown(answer))
    await socket.send(["one ", "two ", "three"])
    seen["fragments"] = await socket.recv()
    await (await socket.ping("are you there"))
    seen["pong"] = "are you there"
    await socket.close(4001, "bye")
    seen["closed"] = [socket.close_code, socket.close_reason]
    seen["closes"] = await told("close 3000 enough")
    seen["raises"] = await told("raise")
    seen["limit"] = await told("x" * 300000)
    seen["refused"] = await refused()
    print(json.dumps(seen))


asyncio.run(main())
