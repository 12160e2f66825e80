import type { ContentBlock } from "@agentclientprotocol/sdk";
import { describe, expect, test } from "vitest";
import { AcpError } from "../../../acp/acp-error.ts";
import { promptContent } from "../../../acp/prompt-content.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";

const text = (words: string): ContentBlock => ({ type: "text", text: words });
const embedded = (resource: Unchecked): ContentBlock => ({ type: "resource", resource });
const link = (uri: string, name = "a"): ContentBlock => ({ type: "resource_link", uri, name });
const textOf = (...blocks: ContentBlock[]): string => promptContent(blocks).text;

function refusal(block: Unchecked): unknown {
  try {
    return promptContent([text("x"), block]);
  } catch (error) {
    return error;
  }
}

describe("the content of a prompt", () => {
  test("blocks are joined by empty lines, and a command stays at the beginning", () => {
    expect(textOf(text("/review  now\n"), link("file:///project/a.ts"))).toBe("/review  now\n\n\n/project/a.ts");
  });

  test("a file is a fence under its path, which its own backticks cannot close", () => {
    expect(textOf(embedded({ uri: "file:///project/my%20file.md", text: "a\n````\nb" }))).toBe(
      "/project/my file.md\n`````\na\n````\nb\n`````",
    );
  });

  test.each([
    ["file:///project/a.ts#L3-9", "/project/a.ts#L3-9"],
    ["https://example.com/x", "[a](https://example.com/x)"],
    ["file://other-host/a", "[a](file://other-host/a)"],
    ["file:///bad%00name%2F", "[a](file:///bad%00name%2F)"],
    ["zed:///thread/1", "[a](zed:///thread/1)"],
  ])("the link %s is %s", (uri, expected) => {
    expect(textOf(link(uri))).toBe(expected);
  });

  test("images are images, also as resources; other binaries are a path and a size", () => {
    const image = { type: "image", data: "AAAA", mimeType: "image/png" } as const;
    const blobs = [
      embedded({ uri: "file:///i.png", blob: "AAAA", mimeType: "IMAGE/PNG" }),
      embedded({ uri: "file:///b.bin", blob: "AAAA" }),
    ];
    expect(promptContent([image, ...blobs])).toEqual({ text: "/b.bin (3 bytes)", images: [image, image] });
  });

  test.each([
    { type: "audio", data: "AAAA", mimeType: "audio/wav" },
    { type: "image", data: "AAAA", mimeType: "text/html" },
    { type: "image", data: "", mimeType: "image/png" },
    { type: "hologram" },
  ])("$type $mimeType is refused, and the error names the block", (block) => {
    const error = refusal(block);
    expect(error).toBeInstanceOf(AcpError);
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining("Block 1 of the prompt") });
  });

  test.each([[[]], [[{ type: "text", text: " \n" }]]])("%j has nothing to send", (blocks) => {
    expect(() => promptContent(blocks as never)).toThrow("The prompt is empty.");
  });
});
