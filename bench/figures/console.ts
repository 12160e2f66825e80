import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import puppeteer, { type Browser, type Page } from "puppeteer-core";
import type { MethodName, Params } from "../../protocol/methods.ts";
import { answer, delay } from "../../provider/reply.ts";
import { pathOf } from "../../scripts/lib/tiers.ts";
import { type DaemonUnderTest, startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { streamPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Setting } from "../lib/figure.ts";
import { createSessions } from "../lib/many-sessions.ts";
import { RawClient } from "../lib/raw-client.ts";
import { chosenPi, scriptModel } from "../lib/real-pi.ts";
import { quantile } from "../lib/statistics.ts";

const script = join(import.meta.dirname, "..", "fixtures", "console-page.mjs");
const sessions = 990;
const messages = 10_000;
const jumps = 60;
/** A page has at least 30 rows built, and 60 jumps pass over some 500. */
const copies = 30;

export const webConsole: Figure = {
  title:
    "the web console in Chromium: its first paint, many sessions, a long conversation, scrolling, an answer that streams",
  goals: [
    "W first paint",
    "W sessions",
    "W end",
    "W elements",
    "W scroll",
    "W stream",
    "W task",
    "W late",
    "W heap",
    "W open",
    "W closed",
  ],
  repetitions: 3,
  deadlineSeconds: 500,
  measure: async (setting, resources) => {
    const program = pathOf("chromium");
    if (program === undefined) throw new Error("chromium is missing.");
    const browser = resources.add(await launch(program, setting), (open) => open.close());
    const many = await withManySessions(setting, resources);
    const long = await withLongConversation(setting, resources);
    const streaming = await withStreamingAnswers(setting, resources);
    const firstPaint: number[] = [];
    const listed: number[] = [];
    const readable: number[] = [];
    const elements: number[] = [];
    const scroll: number[] = [];
    const bareScroll: number[] = [];
    const stream: number[] = [];
    const bareStream: number[] = [];
    const empty: number[] = [];
    const longest: number[] = [];
    const late: number[] = [];
    const heap: number[] = [];
    const memory: DaemonMemory[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) {
      const rail = await open(browser, many);
      listed.push(await inPage(rail, `since(".row-name")`));
      firstPaint.push(await inPage(rail, "firstPaint()"));
      await rail.close();
      const page = await open(browser, long);
      await page.waitForSelector(".row-name");
      readable.push(await inPage(page, `opened("Message ${messages - 1}.")`));
      await inPage(page, "longestTask()");
      scroll.push(quantile(await inPage<number[]>(page, `jumping(${jumps})`), 0.95));
      const scrolled = await inPage(page, "longestTask()");
      elements.push(await inPage(page, "elements()"));
      bareScroll.push(await inCopy(browser, await inPage<string>(page, `copy(${copies})`), `jumping(${jumps})`));
      await page.close();
      const streamed = await answered(browser, streaming, i);
      stream.push(streamed.work);
      bareStream.push(streamed.bareWork);
      empty.push(streamed.emptyWork);
      longest.push(Math.max(scrolled, streamed.longestTask));
      late.push(streamed.late);
      heap.push(streamed.heapMiB);
      memory.push(await memoryOfDaemon(browser, setting, resources));
    }
    return {
      rows: [
        { name: "first paint", unit: "ms", values: firstPaint, goals: ["W first paint"] },
        { name: `${sessions} sessions: the list is shown`, unit: "ms", values: listed, goals: ["W sessions"] },
        {
          name: `${messages} messages: the end is readable after a click`,
          unit: "ms",
          values: readable,
          goals: ["W end"],
        },
        {
          name: `${messages} messages: elements after scrolling`,
          unit: "elements",
          values: elements,
          goals: ["W elements"],
        },
        { name: "scrolling by jumps: work of a frame, p95", unit: "ms", values: scroll, goals: ["W scroll"] },
        { name: "scrolling by jumps: the same rows without the console", unit: "ms", values: bareScroll },
        { name: "200 deltas/s into 48 KiB: work of a frame, p95", unit: "ms", values: stream, goals: ["W stream"] },
        { name: "200 deltas/s: words added to the same rows without the console", unit: "ms", values: bareStream },
        { name: "nothing comes: work of a frame, p95", unit: "ms", values: empty },
        { name: "200 deltas/s: late frames, more than if nothing comes", unit: "%", values: late, goals: ["W late"] },
        { name: "scrolling and 200 deltas/s: the longest task", unit: "ms", values: longest, goals: ["W task"] },
        { name: "heap of the page after 100,000 deltas", unit: "MiB", values: heap, goals: ["W heap"] },
        {
          name: "the daemon while a page is open, more than before",
          unit: "MiB",
          values: memory.map(({ open }) => open),
          goals: ["W open"],
        },
        {
          name: "the daemon after the console is closed, more than before",
          unit: "MiB",
          values: memory.map(({ closed }) => closed),
          goals: ["W closed"],
        },
        {
          name: "a daemon after the same calls of another client, more than before",
          unit: "MiB",
          values: memory.map(({ sameCalls }) => sameCalls),
        },
      ],
      notes: ["From the beginning of the navigation. Chromium draws without a graphics card."],
    };
  },
};

/** Opens the console once: each address has a code of its own. */
type Address = () => Promise<string>;

async function launch(executablePath: string, { directory }: Setting): Promise<Browser> {
  return await puppeteer.launch({
    browser: "chrome",
    executablePath,
    userDataDir: join(directory, "browser"),
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      "--disable-background-networking",
      "--disable-component-update",
    ],
    pipe: true,
  });
}

async function prepared(browser: Browser): Promise<Page> {
  const context = await browser.createBrowserContext();
  const page = await context.newPage();
  page.once("close", () => void context.close());
  await page.setViewport({ width: 1440, height: 900 });
  await page.evaluateOnNewDocument(readFileSync(script, "utf8"));
  return page;
}

async function open(browser: Browser, address: Address): Promise<Page> {
  const page = await prepared(browser);
  await page.goto(await address());
  return page;
}

async function withManySessions(setting: Setting, resources: Resources): Promise<Address> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: await streamPi(setting) });
  const client = await RawClient.open(daemon, "unix", resources);
  for (const sessionId of await createSessions(client, sessions, setting.directory))
    await client.request("session/hibernate", { sessionId, force: true });
  return () => addressOf(client);
}

/** pi reads the file once; then the session sleeps. */
async function withLongConversation(setting: Setting, resources: Resources): Promise<Address> {
  const { env } = await scriptModel(setting, resources);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: chosenPi().path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId, file } = await client.request("session/create", { cwd: setting.directory });
  await client.request("session/close", { sessionId });
  const timestamp = new Date().toISOString();
  const header = { type: "session", version: 3, id: randomUUID(), timestamp, cwd: setting.directory };
  const entries = Array.from({ length: messages }, (_, n) => ({
    type: "message",
    id: `e${n}`,
    parentId: n === 0 ? null : `e${n - 1}`,
    timestamp,
    message: {
      role: "user",
      timestamp: Date.now(),
      content: [{ type: "text", text: `Message ${n}. ${"Some words. ".repeat(n % 40)}` }],
    },
  }));
  const long = join(file, "..", `long_${header.id}.jsonl`);
  writeFileSync(long, [header, ...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const opened = await client.request("session/open", { file: long });
  await client.request("session/hibernate", { sessionId: opened.sessionId, force: true });
  return () => addressOf(client);
}

interface Streaming {
  readonly address: Address;
  prompt(): Promise<unknown>;
}

const paragraph = `${"Some words of an answer. ".repeat(20)}\n\n`;
const deltas = 100_000;

/** Each prompt gets 48 KiB at once and then 200 deltas a second for 10 s; the next one 100,000 deltas at once. */
async function withStreamingAnswers(setting: Setting, resources: Resources): Promise<Streaming> {
  const slow = Array.from({ length: 2_000 }, (_, n) => [delay(5), n % 40 === 39 ? "end.\n\n" : "words "]).flat();
  const script = Array.from({ length: setting.repetitions }, (_, n) => [
    answer(paragraph.repeat(Math.ceil((48 * 1_024) / paragraph.length)), `Begun ${n}. `, ...slow, `Ended ${n}.`),
    answer(...Array.from({ length: deltas }, (_, n) => (n % 60 === 59 ? "end.\n\n" : "words ")), `All came ${n}.`),
  ]).flat();
  // Summaries would take answers of the script.
  const { env } = await scriptModel(setting, resources, { script }, { settings: { compaction: { enabled: false } } });
  const daemon = await startDaemonUnderTest(setting, resources, { pi: chosenPi().path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId } = await client.request("session/create", { cwd: setting.directory });
  return {
    address: () => addressOf(client),
    prompt: () => client.request("session/prompt", { sessionId, text: "Go on.", ifRunning: "followUp" }),
  };
}

interface Answered {
  readonly work: number;
  readonly bareWork: number;
  readonly emptyWork: number;
  /** In percentage points more than before the answer. */
  readonly late: number;
  readonly longestTask: number;
  readonly heapMiB: number;
}

async function answered(browser: Browser, { address, prompt }: Streaming, repetition: number): Promise<Answered> {
  const page = await open(browser, address);
  await page.waitForSelector(".row-name");
  await page.click(".row-name");
  await page.waitForSelector(".log");
  await inPage(page, "late()");
  const emptyWork = quantile(await inPage<number[]>(page, "during(5_000)"), 0.95);
  const emptyLate = await inPage(page, "late()");
  await prompt();
  await inPage(page, `until("Begun ${repetition}.")`);
  const copy = await inPage<string>(page, "copy(1)");
  await inPage(page, "longestTask()");
  await inPage(page, "late()");
  const work = quantile(await inPage<number[]>(page, `until("Ended ${repetition}.")`), 0.95);
  const late = (await inPage(page, "late()")) - emptyLate;
  const longestTask = await inPage(page, "longestTask()");
  const bareWork = await inCopy(browser, copy, "adding(5_000)");
  await prompt();
  await inPage(page, `until("All came ${repetition}.")`);
  const cdp = await page.createCDPSession();
  await cdp.send("HeapProfiler.collectGarbage");
  const { usedSize } = await cdp.send("Runtime.getHeapUsage");
  await page.close();
  return { work, bareWork, emptyWork, late, longestTask, heapMiB: usedSize / 2 ** 20 };
}

interface DaemonMemory {
  readonly open: number;
  readonly closed: number;
  /** What another client's same calls leave in another daemon. */
  readonly sameCalls: number;
}

/** Long enough for the answers to a page's questions. */
const restMs = 500;

/** What a page that has shown every view of a session costs a daemon in heap and buffers. */
async function memoryOfDaemon(browser: Browser, setting: Setting, resources: Resources): Promise<DaemonMemory> {
  const { daemon, client, ids, before } = await daemonAfterRun(setting, resources);
  const page = await prepared(browser);
  const cdp = await page.createCDPSession();
  await cdp.send("Network.enable");
  const sent: string[] = [];
  cdp.on("Network.webSocketFrameSent", ({ response }) => void sent.push(response.payloadData));
  await page.goto(await addressOf(client));
  await page.waitForSelector(".row-name");
  await page.click(".row-name");
  await page.waitForSelector(".log");
  for (const tab of await page.$$('[role="tab"]')) {
    await tab.click();
    await sleep(restMs);
  }
  const opened = await daemon.collectedMiB();
  await page.close();
  await client.request("web/close", {});
  await sleep(restMs);
  const closed = await daemon.collectedMiB();
  await daemon.stop();
  const other = await daemonAfterRun(setting, resources);
  const asker = await RawClient.open(other.daemon, "unix", resources);
  let answers = 0;
  for (const frame of sent) {
    const text = ids.reduce((former, id, index) => former.replaceAll(id, other.ids[index] ?? ""), frame);
    // The other daemon has another log.
    const { method, params }: Call = JSON.parse(text, (key, value) => (key === "epoch" ? undefined : value));
    // The page gets some refusals as well: what is not known without asking pi, and what is off.
    answers += await asker.request(method, params).then(
      () => 1,
      () => 0,
    );
  }
  if (answers < sent.length / 2) throw new Error(`Only ${answers} of the page's ${sent.length} calls were answered.`);
  asker.close();
  await sleep(restMs);
  const asked = await other.daemon.collectedMiB();
  await other.daemon.stop();
  return { open: opened - before, closed: closed - before, sameCalls: asked - other.before };
}

interface Call {
  readonly method: MethodName;
  readonly params: Params<MethodName>;
}

interface DaemonAfterRun {
  readonly daemon: DaemonUnderTest;
  readonly client: RawClient;
  /** The ids of its session and its prompt. */
  readonly ids: readonly string[];
  /** Its heap and buffers, in MiB. */
  readonly before: number;
}

async function daemonAfterRun(setting: Setting, resources: Resources): Promise<DaemonAfterRun> {
  const { env } = await scriptModel(setting, resources, { script: [answer(paragraph)] });
  const daemon = await startDaemonUnderTest(setting, resources, { pi: chosenPi().path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId } = await client.request("session/create", { cwd: setting.directory });
  const { promptId } = await client.request("session/prompt", { sessionId, text: "Go on." });
  await client.request("prompt/wait", { promptId });
  // The daemon still works after a run.
  await sleep(restMs);
  // The first measurement loads the code that collects.
  await daemon.collectedMiB();
  return { daemon, client, ids: [sessionId, promptId], before: await daemon.collectedMiB() };
}

async function addressOf(client: RawClient): Promise<string> {
  const { url, code } = await client.request("web/open", {});
  return `${url}#${code}`;
}

/** Calls a function of `console-page.mjs`. */
async function inPage<T = number>(page: Page, call: string): Promise<T> {
  return (await page.evaluate(`measure.${call}`)) as T;
}

/** The work of a frame, p95, in a page that has only this document. */
async function inCopy(browser: Browser, html: string, call: string): Promise<number> {
  const page = await prepared(browser);
  try {
    await page.goto("about:blank");
    await page.setContent(html);
    // Beside the rows, as in the console: the browser asks after each frame what is below it.
    await page.mouse.move(1_430, 890);
    return quantile(await inPage<number[]>(page, call), 0.95);
  } finally {
    await page.close();
  }
}
