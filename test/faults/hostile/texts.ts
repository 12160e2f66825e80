import { goodCall } from "./target.ts";

/** A text that no client would write, and the expected result. */
export interface HostileText {
  readonly title: string;
  readonly text: () => Buffer | string;
  /** The name of its error. Without one a result is expected. */
  readonly name?: string;
  /** It is an error of the text as a whole, which has id null and says nothing of its parts. */
  readonly whole?: boolean;
  /** In place of a batch's member, it makes the batch invalid JSON. */
  readonly aloneOnly?: boolean;
  /** As a frame it breaks RFC 6455: its connection is closed with this code. */
  readonly closed?: number;
}

const mib = 1024 * 1024;
const command = (data: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"session/command","params":{"sessionId":"nobody","command":{"type":"a","data":${data}}}}`;
const call = (fields: string): string => `{"jsonrpc":"2.0",${fields}}`;
const around = (text: string, bytes: readonly number[]): Buffer => {
  const [before = "", behind = ""] = text.split("#");
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(behind)]);
};
const nested = (depth: number, inner: string): string =>
  `${'{"a":['.repeat(depth / 2)}${inner}${"]}".repeat(depth / 2)}`;
const manyKeys = (count: number): string => `{${Array.from({ length: count }, (_, at) => `"k${at}":0`).join()}}`;

/** Valid JSON with unusual values: checked like other params, and passed on unchanged. The session does not exist. */
const taken = { name: "session_not_found" };
const refused = { name: "invalid_request", whole: true };
const unread = { name: "parse_error", whole: true };

export const hostileTexts: readonly HostileText[] = [
  { title: "100,000 arrays within each other", text: () => "[".repeat(100_000) + "]".repeat(100_000), ...refused },
  {
    title: "100,000 objects as params",
    text: () => command(`${'{"a":'.repeat(100_000)}1${"}".repeat(100_000)}`),
    ...refused,
  },
  { title: "5 million brackets", text: () => Buffer.alloc(5_000_000, "["), ...refused },
  { title: "5 million brackets in params", text: () => command("[".repeat(5_000_000)), ...refused },
  { title: "120 levels", text: () => command(nested(120, "1")), ...taken },
  { title: "the number 1e400", text: () => command("1e400"), ...taken },
  {
    title: "the number -1e400 as an id",
    text: () => call('"id":-1e400,"method":"daemon/info"'),
    name: "invalid_request",
  },
  { title: "a number of 10,000 digits", text: () => command("9".repeat(10_000)), ...taken },
  { title: "a fraction of 10,000 digits", text: () => command(`0.${"1".repeat(10_000)}e-400`), ...taken },
  {
    title: "an id of 10,000 digits",
    text: () => call(`"id":${"9".repeat(10_000)},"method":"daemon/info"`),
    name: "invalid_request",
  },
  {
    title: "a number of 10,000 digits as a bound",
    text: () => call(`"id":1,"method":"session/list","params":{"limit":${"9".repeat(10_000)}}`),
    name: "invalid_params",
  },
  {
    title: "the number 1e400 as a bound",
    text: () => call('"id":1,"method":"delivery/list","params":{"limit":1e400}'),
    name: "invalid_params",
  },
  { title: "lone surrogates, escaped", text: () => command('["\\ud800","\\udfff\\ud800",{"\\udead":1}]'), ...taken },
  {
    title: "a lone surrogate as a session's id",
    text: () => call('"id":1,"method":"session/get","params":{"sessionId":"\\ud800"}'),
    name: "invalid_params",
  },
  { title: "a lone surrogate as a method", text: () => call('"id":1,"method":"\\ud800"'), name: "method_not_found" },
  {
    title: "lone surrogates, as bytes",
    text: () => around(command('"#"'), [0xed, 0xa0, 0x80]),
    ...unread,
    closed: 1007,
  },
  {
    title: "bytes that are not UTF-8",
    text: () => around(command('"#"'), [0xff, 0xfe, 0xc0, 0x80]),
    ...unread,
    closed: 1007,
  },
  { title: "half a character", text: () => around(`${command("1")}#`, [0xf0, 0x9f]), ...unread, closed: 1007 },
  { title: "a slash as two bytes", text: () => around(command('"#"'), [0xc0, 0xaf]), ...unread, closed: 1007 },
  {
    title: "duplicate keys",
    text: () => call('"id":1,"method":"nothing","method":"daemon/info","params":[],"params":{}'),
  },
  {
    title: "a second session's id",
    text: () => call('"id":1,"method":"session/get","params":{"sessionId":"a","sessionId":"-b"}'),
    name: "invalid_params",
  },
  { title: "a string of nearly 16 MiB", text: () => command(`"${"x".repeat(16 * mib - 300)}"`), ...taken },
  { title: "escapes of nearly 16 MiB", text: () => command(`"${"\\u0000".repeat((16 * mib - 300) / 6)}"`), ...taken },
  { title: "an id of 1 MiB", text: () => call(`"id":"${"i".repeat(mib)}","method":"daemon/info"`) },
  {
    title: "a session's id of nearly 16 MiB",
    text: () => call(`"id":1,"method":"session/get","params":{"sessionId":"${"a".repeat(16 * mib - 300)}"}`),
    name: "invalid_params",
  },
  {
    title: "a method of nearly 16 MiB",
    text: () => call(`"id":1,"method":"${"m".repeat(16 * mib - 300)}"`),
    name: "method_not_found",
  },
  { title: "a million keys", text: () => command(manyKeys(1_000_000)), ...refused },
  { title: "an array of a million", text: () => command(`[${"0,".repeat(999_999)}0]`), ...refused },
  { title: "5 million empty objects", text: () => command(`[${"{},".repeat(5_000_000)}0]`), ...refused },
  { title: "a million params by position", text: () => `[${"[0],".repeat(999_999)}0]`, ...refused },
  { title: "100,000 keys", text: () => command(manyKeys(100_000)), ...refused },
  {
    title: "100,000 keys as params",
    text: () => call(`"id":1,"method":"daemon/info","params":${manyKeys(100_000)}`),
    ...refused,
  },
  { title: "9,000 keys", text: () => command(manyKeys(9_000)), ...taken },
  {
    title: "9,000 keys as params",
    text: () => call(`"id":1,"method":"daemon/info","params":${manyKeys(9_000)}`),
    name: "invalid_params",
  },
  { title: "124,000 empty arrays", text: () => command(`[${"[],".repeat(124_000)}0]`), ...taken },
  {
    title: "200,000 params by position",
    text: () => call(`"id":1,"method":"daemon/info","params":[${"0,".repeat(199_999)}0]`),
    name: "invalid_params",
  },
  ...[0, 2, 20, 110].flatMap((depth): HostileText[] => [
    {
      title: `__proto__ ${depth} deep`,
      text: () => command(nested(depth, '{"__proto__":{"isAdmin":true}}')),
      ...refused,
    },
    {
      title: `__proto__, escaped, ${depth} deep`,
      text: () => command(nested(depth, '{"\\u005F_proto__":1}')),
      ...refused,
    },
    {
      title: `constructor.prototype ${depth} deep`,
      text: () => command(nested(depth, '{"constructor":{"prototype":{"isAdmin":true}}}')),
      ...refused,
    },
    {
      title: `constructor without a prototype ${depth} deep`,
      text: () => command(nested(depth, '{"constructor":"x"}')),
      ...taken,
    },
  ]),
  {
    title: "__proto__ in the request",
    text: () => call('"id":1,"method":"daemon/info","__proto__":{"params":{}}'),
    ...refused,
  },
  ...[
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "daemon.info",
    "daemon/info/../stop",
    "rpc.__proto__",
  ].map(
    (method): HostileText => ({
      title: `the method ${method}`,
      text: () => call(`"id":1,"method":"${method}"`),
      name: "method_not_found",
    }),
  ),
  { title: "a BOM, which is skipped", text: () => `\ufeff${command("1")}`, ...taken, aloneOnly: true },
  { title: "two BOMs", text: () => `\ufeff\ufeff${command("1")}`, ...unread },
  { title: "a BOM alone", text: () => "\ufeff", ...unread },
  { title: "NUL in a string", text: () => command('"\u0000"'), ...unread },
  { title: "NUL after the text", text: () => `${command("1")}\u0000`, ...unread },
  {
    title: "NUL, escaped, in a session's id",
    text: () => call('"id":1,"method":"session/get","params":{"sessionId":"a\\u0000"}'),
    name: "invalid_params",
  },
  { title: "nothing", text: () => "", ...unread },
  { title: "white space", text: () => " \t\r\n".repeat(1_000), ...unread },
  { title: "two texts", text: () => `${goodCall}\n${goodCall}`, ...unread },
  { title: "half a text", text: () => command("[1,2"), ...unread },
  ...["null", "true", "0", '""', "{}", "[1]", "[null]"].map(
    (text): HostileText => ({ title: text, text: () => text, name: "invalid_request" }),
  ),
];
