import { workerData } from "node:worker_threads";
import { CommitMark } from "./commit-mark.ts";
import { connect, failureKind } from "./connection.ts";
import {
  endedAt,
  repliesAt,
  type ThreadData,
  type ThreadReply,
  type ThreadRequest,
  Unpacker,
} from "./thread-messages.ts";
import { Writer } from "./writer.ts";

// What the writing thread runs: a writer, and the port through which it is asked.

const { path, mark, port, shared } = workerData as ThreadData;

function reply(outcome: ThreadReply): void {
  port.postMessage(outcome);
  Atomics.add(shared, repliesAt, 1);
  Atomics.notify(shared, repliesAt);
}

process.on("exit", () => {
  Atomics.store(shared, endedAt, 1);
  Atomics.add(shared, repliesAt, 1);
  Atomics.notify(shared, repliesAt);
});

try {
  const writer = new Writer({
    path,
    connection: connect(path),
    connect,
    mark: mark === undefined ? undefined : CommitMark.of(mark),
  });
  const unpacker = new Unpacker();
  port.on("message", (data: ThreadRequest) => {
    if (data.kind === "commit") reply(writer.take({ kind: "commit", changes: unpacker.unpack(data.packed) }));
    else if (data.kind !== "close") reply(writer.take(data));
    else {
      writer.close();
      port.close();
      reply({});
    }
  });
  reply({});
} catch (error) {
  reply({ failure: { kind: failureKind(error), error: error as Error } });
}
