import { expect, test } from "vitest";
import { WebSocket } from "ws";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { WEBSOCKET_PATH } from "../../../protocol/wire.ts";
import { answer, call, thinking } from "../../../provider/reply.ts";
import { startStage } from "../../helpers/stage.ts";
import { isEvent, teedPi } from "../../helpers/teed-pi.ts";

/** The events of a session as the exact text that was received, until `isLast`. */
async function eventsOf(daemon: DaemonFile, sessionId: string, isLast: (event: string) => boolean): Promise<string[]> {
  const socket = new WebSocket(`${daemon.url.replace("http", "ws")}${WEBSOCKET_PATH}`, {
    headers: { authorization: `Bearer ${daemon.token}` },
  });
  const events: string[] = [];
  const done = Promise.withResolvers<void>();
  socket.on("message", (data: Buffer) => {
    const text = data.toString("utf8");
    const key = '"event":';
    if (!text.startsWith('{"jsonrpc":"2.0","method":"session/event"')) return;
    events.push(text.slice(text.indexOf(key) + key.length, -2));
    if (isLast(events.at(-1) ?? "")) done.resolve();
  });
  socket.on("error", done.reject);
  socket.on("open", () => {
    const params = { sessionId, after: 0 };
    socket.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/subscribe", params }));
  });
  await done.promise;
  socket.terminate();
  return events;
}

test("pi's events reach every client with the bytes and in the order that pi wrote: live, replayed, and from the store", async () => {
  const { pi, records } = teedPi();
  const odd = 'tabs\t, quotes ", \u2028 and \u2029, nulls \0, ÿ€😀, halves \\ud83d';
  const script = [
    answer(thinking("hm"), odd, call("bash", { command: "printf 'a\\tb\\n\\001'; printf '€' >&2" })),
    answer(...odd.split(" ").map((word) => `${word} `)),
  ];
  await using stage = await startStage({ pi, provider: { script } });
  const session = await stage.session();
  const isSettled = (event: string): boolean => event.startsWith('{"type":"agent_settled"');
  const live = eventsOf(stage.daemon.file, session.id, isSettled);
  await session.promptAndWait(odd);
  const written = records().filter(isEvent);
  const upTo = written.slice(0, written.findIndex(isSettled) + 1);
  expect(upTo.length).toBeGreaterThan(20);
  expect(await live).toEqual(upTo);
  expect(await eventsOf(stage.daemon.file, session.id, isSettled)).toEqual(upTo);

  await stage.restart();
  const kept = upTo.filter((record) => !/^\{"type":"(message|tool_execution|bash_execution)_update"/.test(record));
  expect(await eventsOf(stage.daemon.file, session.id, isSettled)).toEqual(kept);
});
