import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { MAIN_TOKEN } from "../../../protocol/token-methods.ts";
import { Tokens, type TokensOptions } from "../../../server/rpc/tokens.ts";

let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "tokens-"));
  file = join(directory, "tokens.json");
});
afterEach(() => rmSync(directory, { recursive: true }));

function open(options: Partial<TokensOptions> = {}): Tokens {
  return new Tokens({
    main: "the-main-token",
    setMain: () => {},
    file,
    maxTokens: 3,
    web: { maxWebTokens: 2, webTokenIdleMs: 60_000 },
    ...options,
  });
}

test("named tokens are found only by their secret, with their permissions, also by the next daemon", () => {
  const { token } = open().create({ name: "ci", capabilities: ["prompt", "observe"], labels: { team: "a" } });
  const grant = open().find(token);
  expect(grant?.name).toBe("ci");
  expect(grant?.isLimited).toBe(true);
  expect(["observe", "prompt", "bash", "payload", "admin"].map((one) => grant?.allows(one as "observe"))).toEqual([
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(open().find("the-main-token")?.allows("payload")).toBe(true);
  for (const wrong of ["", "the-main-toke", `${token}x`, token.slice(1), readFileSync(file, "utf8")]) {
    expect(open().find(wrong)).toBeUndefined();
  }
});

test("a token that was found before is not found once it is revoked or rotated", () => {
  const tokens = open();
  const { token } = tokens.create({ name: "ci", capabilities: ["observe"] });
  for (const each of [token, "the-main-token"]) expect(tokens.find(each)).toBe(tokens.find(each));
  tokens.revoke("ci", setImmediate);
  expect(tokens.find(token)).toBeUndefined();
  const rotated = tokens.rotate(MAIN_TOKEN, setImmediate);
  expect(tokens.find("the-main-token")).toBeUndefined();
  expect(tokens.find(rotated.token)?.name).toBe(MAIN_TOKEN);
});

test("a name is unique, the number of tokens is limited, and one that allows admin has no limits", () => {
  const tokens = open();
  tokens.create({ name: "a", capabilities: ["observe"] });
  expect(() => tokens.create({ name: "a", capabilities: ["observe"] })).toThrow("already");
  expect(() => tokens.create({ name: MAIN_TOKEN, capabilities: ["observe"] })).toThrow("already");
  expect(() => tokens.create({ name: "b", capabilities: ["admin"], cwds: ["/"] })).toThrow("cannot have limits");
  tokens.create({ name: "b", capabilities: ["observe"] });
  tokens.create({ name: "c", capabilities: ["observe"] });
  expect(() => tokens.create({ name: "d", capabilities: ["observe"] })).toThrow("which is the limit");
});

test("a failed write changes nothing: no token is created, ended, or gets another secret", () => {
  const tokens = open();
  const { token } = tokens.create({ name: "a", capabilities: ["observe"] });
  const failing = open({
    file: join(directory, "none", "tokens.json"),
    setMain: () => {
      throw new Error("the disk is full");
    },
  });
  expect(() => failing.create({ name: "b", capabilities: ["observe"] })).toThrow("nothing has changed");
  expect(() => failing.rotate(MAIN_TOKEN, setImmediate)).toThrow("nothing has changed");
  expect(failing.find("the-main-token")?.isEnded).toBe(false);
  rmSync(file);
  mkdirSync(file);
  expect(() => tokens.rotate("a", setImmediate)).toThrow("nothing has changed");
  expect(() => tokens.revoke("a", setImmediate)).toThrow("nothing has changed");
  expect(readdirSync(directory)).toEqual(["tokens.json"]);
  expect(tokens.find(token)?.isEnded).toBe(false);
});

test.each([
  ["is no JSON", "{"],
  ["holds no tokens", "{}"],
  ["gives its own the name of the daemon's", stored({ name: MAIN_TOKEN })],
  ["has a capability that there is not", stored({ capabilities: ["root"] })],
  ["has no hash", stored({ hash: undefined })],
  ["limits an admin, who could create others", stored({ capabilities: ["admin"], cwds: ["/work"] })],
  ["has invalid labels", stored({ labels: "team" })],
])("a file that %s is not started with", (_what, text) => {
  writeFileSync(file, text, { mode: 0o600 });
  expect(() => open()).toThrow("cannot be used");
});

test("a file that others can read prevents the start", () => {
  writeFileSync(file, stored({}), { mode: 0o644 });
  expect(() => open()).toThrow("can read it");
  chmodSync(file, 0o600);
  expect(open().list().tokens).toHaveLength(2);
});

function stored(changed: object): string {
  const token = { name: "a", capabilities: ["observe"], createdAt: 1, hash: "0".repeat(64), ...changed };
  return JSON.stringify({ tokens: [token] });
}
