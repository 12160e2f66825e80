import { describe, expect, test } from "vitest";
import { checkPresence } from "../../../extension/delivery/presence.ts";

const image = "aGVsbG8gd29ybGQ=";
const custom = (deliveryId: string, content: unknown): object => ({
  role: "custom",
  content,
  details: { "pi-rpcd": { deliveryId } },
});
const user = (content: unknown): object => ({ role: "user", content });
const check = (content: unknown, payload: unknown, others: readonly object[] = []): string | undefined =>
  checkPresence([{ deliveryId: "d1", content }], [...others, custom("d1", content)], payload)["d1"];

describe("presence in a payload", () => {
  test.for<[string, unknown, unknown]>([
    ["a text", "Hello.", { messages: [user("Hello.")] }],
    ["a text as a block", "Hello.", { messages: [user([{ type: "text", text: "Hello.", cache_control: {} }])] }],
    ["an input text", "Hello.", { input: [{ role: "user", content: [{ type: "input_text", text: "Hello." }] }] }],
    ["a part", "Hello.", { contents: [{ role: "user", parts: [{ text: "Hello." }] }] }],
    ["a text below", "Hello.", { request: { context: { messages: [user("Hello.")] } } }],
    [
      "blocks that were joined",
      [
        { type: "text", text: "One." },
        { type: "text", text: "Two." },
      ],
      { messages: [user("One.\nTwo.")] },
    ],
    [
      "a text that was cut",
      "One. Two.",
      {
        messages: [
          user([
            { type: "text", text: "One." },
            { type: "text", text: "Two." },
          ]),
        ],
      },
    ],
    [
      "in a longer message",
      "A sentence of a certain length.",
      { messages: [user("Before. A sentence of a certain length. Behind.")] },
    ],
    [
      "an image as a data URL",
      [{ type: "image", data: image, mimeType: "image/png" }],
      { messages: [user([{ type: "image_url", image_url: { url: `data:image/png;base64,${image}` } }])] },
    ],
    [
      "an image as a source",
      [{ type: "image", data: image, mimeType: "image/png" }],
      { messages: [user([{ type: "image", source: { type: "base64", data: image } }])] },
    ],
    [
      "an image inline",
      [{ type: "image", data: image, mimeType: "image/png" }],
      { contents: [{ role: "user", parts: [{ inlineData: { mimeType: "image/png", data: image } }] }] },
    ],
    [
      "an image as bytes",
      [{ type: "image", data: image, mimeType: "image/png" }],
      { messages: [user([{ image: { format: "png", source: { bytes: Buffer.from(image, "base64") } } }])] },
    ],
    ["in an unknown format", "Hello.", { prompt: ["You are.", "Hello."] }],
  ])("finds %s", ([, content, payload]) => {
    expect(check(content, payload)).toBe("confirmed");
  });

  test.for<[string, unknown, unknown]>([
    ["a missing content", "Hello.", { messages: [user("Goodbye.")] }],
    [
      "what only the model has said",
      "Hello.",
      { messages: [user("Say it."), { role: "assistant", content: "Hello." }] },
    ],
    [
      "what only a tool has said",
      "Hello.",
      { messages: [user([{ type: "tool_result", content: [{ type: "text", text: "Hello." }] }])] },
    ],
    ["a short text in another", "ok", { messages: [user("Look at the token.")] }],
    [
      "a text without its image",
      [
        { type: "text", text: "Look:" },
        { type: "image", data: image, mimeType: "image/png" },
      ],
      { messages: [user("Look:")] },
    ],
    [
      "another image",
      [{ type: "image", data: image, mimeType: "image/png" }],
      { messages: [user([{ type: "image", source: { data: "bm8=" } }])] },
    ],
    [
      "a push that was rewritten",
      "Hello, world, how are you today?",
      { messages: [user("Hello, world, how were you today?")] },
    ],
    [
      "anything in a payload without messages of users",
      "You are a helpful assistant.",
      { messages: [{ role: "system", content: "You are a helpful assistant." }] },
    ],
    ["a lone surrogate, which pi removes", "a\uD83Db🙈", { messages: [user("ab🙈")] }],
    ["a lone surrogate that was replaced", "a\uD83Db", { messages: [user("a\uFFFDb")] }],
    [
      "halves of a pair in two blocks",
      [
        { type: "text", text: "a\uD83D" },
        { type: "text", text: "\uDE48b" },
      ],
      { messages: [user("ab")] },
    ],
    ["blank text that is not sent", " \n", { messages: [user("Hello.")] }],
    ["anything in nothing", "Hello.", undefined],
  ])("does not find %s", ([, content, payload]) => {
    expect(check(content, payload)).toBe("unverified");
  });

  test("finds a push although other messages have lone surrogates", () => {
    const payload = { messages: [user("ab"), user("Hello.")] };
    expect(check("Hello.", payload, [user("a\uD83Db")])).toBe("confirmed");
  });

  test("counts equal contents: as many as are listed must be sent", () => {
    const listed = [user("Go on."), { role: "assistant", content: "Yes." }];
    expect(check("Go on.", { messages: [user("Go on."), user("Go on.")] }, listed)).toBe("confirmed");
    expect(check("Go on.", { messages: [user("Go on.")] }, listed)).toBe("unverified");
  });

  test("counts an occurrence in a longer text of the list", () => {
    const long = "The same sentence of some length.";
    const listed = [user(`I quote: ${long}`)];
    expect(check(long, { messages: [user(`I quote: ${long}`), user(long)] }, listed)).toBe("confirmed");
    expect(check(long, { messages: [user(`I quote: ${long}`)] }, listed)).toBe("unverified");
  });

  test("compares the handed-over content, not another handler's version of it in the list", () => {
    const messages = [custom("d1", "Edited.")];
    const checks = checkPresence([{ deliveryId: "d1", content: "Original." }], messages, {
      messages: [user("Edited.")],
    });
    expect(checks).toEqual({ d1: "unverified" });
  });

  test("a text of only blanks is found unchanged", () => {
    expect(check(" \n", { messages: [user(" \n")] })).toBe("confirmed");
    expect(check(" \n", { messages: [user("\n")] })).toBe("unverified");
  });

  test("searches megabytes in less than a second", () => {
    const text = "All work and no play makes Jack a dull boy. ".repeat(100_000);
    const started = performance.now();
    expect(check(text, { messages: [user("Hello."), user(text)] }, [user("Hello.")])).toBe("confirmed");
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});
