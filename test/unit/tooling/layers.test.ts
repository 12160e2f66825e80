import { expect, test } from "vitest";
import { importsOf } from "../../../scripts/lib/imports.ts";
import { checkLayers } from "../../../scripts/lib/layers.ts";

/** The findings for a set of files, as `file:line message`. */
function check(files: Readonly<Record<string, string>>): string[] {
  return checkLayers(new Map(Object.entries(files))).map(({ file, line, message }) => `${file}:${line} ${message}`);
}

function importing(specifier: string): string {
  return `import { thing } from "${specifier}";\n`;
}

test.each([
  ["server/edge/ws.ts", "../rpc/dispatcher.ts"],
  ["server/rpc/handlers/session.ts", "../../session/session.ts"],
  ["server/session/session.ts", "../pi/child.ts"],
  ["server/delivery/tracker.ts", "../store/deliveries.ts"],
  ["server/store/database.ts", "../lib/async.ts"],
  ["server/daemon.ts", "./edge/app.ts"],
  ["server/session/registry.ts", "../configuration/limits.ts"],
  ["server/edge/ws.ts", "ws"],
  ["client/socket.ts", "ws"],
  ["extension/index.ts", "../protocol/link.ts"],
  ["extension/index.ts", "./open.ts"],
  ["context/pruning/pruning.ts", "../../extension/engine-port.ts"],
  ["server/context/perform.ts", "../../context/document/prepare.ts"],
  ["cli/start.ts", "../server/daemon.ts"],
  ["cli/demo.ts", "../provider/provider.ts"],
  ["test/unit/x.test.ts", "../../server/pi/jsonl.ts"],
  ["examples/follow.ts", "../client/index.ts"],
])("%s may import %s", (file, specifier) => {
  expect(check({ [file]: importing(specifier) })).toEqual([]);
});

test.each([
  ["server/edge/ws.ts", "../session/session.ts", "server/edge may not import server/session"],
  ["server/rpc/dispatcher.ts", "../edge/ws.ts", "server/rpc may not import server/edge"],
  ["server/session/session.ts", "../rpc/dispatcher.ts", "server/session may not import server/rpc"],
  ["server/delivery/tracker.ts", "../dialogs/dialogs.ts", "server/delivery may not import server/dialogs"],
  ["server/pi/child.ts", "../store/database.ts", "server/pi may not import server/store"],
  ["server/lib/async.ts", "../../protocol/ids.ts", "server/lib may not import protocol"],
  ["server/session/session.ts", "../daemon.ts", "server/session may not import server "],
  ["protocol/ids.ts", "../client/index.ts", "protocol may not import client"],
  ["client/client.ts", "../server/daemon.ts", "client may not import server"],
  ["extension/index.ts", "../server/lib/async.ts", "extension may not import server/lib"],
  ["extension/engine.ts", "../context/parts/optimisation/optimisation.ts", "extension may not import context "],
  ["extension/open.ts", "../context/parts/optimisation/optimisation.ts", "extension/open may not import context "],
  ["server/session/session.ts", "../../context/document/document.ts", "server/session may not import context/document"],
  [
    "server/rpc/handlers/context.ts",
    "../../../context/document/document.ts",
    "server/rpc may not import context/document",
  ],
  ["client/client.ts", "../context/document/document.ts", "client may not import context/document"],
  ["cli/list.ts", "../context/document/document.ts", "cli may not import context/document"],
  ["provider/provider.ts", "../protocol/ids.ts", "provider may not import protocol"],
  ["cli/list.ts", "../server/daemon.ts", "cli may not import server"],
  ["cli/start.ts", "../server/pi/child.ts", "cli/start may not import server/pi"],
  ["server/daemon.ts", "../cli/main.ts", "server may not import cli"],
  ["server/rpc/dispatcher.ts", "fastify", "server/rpc may not import the package fastify"],
  ["server/edge/app.ts", "@fastify/cors", undefined],
  ["server/session/session.ts", "@fastify/cors/types", "server/session may not import the package @fastify/cors/types"],
  ["extension/index.ts", "ws", "extension may not import the package ws"],
  ["server/session/session.ts", "json-rpc-2.0", "server/session may not import the package json-rpc-2.0"],
])("%s importing %s: %s", (file, specifier, message) => {
  const findings = check({ [file]: `// first line\n${importing(specifier)}` });
  if (message === undefined) expect(findings).toEqual([]);
  else expect(findings).toEqual([expect.stringContaining(`${file}:2 ${message}`)]);
});

test("the helper loads its optional parts in one file, by a dynamic import", () => {
  const loading = 'const loaded = () => import("../context/parts/optimisation/optimisation.ts");\n';
  expect(check({ "extension/open.ts": loading })).toEqual([]);
  expect(check({ "extension/engine.ts": loading })).toHaveLength(1);
  expect(
    check({ "extension/memory.ts": 'import type { Kept } from "../context/parts/optimisation/optimisation.ts";\n' }),
  ).toHaveLength(1);
});

test("a file in a folder without a layer is named", () => {
  expect(check({ "server/misc/x.ts": "" })).toEqual([
    "server/misc/x.ts:1 belongs to no layer; name its folder in scripts/lib/layers.ts",
  ]);
});

test("files that a browser must not load are found through other files, with the chain of imports", () => {
  const findings = check({
    "client/browser.ts": 'import { a } from "./client.ts";\n',
    "client/client.ts": 'import type { T } from "./node.ts";\nimport { b } from "./socket.ts";\n',
    "client/socket.ts": 'import { readFileSync } from "node:fs";\n',
    "client/node.ts": 'import { WebSocket } from "ws";\n',
  });
  expect(findings).toEqual([
    "client/socket.ts:1 client/browser.ts must not load node:fs: it runs in browsers " +
      "(client/browser.ts → client/client.ts → client/socket.ts → node:fs)",
  ]);
});

test("the daemon is loaded lazily by the command line", () => {
  const start = { "cli/start.ts": 'import { startDaemon } from "../server/daemon.ts";\n' };
  expect(check({ "cli/main.ts": 'import { start } from "./start.ts";\n', ...start })).toHaveLength(1);
  expect(check({ "cli/main.ts": 'const { start } = await import("./start.ts");\n', ...start })).toEqual([]);
});

test("every form of import is read, and comments are ignored", () => {
  const source = [
    'import "./a.ts";',
    'import type { B } from "./b.ts";',
    "import {",
    "  c,",
    '} from "./c.ts";',
    'export * from "./d.ts";',
    'export type { E } from "./e.ts";',
    'import type from "./f.ts";',
    'const g = await import("./g.ts");',
    '// import("./h.ts")',
    ' * import { i } from "./i.ts";',
    'export const text = "./j.ts";',
  ].join("\n");
  expect(importsOf(source).map(({ specifier, line, kind }) => `${line} ${kind} ${specifier}`)).toEqual([
    "1 static ./a.ts",
    "2 type ./b.ts",
    "5 static ./c.ts",
    "6 static ./d.ts",
    "7 type ./e.ts",
    "8 static ./f.ts",
    "9 dynamic ./g.ts",
  ]);
});

test.each(["client/browser.ts", "client/index.ts"])(
  "%s must not load the code of contexts, however indirectly",
  (entry) => {
    const findings = check({
      [entry]: 'import { a } from "./a.ts";\n',
      "client/a.ts":
        'import type { T } from "../context/document/document.ts";\nexport { read } from "../context/document/read.ts";\n',
    });
    expect(findings).toContain(
      `client/a.ts:2 ${entry} must not load context/document/read.ts: clients do not need it ` +
        `(${entry} → client/a.ts → context/document/read.ts)`,
    );
  },
);
