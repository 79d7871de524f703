#!/usr/bin/env python3
"""What do many streams at once cost `sheaf serve`, and does any of them lose an event?

    cargo build --profile perf && python3 tests/load/streams.py target/perf/sheaf [500]

Three times so many streams, each time of a fresh server:

- each has an answer of its own: a recording of 400 pieces at its pace;
- all read one answer, having come to it one after the other;
- a tenth as many never read what they asked for, 16 MiB each, and one beside them does.

Says how many were whole (every id from 1 to the last, in order, and the whole text), what one of them cost in memory while all
ran and what is left afterwards, how much later an event came than to a stream that is alone (p50, p95, most), and how fairly
they were served: when the first and the last ended, and Jain's index of their speeds, which is 1 when all are the same. Ends
with 1 when an event was lost, when a stream cost more than 64 KiB, or when one that does not read was not cut.
"""
import asyncio, json, os, pathlib, shutil, subprocess, sys, tempfile, time

SHEAF = pathlib.Path(sys.argv[1]).resolve()
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 500
PIECES = 400
TOKEN = "a-token-for-many-streams-at-once"
LIMIT_KIB = 64
home = pathlib.Path(tempfile.mkdtemp(prefix="sheaf-load-"))
failed = []


def recording(name, pieces, piece):
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


async def request(port, line, body=""):
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(f"{line} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    return reader, writer


def ask(port):
    return request(port, "POST /api/v1/chat/completions", json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "go"}]}))


class Stream:
    """What one reader had, and when."""

    def __init__(self):
        self.ids, self.text, self.times, self.name, self.begun = [], [], [], None, asyncio.Event()

    async def read(self, opened):
        reader, writer = await opened
        status = await reader.readline()
        assert b" 200 " in status, status
        while line := await reader.readline():
            if line.startswith(b"id: "):
                self.ids.append(int(line[4:]))
                self.times.append(time.monotonic())
            elif line.startswith(b"data: "):
                data = json.loads(line[6:])
                if "delta" in data:
                    self.text.append(data["delta"])
                elif "finalContent" in data:
                    # It wins; whoever comes late has nothing else.
                    self.text = [data["finalContent"]]
                elif data.get("status") == "streaming":
                    self.name = data["id"]
                    self.begun.set()
        writer.close()
        return self

    def is_whole(self, wanted):
        return "".join(self.text) == wanted and self.ids == list(range(1, len(self.ids) + 1)) and len(self.ids) > PIECES


def share(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))]


async def watch(gateway, tasks):
    most = resident_kib(gateway)
    while not all(it.done() for it in tasks):
        most = max(most, resident_kib(gateway))
        await asyncio.sleep(0.1)
    return most


def tell(what, gateway, streams, wanted, before, most, cpu, alone, started):
    whole = sum(it.is_whole(wanted) for it in streams)
    each = (most - before) / len(streams)
    late = [at - it.times[0] - on_time for it in streams for at, on_time in zip(it.times, alone)]
    ends = sorted(it.times[-1] - started for it in streams)
    speeds = [len(it.times) / (it.times[-1] - it.times[0]) for it in streams]
    fair = sum(speeds) ** 2 / (len(speeds) * sum(it * it for it in speeds))
    print(f"{what}: {whole} of {len(streams)} whole, {sum(len(it.ids) for it in streams)} events; ended after {ends[0]:.2f} s (first), {ends[len(ends) // 2]:.2f} s (median), {ends[-1]:.2f} s (last); Jain's index {fair:.4f}")
    print(f"  memory: {before} KiB before, {most} KiB at most: {each:.1f} KiB for a stream; {resident_kib(gateway)} KiB afterwards; {cpu_seconds(gateway) - cpu:.2f} s of CPU")
    print(f"  an event came later than to one that is alone by {share(late, 0.5) * 1000:.1f} ms (p50), {share(late, 0.95) * 1000:.1f} ms (p95), {max(late) * 1000:.1f} ms (most)")
    if whole != len(streams):
        failed.append(f"{what}: events were lost")
    if each > LIMIT_KIB:
        failed.append(f"{what}: a stream cost {each:.1f} KiB")


async def many(is_shared):
    piece = lambda it: f"word {it} "
    wanted = "".join(map(piece, range(PIECES)))
    gateway, port = serve(recording("many.sse", PIECES, piece))
    try:
        one = await Stream().read(ask(port))
        assert one.is_whole(wanted), "one alone is whole"
        alone = [at - one.times[0] for at in one.times]
        before, cpu, started = resident_kib(gateway), cpu_seconds(gateway), time.monotonic()
        if is_shared:
            first = Stream()
            tasks = [asyncio.create_task(first.read(ask(port)))]
            await first.begun.wait()
            # What was said before one came arrives at once: lateness is counted from the answer's own beginning.
            others = [Stream() for _ in range(COUNT - 1)]
            tasks += [asyncio.create_task(it.read(request(port, f"GET /api/v1/chat/responses/{first.name}/stream"))) for it in others]
        else:
            tasks = [asyncio.create_task(Stream().read(ask(port))) for _ in range(COUNT)]
        most = await watch(gateway, tasks)
        streams = [await it for it in tasks]
        if is_shared:
            for it in streams:
                it.times[0] = streams[0].times[0]
        what = f"{COUNT} readers of one answer" if is_shared else f"{COUNT} answers"
        tell(what, gateway, streams, wanted, before, most, cpu, alone, started)
    finally:
        gateway.terminate()
        gateway.wait()


async def slow():
    count = max(COUNT // 10, 1)
    gateway, port = serve(recording("large.sse", 64, lambda _: "x" * (256 << 10)), "--speed", "max")
    try:
        before = resident_kib(gateway)
        streams = [await ask(port) for _ in range(count)]
        await asyncio.sleep(2)
        most, began = resident_kib(gateway), time.monotonic()
        # One that reads is served meanwhile.
        ok, at = await read_all(port)
        print(f"{count} that do not read: a reader beside them had 16 MiB {'whole' if ok else 'NOT WHOLE'} after {at - began:.2f} s")
        await asyncio.sleep(13)
        cut = 0
        for reader, writer in streams:
            last = b""
            try:
                while part := await asyncio.wait_for(reader.read(1 << 20), 5):
                    last = part
                cut += b"0\r\n\r\n" not in last[-64:]
            except (ConnectionError, asyncio.TimeoutError):
                cut += 1
        print(f"  memory: {before} KiB before, {most} KiB with all of them; {cut} of {count} were cut; {resident_kib(gateway)} KiB afterwards")
        if not ok or cut != count:
            failed.append("slow readers")
    finally:
        gateway.terminate()
        gateway.wait()


async def read_all(port):
    reader, writer = await ask(port)
    size, tail = 0, b""
    while part := await reader.read(1 << 20):
        size, tail = size + len(part), (tail + part)[-200:]
    return size > 16 << 20 and b"0\r\n\r\n" in tail, time.monotonic()


asyncio.run(many(False))
asyncio.run(many(True))
asyncio.run(slow())
shutil.rmtree(home, ignore_errors=True)
for it in failed:
    print(f"FAILED  {it}")
sys.exit(1 if failed else 0)
