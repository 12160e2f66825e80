import { randomBytes } from "node:crypto";
import { appendFileSync, copyFileSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { expect, test } from "vitest";
import { connect, type SessionHandle } from "../../client/index.ts";
import type { Result } from "../../protocol/methods.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { shareStage } from "../helpers/shared-stage.ts";
import { startStage } from "../helpers/stage.ts";

const shared = shareStage({ agent: { settings: { compaction: { keepRecentTokens: 100 } } } });

type Page = Result<"transcript/page">;
type Entry = Page["entries"][number] & { readonly message?: Record<string, unknown> };

async function pagesOf(session: SessionHandle, options: { limit?: number; leafId?: string } = {}): Promise<Page[]> {
  const pages = [await session.transcript(options)];
  for (let before = pages[0]?.before; before !== undefined; before = pages[0]?.before) {
    pages.unshift(await session.transcript({ ...options, before }));
  }
  return pages;
}

const entriesOf = (pages: readonly Page[]): Entry[] => pages.flatMap(({ entries }) => entries);

/** The active branch, as pi itself has it. */
async function branchInPi(session: SessionHandle, end?: string): Promise<Entry[]> {
  const { entries, leafId } = (await session.command({ type: "get_entries" })) as { entries: Entry[]; leafId: string };
  const byId = new Map(entries.map((entry) => [entry.id, entry]));
  const branch: Entry[] = [];
  for (let entry = byId.get(end ?? leafId); entry !== undefined; entry = byId.get(entry.parentId ?? ""))
    branch.unshift(entry);
  return branch;
}

/** Messages by what identifies them: a page has them as entries, a subscription as events. */
const key = ({ role, content, timestamp, toolCallId }: Record<string, unknown>): string =>
  JSON.stringify([role, content, role === "custom" ? 0 : timestamp, toolCallId]);

function messageKeys(entries: readonly Entry[]): string[] {
  return entries.flatMap((entry) => {
    if (entry.type === "message") return [key(entry.message ?? {})];
    return entry.type === "custom_message" ? [key({ ...entry, role: "custom" })] : [];
  });
}

const entryWith = (entries: readonly Entry[], text: string): string =>
  entries.find((entry) => JSON.stringify(entry).includes(text))?.id ?? "none";

test("a transcript has pi's own branch: awake, asleep, after a move, a compaction and a restart", async () => {
  await using stage = await shared.use();
  const session = await stage.freshSession();
  stage.provider.add(answer(call("bash", { command: "seq 1 20000" })), answer("First reply."));
  await session.promptAndWait("First question.");
  stage.provider.add(answer("Second reply."));
  await session.promptAndWait("Second question.");
  const left = await branchInPi(session);
  const first = entryWith(left, "First reply.");
  await session.navigate(first);
  stage.provider.add(answer("Third reply."));
  await session.promptAndWait("Third question. ".repeat(500));
  stage.provider.add(answer("The summary."));
  await session.compact();
  await session.push({ customType: "note", content: "A note.", triggerTurn: false }).inserted;
  await session.waitForIdle();

  const branch = await branchInPi(session);
  const awake = await pagesOf(session, { limit: 3 });
  expect(entriesOf(awake).map(({ id }) => id)).toEqual(branch.map(({ id }) => id));
  expect(entriesOf(awake).filter(({ type }) => type !== "message")).toEqual(
    branch.filter(({ type }) => type !== "message"),
  );
  // Where the branches part, the other one is named.
  const points = awake.flatMap(({ branchPoints }) => branchPoints ?? []);
  const [other] = points.find(({ entryId }) => branch.some(({ id }) => id === entryId))?.children ?? [];
  expect(left.map(({ id }) => id)).toContain(other?.entryId);
  const abandoned = await pagesOf(session, { leafId: other?.leafId ?? "" });
  expect(JSON.stringify(entriesOf(abandoned))).toContain("Second reply.");
  expect(JSON.stringify(entriesOf(awake))).not.toContain("Second reply.");

  await fallAsleep(stage.client, session.id);
  const generation = async (): Promise<unknown> => {
    const { state, generation: number, pid } = await stage.client.session(session.id).get();
    return [state, number, pid];
  };
  const before = await generation();
  expect(entriesOf(await pagesOf(session, { limit: 3 }))).toEqual(entriesOf(awake));
  expect(await generation()).toEqual(before);
  await stage.restart();
  const later = stage.client.session(session.id);
  expect(entriesOf(await pagesOf(later))).toEqual(entriesOf(awake));
  const http = await fetch(`${stage.daemon.file.url}/v1/sessions/${session.id}/transcript?limit=1000`, {
    headers: { authorization: `Bearer ${stage.daemon.file.token}` },
  });
  expect(((await http.json()) as Page).entries).toEqual(entriesOf(awake));
  expect(await generation()).toEqual(before);
});

/** A PNG image of so many pixels in each direction, which does not compress. */
function noisePng(size: number): string {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const head = Buffer.alloc(4);
    head.writeUInt32BE(data.length);
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([head, body, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 2], 8);
  const pixels = randomBytes(size * (1 + size * 3));
  for (let row = 0; row < size; row += 1) pixels[row * (1 + size * 3)] = 0;
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const chunks = [chunk("IHDR", header), chunk("IDAT", deflateSync(pixels)), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([signature, ...chunks]).toString("base64");
}

test("long outputs and images are cut, and come in pieces", async () => {
  await using stage = await shared.use();
  const session = await stage.freshSession();
  const data = noisePng(320);
  stage.provider.add(answer('x "é" \n'.repeat(20_000)));
  await session.promptAndWait("Look.", { images: [{ type: "image", data, mimeType: "image/png" }] });
  for (const isAsleep of [false, true]) {
    if (isAsleep) await fallAsleep(stage.client, session.id);
    const page = await session.transcript();
    expect(JSON.stringify(page).length).toBeLessThan(60_000);
    const whole: Record<string, string> = {};
    for (const cut of page.cuts ?? []) {
      let text = "";
      for (let offset: number | undefined = 0; offset !== undefined; ) {
        const piece: Result<"transcript/entry"> = await session.entryPiece(cut, { offset, length: 40_000 });
        expect(piece.bytes).toBe(cut.bytes);
        text += piece.text;
        offset = piece.next;
      }
      whole[cut.path] = text;
    }
    expect(Object.values(whole)).toContain('x "é" \n'.repeat(20_000));
    expect(Object.values(whole)).toContain(data);
  }
});

test("the entries of a session without a file, and of a fork that pi has not written, come from its pi", async () => {
  await using stage = await shared.use();
  stage.provider.add(answer("Not kept."));
  const ephemeral = await stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", ephemeral: true });
  await ephemeral.promptAndWait("Remember nothing.");
  const pages = await pagesOf(ephemeral, { limit: 1 });
  expect(pages.length).toBeGreaterThan(1);
  expect(entriesOf(pages)).toEqual(await branchInPi(ephemeral));
  await ephemeral.close();

  const gate = new Gate();
  stage.provider.add(answer("One."), delayed(hold(gate), answer("Two.")));
  const session = await stage.freshSession();
  await session.promptAndWait("First question.");
  const question = entryWith(await branchInPi(session), "First question.");
  const { session: forked } = await session.fork(question);
  expect(entriesOf(await pagesOf(forked))).toEqual(await branchInPi(forked));
  const run = forked.promptAndWait("Second question.");
  await gate.reached;
  expect(entriesOf(await pagesOf(forked, { limit: 1 }))).toEqual(await branchInPi(forked));
  gate.open();
  await run;
  await forked.close();
});

test("a page and a subscription from its cursor tell every message once, under load", async () => {
  await using stage = await shared.use();
  const session = await stage.freshSession();
  const turns = 40;
  for (let turn = 0; turn < turns; turn += 1) {
    const parts = Array.from({ length: 10 }, (_, index) => `part ${index} of ${turn} `);
    stage.provider.add(
      answer(...parts, call("bash", { command: `echo ${turn}` }), call("bash", { command: `seq ${turn} 99` })),
    );
  }
  stage.provider.add(answer("Done."));
  const run = session.prompt("Work.");
  await run;
  const joined: { page: Page; told: Promise<string[]> }[] = [];
  const last = "The last message.";
  const follow = async ({ cursor, epoch }: Page): Promise<string[]> => {
    const events = session.events({ after: cursor ?? 0, ...(epoch && { epoch }) });
    const told: string[] = [];
    for await (const { event } of events) {
      if (event.type === "message_end") told.push(key(event["message"] as Record<string, unknown>));
      // A push that enters a run is told as an entry.
      if (event.type === "entry_appended") told.push(...messageKeys([event["entry"] as Entry]));
      if (told.at(-1)?.includes(last) === true) return told;
    }
    return told;
  };
  let isOver = false;
  void run.settled().finally(() => {
    isOver = true;
  });
  while (!isOver && joined.length < 60) {
    const page = await session.transcript({ limit: 1_000 });
    joined.push({ page, told: follow(page) });
    if (joined.length % 10 === 0)
      session.push({ customType: "n", content: `push ${joined.length}` }).accepted.catch(() => {});
  }
  await run.settled();
  await session.waitForIdle();
  stage.provider.add(answer("Ended."));
  await session.promptAndWait(last);
  const told = await Promise.all(joined.map((page) => page.told));
  const all = messageKeys(entriesOf(await pagesOf(session)));
  const upToLast = all.slice(0, all.findIndex((message) => message.includes(last)) + 1);
  let between = 0;
  for (const [index, { page }] of joined.entries()) {
    const known = messageKeys(page.entries);
    expect([...known, ...(told[index] ?? [])]).toEqual(upToLast);
    if (known.length > 1) between += 1;
  }
  expect(between).toBeGreaterThan(0);
});

test("during a run a page names the place before the open message, so that it can be shown from its beginning", async () => {
  const gate = new Gate();
  await using stage = await shared.use({ script: [answer("Begun ", hold(gate), "and ended.")] });
  const session = await stage.freshSession();
  const events = session.events();
  const run = session.promptAndWait("Talk.");
  await gate.reached;
  for await (const { event } of events) if (event.type === "message_update") break;
  const page = await session.transcript();
  expect(JSON.stringify(page.entries.at(-1))).toContain("Talk.");
  expect(page.openAfter).toBeLessThan(page.cursor ?? 0);
  const opened: string[] = [];
  const again = session.events({ after: page.openAfter ?? 0 });
  await again.ready;
  gate.open();
  for await (const { event } of again) {
    opened.push(event.type);
    if (event.type === "message_end") break;
  }
  expect(opened[0]).toBe("message_start");
  await run;
  expect(await session.transcript()).not.toHaveProperty("openAfter");
});

test("a file that another program rewrites, extends or damages is read as it is, or refused by name", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("One.");
  await session.promptAndWait("Two.");
  const { file } = await session.get();
  const { before = "" } = await session.transcript({ limit: 2 });
  await fallAsleep(stage.client, session.id);
  expect((await session.transcript({ before })).entries.length).toBeGreaterThan(0);
  const leaf = (await session.transcript()).leafId;
  appendFileSync(
    file,
    `${JSON.stringify({ type: "message", id: "foreign1", parentId: leaf, timestamp: new Date().toISOString(), message: { role: "user", content: "From elsewhere.", timestamp: 1 } })}\n`,
  );
  expect((await session.transcript({ limit: 2 })).entries.map(({ id }) => id)).toEqual([leaf, "foreign1"]);
  expect((await session.transcript({ before })).entries.length).toBeGreaterThan(0);
  copyFileSync(file, `${file}.copy`);
  renameSync(`${file}.copy`, file);
  await expect(session.transcript({ before })).rejects.toMatchObject({
    kind: "transcript_changed",
    data: { retryable: false },
  });
  const lines = readFileSync(file, "utf8").split("\n");
  writeFileSync(file, [lines[0]?.replace(session.id, "other"), ...lines.slice(1)].join("\n"));
  await expect(session.transcript()).rejects.toMatchObject({
    kind: "session_file_unusable",
    data: { reason: "other_session" },
  });
  writeFileSync(file, lines.join("\n"));
});

test("a file of an older format is left to pi, and is read when the pi that starts has converted it", async () => {
  await using stage = await shared.use();
  const session = await stage.freshSession();
  await session.promptAndWait("One.");
  const { file } = await session.get();
  await fallAsleep(stage.client, session.id);
  const [header = "", ...lines] = readFileSync(file, "utf8").split("\n");
  writeFileSync(file, [header.replace('"version":3', '"version":2'), ...lines].join("\n"));
  const isOlder = { kind: "session_asleep", data: { reason: "file_older_form" } };
  await expect(session.transcript()).rejects.toMatchObject(isOlder);
  await expect(session.entryPiece({ entryId: "any", path: "" })).rejects.toMatchObject(isOlder);
  const state = session.command({ type: "get_state" });
  expect(JSON.stringify(await session.transcript())).toContain("One.");
  await state;
});

test("a pi that does not respond is not waited for once that is known", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.promptAndWait("One.");
  const whole = await session.transcript();
  const { pid } = await session.get();
  process.kill(pid as number, "SIGSTOP");
  try {
    // The first one waits until that is known.
    expect((await session.transcript()).entries).toEqual(whole.entries);
    await expect.poll(async () => (await session.get()).unresponsive !== undefined).toBe(true);
    expect((await session.transcript()).entries).toEqual(whole.entries);
  } finally {
    process.kill(pid as number, "SIGCONT");
  }
  await session.promptAndWait("Two.");
  expect((await session.transcript()).entries.length).toBeGreaterThan(whole.entries.length);
});

async function outlineOf(session: SessionHandle): Promise<Result<"transcript/outline">> {
  const last = await session.outline({ limit: 3 });
  const entries = [...last.entries];
  for (let { before } = last; before !== undefined; ) {
    const page: Result<"transcript/outline"> = await session.outline({ limit: 3, before });
    entries.unshift(...page.entries);
    before = page.before;
  }
  return { ...last, entries };
}

test("an outline is pi's own tree with its first words: awake, asleep, and of a fork, which names its session", async () => {
  await using stage = await shared.use();
  const { client } = stage;
  const session = await stage.freshSession();
  stage.provider.add(answer("First reply."), answer("Second reply."), answer("Third reply."));
  await session.promptAndWait("First question.");
  await session.promptAndWait("Second question.");
  const second = entryWith(await branchInPi(session), "Second question.");
  await session.navigate(second);
  await session.promptAndWait("Third question.");
  await session.waitForIdle();
  const inPi = async (of: SessionHandle) => {
    const { entries, leafId } = (await of.command({ type: "get_entries" })) as { entries: Entry[]; leafId: string };
    return [entries.map(({ id, parentId, type }) => [id, parentId, type]), leafId];
  };
  const seen = async (of: SessionHandle) => {
    const { entries, leafId } = await outlineOf(of);
    return [entries.map(({ entryId, parentId, type }) => [entryId, parentId, type]), leafId];
  };
  const tree = await inPi(session);
  expect(await seen(session)).toEqual(tree);
  await fallAsleep(client, session.id);
  const before = await session.get();
  expect(await seen(session)).toEqual(tree);
  const { entries, parent } = await outlineOf(session);
  expect(entries.map(({ text }) => text)).toEqual(
    expect.arrayContaining(["First reply.", "Second question.", "Second reply.", "Third question.", "Third reply."]),
  );
  expect(parent).toBeUndefined();
  const after = await session.get();
  expect([after.state, after.generation]).toEqual(["hibernated", before.generation]);

  // Also from a message of a branch that was left.
  const { session: forked, text } = await session.fork(second);
  expect(text).toBe("Second question.");
  expect(await seen(forked)).toEqual(await inPi(forked));
  expect((await forked.outline()).parent).toEqual({ sessionId: session.id });

  // A token that may not read the first session does not learn of it.
  const elsewhere = join(stage.cwd, "elsewhere");
  mkdirSync(elsewhere);
  const copy = await client.createSession({ cwd: elsewhere, model: "scripted/model-1", forkFrom: after.file });
  expect((await copy.outline()).parent).toEqual({ sessionId: session.id });
  const { token } = await client.call("token/create", { name: "reader", capabilities: ["observe"], cwds: [elsewhere] });
  await using limited = await connect({ socketPath: stage.daemon.file.socketPath, token });
  expect((await limited.session(copy.id).outline()).parent).toEqual({});
});
