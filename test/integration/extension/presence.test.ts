import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import type { Content } from "../../../protocol/content.ts";
import { startProvider } from "../../../provider/server.ts";
import { push, startPi } from "./driver.ts";
import { sharePi } from "./shared-pi.ts";

const shared = sharePi();

const apis = ["scripted", "scripted-responses", "scripted-anthropic", "scripted-google"] as const;
const models = [{ id: "seeing", input: ["text", "image"] }];
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const contents: readonly (readonly [string, Content])[] = [
  ["a text", "Hello."],
  [
    "blocks",
    [
      { type: "text", text: "One." },
      { type: "text", text: "  Two.\n" },
      { type: "text", text: "\n\n" },
      { type: "text", text: "Three." },
    ],
  ],
  ["an image", [{ type: "image", data: pixel, mimeType: "image/png" }]],
  [
    "text around an image",
    [
      { type: "text", text: "Look:" },
      { type: "image", data: pixel, mimeType: "image/png" },
      { type: "text", text: "Nice?" },
    ],
  ],
  ["escapes", 'A "quoted" \\ back\\slash, \ttabs,\r\n lines, \u2028 and \u0000 and </tags> and {"json": true}'],
  ["many scripts", "Grüße, 你好, שלום, 🙈👩‍👩‍👧, e\u0301 and é"],
  ["text within others", "system"],
];

test.for(apis)("%s: no content is wrongly considered missing", async (api) => {
  await using lent = await shared.use({ api, models });
  const { pi } = lent;
  let nth = 0;
  for (const [name, content] of contents) {
    await pi.hold(push(`d${++nth}`, content));
    await pi.settled(nth);
    expect(pi.receiptsOf(`d${nth}`)[2], name).toMatch(/^delivered .*confirmed$/);
  }
});

test.for(apis)("%s: content that no payload can carry unchanged stays unverified: a lone surrogate", async (api) => {
  await using lent = await shared.use({ api, models });
  const { pi } = lent;
  await pi.hold(push("d1", "before \uD83D between", { triggerTurn: false }), push("d2", "Whole: 🙈."));
  await pi.settled();
  expect(pi.receiptsOf("d1")[2]).toMatch(/^delivered .*unverified$/);
  expect(pi.receiptsOf("d2")[2]).toMatch(/^delivered .*confirmed$/);
});

test.for(apis)("%s: equal contents are distinguished by their number", async (api) => {
  await using lent = await shared.use({ api, models });
  const { pi } = lent;
  await pi.rpc({ type: "prompt", message: "Go on." });
  await pi.settled();
  await pi.hold(
    push("d1", "Go on.", { triggerTurn: false }),
    push("d2", "Go on."),
    push("d3", [{ type: "text", text: "Go on." }]),
  );
  await pi.settled(2);
  for (const id of ["d1", "d2", "d3"]) expect(pi.receiptsOf(id)[2]).toMatch(/^delivered .*confirmed$/);
});

test("a very long content is sent by a file and found in the payload", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  const text = "All work and no play. ".repeat(50_000);
  const { path, reply } = await pi.sendFile({ kind: "hold", pushes: [push("d1", text)] });
  expect(reply).toEqual({ held: ["d1"], inserted: [], running: true });
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
  expect(existsSync(path)).toBe(false);
});

test("content that another extension removes from the payload is never delivered", async () => {
  await using lent = await shared.use({ before: ["remove-marked"] });
  const { pi, provider } = lent;
  await pi.hold(push("d1", "REMOVE ME", { triggerTurn: false }), push("d2", "Stay."));
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 unverified"]);
  expect(pi.receiptsOf("d2")).toEqual(["inserted", "prepared", "delivered headers 200 confirmed", "answered"]);
  expect(provider.requests[0]?.hasText("REMOVE ME")).toBe(false);
});

test("removing one of two equal contents leaves both unverified", async () => {
  await using lent = await shared.use({ before: ["remove-marked"] });
  const { pi } = lent;
  await pi.rpc({ type: "prompt", message: "Hello." });
  await pi.settled();
  await pi.hold(push("d1", "REMOVE ME", { triggerTurn: false }), push("d2", "REMOVE ME"));
  await pi.settled(2);
  expect(pi.receiptsOf("d1")[2]).toBe("delivered headers 200 unverified");
  expect(pi.receiptsOf("d2")[2]).toBe("delivered headers 200 unverified");
});

test("content that another extension removes after the helper's check cannot be detected", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["remove-marked"] });
  await pi.hold(push("d1", "REMOVE ME", { triggerTurn: false }), push("d2", "Stay."));
  await pi.settled();
  expect(pi.receiptsOf("d1")[2]).toBe("delivered headers 200 confirmed");
});

test("a push that another extension rewrites is unverified, and one that it hides counts as left out", async () => {
  await using provider = await startProvider();
  await using pi = await startPi({ provider, after: ["edit-marked"] });
  await pi.hold(
    push("d1", "EDIT ME", { triggerTurn: false }),
    push("d2", "HIDE ME", { triggerTurn: false }),
    push("d3", "Stay."),
  );
  await pi.settled();
  expect(pi.receiptsOf("d1")).toEqual(["inserted", "prepared", "delivered headers 200 unverified"]);
  expect(pi.receiptsOf("d2")).toEqual(["inserted", "leftOut removed_by_extension"]);
  expect(pi.receiptsOf("d3").at(-1)).toBe("answered");
});

test("an image that the model cannot take is not delivered", async () => {
  await using lent = await shared.use();
  const { pi } = lent;
  await pi.hold(
    push("d1", [
      { type: "text", text: "Look:" },
      { type: "image", data: pixel, mimeType: "image/png" },
    ]),
  );
  await pi.settled();
  expect(pi.receiptsOf("d1")[2]).toBe("delivered headers 200 unverified");
});
