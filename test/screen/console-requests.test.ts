import { expect, test } from "vitest";
import { Gate } from "../../provider/gate.ts";
import { type AnswerReply, answer, call, hold, type Part, status } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { type Stage, startStage } from "../helpers/stage.ts";
import { problems } from "./console-axe.ts";
import { ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";

const boxes = "html, body, .page, .main, .tape, .tabs-line, .figures, .costs, .panel, .side";
const fills = ["cacheRead", "cacheWrite", "input", "output", "failed"].map((fill) => `.fill-${fill}`);

/** An answer with these tokens: uncached, read from the cache, written to it, output. */
function used(
  [inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens]: readonly number[],
  ...parts: readonly (string | Part)[]
): AnswerReply {
  const usage = { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, reasoningTokens: 0 };
  return { ...answer(...parts), usage: usage as NonNullable<AnswerReply["usage"]> };
}

/** A retry, two tools of which one edits, a push, and a lost cache. */
const script = [
  status(529, { message: "Overloaded" }),
  used([12, 0, 4_100, 90], "I write.", call("write", { path: "a.ts", content: "const max = 2;\n" })),
  used([40, 4_100, 260, 160], "I edit.", call("edit", { path: "a.ts", edits: [{ oldText: "2", newText: "3" }] })),
  used([30, 4_360, 220, 110], "Done."),
  used([1_900, 300, 4_500, 120], "I have seen it."),
];

async function madeRequests(stage: Stage): Promise<string> {
  const { client } = stage;
  const session = await stage.session();
  await client.call("cost/setBudget", { sessionId: session.id, budgetUsd: 0.018 });
  await client.call("cost/startPhase", { sessionId: session.id, label: "look and edit" });
  await session.prompt("Change the limit.").settled();
  await session.push({ customType: "build", content: "The build is red.", triggerTurn: true }).answered;
  await session.waitForIdle();
  return session.id;
}

/** The figures of an element as the page has them, not rounded. */
function figures(visit: Visit, selector: string): Promise<readonly number[]> {
  return visit.page.evaluate(
    (path) => Array.from(document.querySelectorAll<HTMLDataElement>(`${path} data`), ({ value }) => Number(value)),
    selector,
  );
}

test("bars equal the usage and sums the cost report, before and after a restart of the daemon, and looking starts no pi", async () => {
  await using stage = await startStage({ provider: { script } });
  const sessionId = await madeRequests(stage);
  await using browser = await ConsoleBrowser.open();

  const look = async (): Promise<void> => {
    const { client } = stage;
    await fallAsleep(client, sessionId);
    const { requests } = await client.call("request/list", { sessionId });
    const report = await client.call("cost/report", { sessionId });
    const before = await client.call("session/get", { sessionId });
    const visit = await browser.visit(await consoleAddress(client));
    await visit.clickOn(`[data-session="${sessionId}"] .row-name`);
    await visit.shows(/I have seen it\./, ".log");
    await visit.shows(/Requests\s*5/, ".tabs");
    await visit.press("2");
    await visit.shows(/Together/, ".figures");

    const known = requests.filter(({ usage }) => (usage?.totalTokens ?? 0) > 0);
    expect(known).toHaveLength(4);
    const rows = await visit.page.evaluate(() =>
      Array.from(document.querySelectorAll<HTMLElement>(".requests tbody tr"), (row) => ({
        id: row.dataset["request"],
        status: row.querySelector(".status")?.textContent,
        figures: Array.from(row.querySelectorAll("data"), ({ value }) => Number(value)),
        bar: row.querySelector(".tokens-bar title")?.textContent,
        isLost: row.querySelector(".lost") !== null,
      })),
    );
    expect(rows.map(({ id }) => id)).toEqual(requests.map(({ entryId }) => entryId));
    expect(rows.map(({ status }) => status)).toEqual([expect.stringMatching(/^failed/), ...Array(4).fill("answered")]);
    expect(rows.map(({ figures }) => figures)).toEqual([
      [],
      ...known.map(({ usage }) => [usage?.totalTokens, usage?.cost.total]),
    ]);
    expect(rows.map(({ bar }) => bar)).toEqual([
      undefined,
      "4,100 cache written, 12 uncached, 90 answer",
      "4,100 cache read, 260 cache written, 40 uncached, 160 answer",
      "4,360 cache read, 220 cache written, 30 uncached, 110 answer",
      "300 cache read, 4,500 cache written, 1,900 uncached, 120 answer",
    ]);
    expect(rows.map(({ isLost }) => isLost)).toEqual([false, false, false, false, true]);
    const [tokens, usd = Number.NaN] = await figures(visit, ".sums");
    expect(tokens).toBe(report.total.totalTokens);
    expect(usd).toBeCloseTo(report.total.cost.total, 12);

    // Until its width is known, the tape has one bar for all requests.
    await visit.holds(() => document.querySelectorAll(".tape-bars g").length === 5);
    // The heights of the parts of the tape's tallest bar are as its tokens.
    const parts = await visit.page.evaluate(() =>
      Array.from(document.querySelectorAll(".tape-bars g:last-of-type > rect"), (part) =>
        Number(part.getAttribute("height")),
      ),
    );
    expect(parts).toHaveLength(4);
    const whole = known.at(-1)?.usage?.totalTokens ?? 0;
    const scale = 94 / whole;
    for (const [index, count] of [300, 4_500, 1_900, 120].entries())
      expect(Math.abs((parts[index] ?? 0) - count * scale)).toBeLessThan(1.5);
    await visit.shows(
      /5 requests: \d+ % of the input came from caches, 1 failed, 1 lost its cache, 1 carried a push\./,
      ".tape",
    );

    await visit.press("4");
    await visit.shows(/By model/, ".costs");
    const costs = await figures(visit, ".costs");
    expect(costs[0]).toBe(report.total.cost.total);
    expect(costs).toContain(report.byModel["scripted/model-1"]?.cost.total);
    expect(costs).toContain(report.phases[0]?.usage.cost.total);
    await visit.shows(/budget is nearly spent/, ".budget");
    await visit.shows(/not known what they cost/, ".costs");
    await visit.shows(/Cost\s+\$0\.0\d+ of \$0\.018/, ".side");

    const after = await client.call("session/get", { sessionId });
    expect([after.state, after.generation, after.cursor]).toEqual(["hibernated", before.generation, before.cursor]);
    expect(await visit.faults()).toEqual([]);
  };
  await look();
  await stage.restart();
  await look();
});

test("a bar leads to its message, keys choose requests, and what a subscriber learns live is shown", async () => {
  const gate = new Gate();
  await using stage = await startStage({
    provider: {
      script: [answer(Array(60).fill("A long answer.").join("\n\n")), answer("Second.", hold(gate), " End.")],
    },
  });
  const session = await stage.session();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(".row-name");
  await visit.press("2");
  await visit.shows(/No requests yet/, ".figures");
  await session.prompt("First.").settled();
  await visit.shows(/answered/, ".requests");
  const running = session.prompt("Go on.");
  await gate.reached;
  await visit.shows(/answered[\s\S]*answering/, ".requests");
  await visit.press("[");
  await visit.shows(/Request 2[\s\S]*answering, HTTP 200[\s\S]*Attempt\s+1/, ".side");
  await visit.press("[");
  await visit.shows(/Request 1[\s\S]*Known only live\s+Attempt\s+1[\s\S]*SHA-256\s+[0-9a-f]{12}/, ".side");
  await visit.click("Show in the conversation");
  const focused = (): Promise<string> =>
    visit.page.evaluate(() => (document.activeElement as HTMLElement | null)?.innerText.slice(0, 200) ?? "");
  await expect.poll(focused).toMatch(/A long answer/);

  await visit.page.focus(".tape-bars");
  const value = (): Promise<string | null> =>
    visit.page.evaluate(() => document.querySelector(".tape-bars")?.getAttribute("aria-valuetext") ?? null);
  await visit.press("ArrowRight");
  await expect.poll(value).toMatch(/^Request 2, model-1, answering/);
  gate.open();
  await running.settled();
  await expect.poll(value).toMatch(/^Request 2, model-1, answered, [\d.k]+ tokens/);
  await visit.press("Enter");
  await expect.poll(focused).toMatch(/Second\. End\./);
  await visit.press("4", "i");
  await visit.holds(() => document.activeElement?.tagName === "TEXTAREA");
  await visit.type("Words.");
  await expect.poll(() => visit.page.evaluate(() => document.querySelector("textarea")?.value)).toBe("Words.");
  expect(await visit.faults()).toEqual([]);
});

test("what was sent is shown where it was asked for, and its payload where the token may", async () => {
  await using stage = await startStage({ provider: { script: ["One.", "Two.", "Three."] } });
  const session = await stage.session();
  await using browser = await ConsoleBrowser.open();
  const open = async (options: { payload: boolean }): Promise<Visit> => {
    const visit = await browser.visit(await consoleAddress(stage.client, options));
    await visit.clickOn(".row-name");
    await visit.press("2");
    await visit.shows(/No requests yet|answered/, ".figures");
    return visit;
  };
  const visit = await open({ payload: true });
  await session.promptAndWait("First words.");
  await visit.shows(/answered/, ".requests");
  await visit.press("[");
  await visit.shows(/Made of, in characters[\s\S]*messages of users\s+12\s/, ".side");
  await visit.click("Get them");
  await visit.shows(/This page got none of this request/, ".side");
  await session.promptAndWait("<b>Second</b> words.");
  await visit.shows(/answered[\s\S]*answered/, ".requests");
  await visit.press("]");
  await visit.shows(/Request 2[\s\S]*4 messages\s+The payload/, ".side");
  await visit.clickOn(".side .request-body details:last-of-type > summary");
  await visit.shows(/"model": "model-1"[\s\S]*<b>Second<\/b> words\./, ".side .request-body");
  await visit.clickOn(".side .request-body details:first-of-type > summary");
  await visit.shows(/system\s+user\s+assistant\s+user/, ".side .request-body");
  await visit.shot("request-body");
  const isWide = await visit.page.evaluate(() => {
    const { scrollWidth = 0, clientWidth = 0 } = document.querySelector(".side") ?? {};
    return scrollWidth > clientWidth;
  });
  expect(isWide).toBe(false);
  await visit.click("Forget them, and get no more");
  await visit.shows(/Get them/, ".side .request-body");
  expect(await visit.faults()).toEqual([]);

  const other = await open({ payload: false });
  await other.press("[");
  await other.click("Get them");
  await other.shows(/This page got none of this request/, ".side");
  await session.promptAndWait("Third words.");
  await other.shows(/answered[\s\S]*answered[\s\S]*answered/, ".requests");
  await other.press("]");
  await other.shows(/Request 3[\s\S]*6 messages\s+The payload needs a page/, ".side");
  expect(await other.faults()).toEqual([]);
});

test("axe finds nothing in the tape, the requests and the costs, and only tables scroll sideways", async () => {
  await using stage = await startStage({ provider: { script } });
  await madeRequests(stage);
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(".row-name");
  await visit.shows(/I have seen it\./, ".log");
  await visit.shows(/carries a push/, ".tape");
  const cdp = await visit.page.createCDPSession();
  const found: string[] = [];
  for (const [key, shows] of [
    ["1", /I have seen it/],
    ["2", /Together/],
    ["4", /By model/],
  ] as const) {
    await visit.press(key);
    await visit.shows(shows, ".panel:not([inert])");
    if (key === "2") await visit.press("[");
    for (const width of [320, 390, 1_440]) {
      await visit.page.setViewport({ width, height: 900 });
      for (const scheme of ["light", "dark"]) {
        await cdp.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
        await visit.isDrawn();
        const where = `tab-${key} ${width} ${scheme}`;
        await visit.shot(where.replaceAll(" ", "-"));
        for (const problem of await problems(visit, { boxes, fills, behind: ".tape, .head" }))
          found.push(`${where}: ${problem}`);
      }
    }
  }
  expect(found).toEqual([]);
  expect(await visit.faults()).toEqual([]);
});
