import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Params, Result } from "../../../client/browser.ts";
import { WireError } from "../../../client/browser.ts";
import { excerptAround, literal } from "../../../web/state/finding.ts";
import { type Hit, TranscriptSearch } from "../../../web/state/search.ts";
import { FakeDaemon, settled } from "./fake-daemon.ts";
import { answer, call, entry, Scene, toolResult, user } from "./scenario.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

type Answer = Result<"transcript/search">;

const hit = (
  entryId: string,
  excerpt: string,
  fields: Partial<Answer["hits"][number]> = {},
): Answer["hits"][number] => {
  const { index = 0, 0: match = "" } = /needle/i.exec(excerpt) ?? {};
  return { sessionId: "s1", entryId, kind: "user", excerpt, matchStart: index, matchLength: match.length, ...fields };
};
const found = (hits: Answer["hits"], fields: Partial<Answer> = {}): Answer => ({
  ...{ hits, sessions: 1, sessionsLeft: 0, bytes: 1 },
  ...fields,
});
const shown = ({ kind, before, match, after }: Hit): string => `${kind}: ${before}[${match}]${after}`;

/** A search with an open conversation, and a daemon that has further answers. */
class Fixture {
  readonly daemon = new FakeDaemon();
  readonly scene = new Scene();
  readonly search = new TranscriptSearch({ daemon: this.daemon, titleOf: (sessionId) => `title of ${sessionId}` });
  answers: (Answer | Error)[] = [];

  constructor(...answers: readonly (Answer | Error)[]) {
    this.answers = [...answers];
    this.daemon.on("transcript/search", (_params, signal) => {
      const next = this.answers.shift();
      if (next instanceof Error) return Promise.reject(next);
      return next ?? new Promise<never>((_, reject) => signal?.addEventListener("abort", () => reject(signal.reason)));
    });
  }

  async open(): Promise<void> {
    await this.scene.open();
    this.search.show({ sessionId: "s1", conversation: this.scene.conversation });
  }

  /** Lets the time of typing pass, and the daemon answer. */
  async wait(): Promise<void> {
    vi.advanceTimersByTime(1_000);
    await settled();
  }

  get asked(): readonly Params<"transcript/search">[] {
    return this.daemon.calls.map(({ params }) => params as Params<"transcript/search">);
  }

  get hits(): readonly string[] {
    return this.search.hits.value.map(shown);
  }
}

test("what is loaded is found at once, and then what the file of the session has", async () => {
  const fixture = new Fixture(
    found([hit("e4", "The needle."), hit("e0", "An old needle.", { isOnOtherBranch: true })]),
  );
  fixture.scene.history([
    entry("e1", user("No.", 1)),
    entry(
      "e2",
      answer(2, [{ type: "thinking", thinking: "A Needle?" }, call("c1", "bash", { command: "grep NEEDLE" })]),
    ),
    entry("e3", toolResult("c1", "needle.txt", 3)),
    entry("e4", user("The needle.", 4)),
  ]);
  await fixture.open();
  fixture.search.write("needle");
  expect(fixture.hits).toEqual([
    "user: The [needle].",
    'toolCall: { "command": "grep [NEEDLE]" }',
    "thinking: A [Needle]?",
  ]);
  expect([fixture.search.state.value.kind, fixture.asked]).toEqual(["looking", []]);
  await fixture.wait();
  expect(fixture.asked).toEqual([{ query: "needle", limit: 50, sessionId: "s1" }]);
  expect(fixture.hits).toEqual(["user: The [needle].", "user: An old [needle]."]);
  expect(fixture.search.hits.value.map(({ isOnOtherBranch }) => isOnOtherBranch)).toEqual([false, true]);
  expect(fixture.search.state.value).toEqual({ kind: "ended" });
});

test("a long conversation is looked through in slices, of which the next key leaves out the rest", async () => {
  const fixture = new Fixture(found([]));
  fixture.scene.history(Array.from({ length: 40 }, (_, index) => entry(`e${index}`, user(`needle ${index}`, index))));
  await fixture.open();
  let now = 0;
  // Each row takes 3 ms.
  const clock = vi.spyOn(performance, "now").mockImplementation(() => {
    now += 3;
    return now;
  });
  const look = (): void => void vi.advanceTimersByTime(1);
  fixture.search.write("needle");
  expect(fixture.hits.length).toBe(2);
  look();
  await settled();
  expect(fixture.hits.length).toBe(5);
  fixture.search.write("needle 1");
  look();
  await settled();
  // None of the newest has it, and the look for the first word has ended.
  expect(fixture.hits).toEqual([]);
  for (let count = 0; count < 40; count += 1) {
    look();
    await settled();
  }
  clock.mockRestore();
  expect(fixture.hits).toHaveLength(11);
  await fixture.wait();
  expect([fixture.hits, fixture.search.state.value.kind]).toEqual([[], "ended"]);
});

test("what pi has not written stays until the file has it", async () => {
  const fixture = new Fixture(found([]), found([hit("e1", "A needle comes.")]));
  await fixture.open();
  fixture.scene.begin(answer(6, []));
  fixture.scene.start(0);
  fixture.scene.delta(0, "A needle comes.");
  fixture.scene.page.draw();
  fixture.search.write("needle");
  await fixture.wait();
  expect(fixture.hits).toEqual(["assistant: A [needle] comes."]);
  fixture.search.show(fixture.search.open.value);
  await fixture.wait();
  expect(fixture.search.hits.value.map(({ entryId }) => entryId)).toEqual(["e1"]);
});

test("a search goes on by itself until it has enough, and then by a press", async () => {
  const many = (prefix: string) => Array.from({ length: 30 }, (_, index) => hit(`${prefix}${index}`, "needle"));
  const fixture = new Fixture(
    found(many("a"), { before: "1", sessions: 112, sessionsLeft: 100 }),
    found([], { before: "2", sessions: 112, sessionsLeft: 80, unsearched: [{ sessionId: "s9", why: "ephemeral" }] }),
    found(many("b"), { before: "3", sessions: 112, sessionsLeft: 72 }),
    found([hit("c", "needle")], { sessions: 112 }),
  );
  fixture.search.show(undefined);
  fixture.search.write("needle");
  await fixture.wait();
  expect(fixture.asked.map(({ before, sessionId }) => [before, sessionId])).toEqual([
    [undefined, undefined],
    ["1", undefined],
    ["2", undefined],
  ]);
  const { search } = fixture;
  expect([search.state.value, search.progress.value]).toEqual([{ kind: "cut" }, { sessions: 112, done: 40 }]);
  expect(search.unsearched.value).toEqual([{ sessionId: "s9", why: "ephemeral" }]);
  await search.more();
  expect([search.hits.value.length, search.state.value.kind, fixture.asked.at(-1)?.before]).toEqual([61, "ended", "3"]);
});

test("a refusal says why and what was found stays; it can be tried again", async () => {
  const fixture = new Fixture(
    found([hit("a", "needle")], { before: "1" }),
    new WireError("overloaded", "Too many searches."),
    found([hit("b", "needle")]),
  );
  fixture.search.show(undefined);
  fixture.search.write("needle");
  await fixture.wait();
  expect(fixture.search.state.value).toEqual({ kind: "refused", words: "Too many searches." });
  expect(fixture.search.hits.value).toHaveLength(1);
  await fixture.search.more();
  expect(fixture.search.hits.value.map(({ entryId }) => entryId)).toEqual(["a", "b"]);
});

test("another word ends the search for the one before, and only the last word of a quick typist is asked for", async () => {
  const fixture = new Fixture();
  fixture.search.show(undefined);
  for (const query of ["n", "ne", "need"]) {
    fixture.search.write(query);
    vi.advanceTimersByTime(100);
  }
  await fixture.wait();
  fixture.answers = [found([hit("a", "needle")])];
  fixture.search.write("needle");
  await fixture.wait();
  expect(fixture.asked.map(({ query }) => query)).toEqual(["need", "needle"]);
  expect(fixture.search.hits.value).toHaveLength(1);
  fixture.search.write("needles");
  await fixture.wait();
  fixture.search.write(" ");
  await fixture.wait();
  expect([fixture.search.state.value.kind, fixture.hits, fixture.asked.length]).toEqual(["empty", [], 3]);
});

test("the search is about the open session, or about all, as a person says", async () => {
  const fixture = new Fixture(found([]), found([]), found([]));
  await fixture.open();
  fixture.search.write("needle");
  await fixture.wait();
  fixture.search.setScope("all");
  await fixture.wait();
  fixture.search.show({ sessionId: "s2", conversation: fixture.scene.conversation });
  await fixture.wait();
  expect(fixture.asked.map(({ sessionId }) => sessionId)).toEqual(["s1", undefined, "s2"]);
});

test("nothing in a query is a pattern, and an excerpt ends at characters", () => {
  for (const query of ["a.b", "(", "[x]", "$^*+?{1}|\\", "/", "É"])
    expect(literal(query).exec(`x ${query}`)?.index).toBe(2);
  expect(literal("a.b").test("axb")).toBe(false);
  const long = `${"💡".repeat(100)}\nneedle.${"💡".repeat(100)}`;
  const { before, match, after } = excerptAround(long, long.indexOf("needle"), 6);
  expect([before.isWellFormed(), match, after.isWellFormed()]).toEqual([true, "needle", true]);
  expect([before.slice(0, 1), before.slice(-1), after.slice(-1)]).toEqual(["…", " ", "…"]);
});
