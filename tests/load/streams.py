#!/usr/bin/env python3
"""What do many streams at once cost `sheaf serve`, and does any of them lose an event?

    cargo build --release && python3 tests/load/streams.py target/release/sheaf [500]

A recording of 400 pieces is played at its own pace to so many readers; a tenth more open a stream of many megabytes and never
read. Says how many streams were whole (every id from 1 to the last, in order, and the whole text), what one of them cost in
memory while all ran, how far apart the first and the last ended, and how many of those that did not read were cut.
"""
import asyncio, json, os, pathlib, subprocess, sys, tempfile, time

SHEAF = pathlib.Path(sys.argv[1]).resolve()
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 500
TOKEN = "a-token-for-many-streams-at-once"
home = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-load-"))


def recording(name, pieces, piece, pause_ms):
    events = [("response_start", {"id": "chat_x", "model": "m", "mode": "agent", "created": "2026-01-01T00:00:00Z", "status": "streaming"}), ("document_start", {"id": "doc_001", "type": "text", "sequence": 1, "metadata": {"format": "markdown"}})]
    events += [("content_delta", {"documentId": "doc_001", "delta": piece(it)}) for it in range(pieces)]
    events += [("document_end", {"documentId": "doc_001", "metadata": {"format": "markdown"}}), ("done", {"usage": {"promptTokens": 1, "completionTokens": 1, "totalTokens": 2}})]
    path = home / name
    path.write_text("".join(f"event: {kind}\ndata: {json.dumps(data)}\n\n" for kind, data in events))
    return path


def serve(path, *more):
    gateway = subprocess.Popen([SHEAF, "serve", "--listen", "127.0.0.1:0", "--replay", path, *more, "--set", f"serve.max_streams={COUNT + 100}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={"HOME": str(home), "PATH": os.environ["PATH"], "SHEAF_SERVE_TOKEN": TOKEN})
    return gateway, int(gateway.stdout.readline().rsplit(":", 1)[1])


def resident_kib(gateway):
    status = pathlib.Path(f"/proc/{gateway.pid}/status").read_text()
    return int(next(it for it in status.splitlines() if it.startswith("VmRSS")).split()[1])


def cpu_seconds(gateway):
    fields = pathlib.Path(f"/proc/{gateway.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def open_stream(port):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]})
    writer.write(f"POST /api/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    return reader, writer


async def read(port, wanted):
    reader, writer = await open_stream(port)
    assert b" 200 " in await reader.readline()
    ids, text = [], []
    while line := await reader.readline():
        if line.startswith(b"id: "):
            ids.append(int(line[4:]))
        elif line.startswith(b"data: ") and b'"delta"' in line:
            text.append(json.loads(line[6:])["delta"])
    writer.close()
    return "".join(text) == wanted and ids == list(range(1, len(ids) + 1)), time.monotonic()


async def many():
    piece = lambda it: f"word {it} "
    wanted = "".join(map(piece, range(400)))
    gateway, port = serve(recording("many.sse", 400, piece, 0))
    try:
        assert (await read(port, wanted))[0], "one alone is whole"
        before, cpu, began = resident_kib(gateway), cpu_seconds(gateway), time.monotonic()
        readers = [asyncio.create_task(read(port, wanted)) for _ in range(COUNT)]
        most = before
        while not all(it.done() for it in readers):
            most = max(most, resident_kib(gateway))
            await asyncio.sleep(0.1)
        ends = [await it for it in readers]
        took = sorted(at - began for _, at in ends)
        print(f"{COUNT} streams: {sum(ok for ok, _ in ends)} whole; ended after {took[0]:.2f} s (first), {took[len(took) // 2]:.2f} s (median), {took[-1]:.2f} s (last)")
        print(f"memory: {before} KiB before, {most} KiB at most: {(most - before) / COUNT:.1f} KiB for a stream; {cpu_seconds(gateway) - cpu:.2f} s of CPU")
    finally:
        gateway.terminate()


async def slow():
    count = max(COUNT // 10, 1)
    gateway, port = serve(recording("large.sse", 64, lambda _: "x" * (256 << 10), 0), "--speed", "max")
    try:
        before = resident_kib(gateway)
        streams = [await open_stream(port) for _ in range(count)]
        await asyncio.sleep(2)
        most, began = resident_kib(gateway), time.monotonic()
        # One that reads is served meanwhile.
        ok, at = await read_all(port)
        print(f"{count} that do not read: a reader beside them had 16 MiB {'whole' if ok else 'NOT WHOLE'} after {at - began:.2f} s")
        await asyncio.sleep(13)
        cut = 0
        for reader, writer in streams:
            try:
                while part := await asyncio.wait_for(reader.read(1 << 20), 5):
                    last = part
                cut += b"0\r\n\r\n" not in last[-64:]
            except (ConnectionError, asyncio.TimeoutError):
                cut += 1
        print(f"memory: {before} KiB before, {most} KiB with all of them; {cut} of {count} were cut")
    finally:
        gateway.terminate()


async def read_all(port):
    reader, writer = await open_stream(port)
    size, tail = 0, b""
    while part := await reader.read(1 << 20):
        size, tail = size + len(part), (tail + part)[-200:]
    return size > 16 << 20 and b"0\r\n\r\n" in tail, time.monotonic()


asyncio.run(many())
asyncio.run(slow())
