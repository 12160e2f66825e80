import { availableParallelism } from "node:os";
import type { Static, TSchema } from "typebox";
import { defaultContextLimits, hardContextLimits } from "../../protocol/context-limits.ts";
import { Type } from "../../protocol/json-schema.ts";
import { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { PruningOptions } from "../../protocol/pruning/options.ts";
import { CustomUi, Profile } from "../../protocol/session-options.ts";
import { limits } from "./limits.ts";

interface SettingRow<S extends TSchema = TSchema> {
  /** What its value is in the configuration file. Its description is the setting's. */
  readonly schema: S;
  /** Undefined: there is none, and `defaultInWords` says what happens then. */
  readonly default: Static<S> | undefined;
  readonly defaultInWords?: string;
  /** The environment variable that has it too. */
  readonly env?: string;
  /** The option of `pi-rpcd start` that has it too. */
  readonly flag?: string;
}

function row<S extends TSchema>(
  schema: S,
  value: Static<S> | undefined,
  more: Omit<SettingRow, "schema" | "default"> = {},
): SettingRow<S> {
  return { schema, default: value, ...more };
}

/** A limit that no configuration may exceed. */
function contextLimit(name: keyof typeof hardContextLimits, description: string) {
  const schema = Type.Integer({ minimum: 1, maximum: hardContextLimits[name], description });
  return row(schema, defaultContextLimits[name] as number);
}

/** Everything that can be configured, once. A name with a dot is that of a part: `context.maxNodes` is `maxNodes` in the object `context`. The file, the variables, the options, the schema and the help derive from it. */
export const settings = {
  port: row(
    Type.Integer({ minimum: 0, maximum: 65_535, description: "TCP port on loopback. 0: one that is free." }),
    0,
    { env: "PI_RPCD_PORT", flag: "port" },
  ),
  pi: row(Type.String({ minLength: 1, description: "Which pi: its cli.js or executable." }), undefined, {
    defaultInWords: "pi on PATH, else the bundled one",
    env: "PI_RPCD_PI",
    flag: "pi",
  }),
  agentDirectory: row(
    Type.String({
      pattern: "^/[^\\u0000]{0,4095}$",
      description:
        "pi's configuration directory for this daemon's sessions alone, as `PI_CODING_AGENT_DIR`. The daemon writes into its `settings.json` where `optimisation.compaction.route` is `settings`.",
    }),
    undefined,
    { defaultInWords: "pi's own, which the daemon never writes", env: "PI_RPCD_AGENT_DIR" },
  ),
  allowedOrigins: row(
    Type.Array(Type.String({ pattern: "^https?://[^/?#\\s]{1,255}$" }), {
      maxItems: 64,
      description: "Origins of web pages that may connect: scheme, host and port, compared exactly.",
    }),
    [],
    { env: "PI_RPCD_ALLOWED_ORIGINS", flag: "allow-origins" },
  ),
  listen: row(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "An address beyond loopback to listen at too, with TLS: `192.168.1.5:8443`, `[::]:8443`.",
    }),
    undefined,
    { defaultInWords: "none", env: "PI_RPCD_LISTEN", flag: "listen" },
  ),
  tlsCert: row(
    Type.String({ minLength: 1, description: "Its certificate, with the chain: a file in PEM." }),
    undefined,
    {
      defaultInWords: "none; `listen` needs one",
      env: "PI_RPCD_TLS_CERT",
      flag: "tls-cert",
    },
  ),
  tlsKey: row(Type.String({ minLength: 1, description: "The certificate's key: a file in PEM." }), undefined, {
    defaultInWords: "none; `listen` needs one",
    env: "PI_RPCD_TLS_KEY",
    flag: "tls-key",
  }),
  allowedHosts: row(
    Type.Array(Type.String({ pattern: "^[^/?#@\\s,]{1,255}$" }), {
      maxItems: 64,
      description:
        "Further names by which the daemon may be called, as `Host` has them: with the port, compared exactly.",
    }),
    [],
    { env: "PI_RPCD_ALLOWED_HOSTS", flag: "allow-hosts" },
  ),
  logLevel: row(
    Type.Enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"], { description: "What is logged." }),
    "info",
    { env: "PI_RPCD_LOG_LEVEL", flag: "log-level" },
  ),
  logFile: row(Type.String({ minLength: 1, description: "Where the log goes." }), undefined, {
    defaultInWords: "daemon.log in the state directory; in the foreground stderr",
    env: "PI_RPCD_LOG_FILE",
    flag: "log-file",
  }),
  idleAfterMs: row(
    Type.Integer({
      minimum: 0,
      maximum: 2_592_000_000,
      description: "An idle session's pi is ended after so long, and started again when it is needed. 0: never.",
    }),
    limits.idleAfterMs,
    { env: "PI_RPCD_IDLE_AFTER_MS" },
  ),
  dialogDelayMs: row(
    Type.Integer({
      minimum: 0,
      maximum: 86_400_000,
      description:
        "How long only the client whose prompt led to a question of an extension may answer it, where it can. 0: all may at once.",
    }),
    limits.dialogs.dialogDelayMs,
    { env: "PI_RPCD_DIALOG_DELAY_MS" },
  ),
  drainMs: row(
    Type.Integer({
      minimum: 0,
      maximum: 600_000,
      description: "How long runs may go on when the daemon is told to end.",
    }),
    limits.drainMs,
    { env: "PI_RPCD_DRAIN_MS" },
  ),
  maxChildren: row(
    Type.Integer({ minimum: 1, maximum: 10_000, description: "pi processes at a time; idle ones end for others." }),
    limits.occupancy.maxChildren,
    { env: "PI_RPCD_MAX_CHILDREN" },
  ),
  maxChildrenMiB: row(
    Type.Integer({ minimum: 1, maximum: 16_777_216, description: "Their memory; idle ones end over it." }),
    undefined,
    { defaultInWords: `${limits.occupancy.maxMemoryPercent} % of the machine's`, env: "PI_RPCD_MAX_CHILDREN_MIB" },
  ),
  maxParallelStarts: row(
    Type.Integer({ minimum: 1, maximum: 1_024, description: "How many pi start at a time; further ones wait." }),
    availableParallelism(),
    { defaultInWords: "one for each core", env: "PI_RPCD_MAX_PARALLEL_STARTS" },
  ),
  warmChildren: row(
    Type.Integer({
      minimum: 0,
      maximum: 9,
      description: "How many pi of each kind in use are kept ready. Each costs what an idle pi costs: 60 to 80 MiB.",
    }),
    limits.warm.perKind,
    { env: "PI_RPCD_WARM_CHILDREN" },
  ),
  roots: row(
    Type.Array(Type.String({ pattern: "^/[^\\u0000]{0,4095}$" }), {
      maxItems: 64,
      description:
        "Directories below which the working directories and files must lie that clients name, links resolved. Empty: anywhere.",
    }),
    [],
    { env: "PI_RPCD_ROOTS" },
  ),
  "context.readRoots": row(
    Type.Array(Type.String({ pattern: "^/[^\\u0000]{0,4095}$" }), {
      maxItems: 64,
      description:
        "Directories below which the documents and session files must lie that clients name for contexts, links resolved. Who has `admin` over the Unix socket may name any.",
    }),
    [],
  ),
  "context.ackTimeoutMs": row(
    Type.Integer({
      minimum: 100,
      maximum: 600_000,
      description: "How long the helper in an ephemeral session's pi may take to confirm its context.",
    }),
    limits.context.ackTimeoutMs,
  ),
  "context.maxDocumentBytes": contextLimit(
    "maxDocumentBytes",
    "The bytes of a document of a context, or of a session file that one is made of.",
  ),
  "context.maxNodes": contextLimit("maxNodes", "The nodes of a document."),
  "context.maxItems": contextLimit("maxItems", "What is left of them after selection."),
  "context.maxBlockBytes": contextLimit("maxBlockBytes", "The bytes of one text of it."),
  sessionEnv: row(
    Type.Array(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}[*]?$" }), {
      description: "Variables that a client may set for its session's pi; `*` at the end stands for any rest.",
    }),
    [],
  ),
  profiles: row(
    Type.Record(Type.String(), Profile, {
      propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
      description: "Sets of options for sessions, by name.",
    }),
    {},
  ),
  customUi: row(
    {
      ...CustomUi,
      description:
        "What becomes of an extension's `ctx.ui.custom()`, where a session says nothing of it: `undefined`: it resolves with `undefined`. `throw`: it rejects with a `CustomUiUnsupportedError`.",
    },
    "undefined",
    { env: "PI_RPCD_CUSTOM_UI" },
  ),
  optimisation: row(
    {
      ...OptimisationOptions,
      description: "How sessions spend fewer tokens, below what projects, profiles and calls say.",
    },
    {},
  ),
  pruning: row(
    {
      ...PruningOptions,
      description: "How sessions keep their context small, below what projects, profiles and calls say.",
    },
    {},
  ),
} as const satisfies Readonly<Record<string, SettingRow>>;

export type SettingName = keyof typeof settings;

/** What each setting is. Those without a default can be undefined. */
export type Values = {
  readonly [K in SettingName]:
    | Static<(typeof settings)[K]["schema"]>
    | (K extends "pi" | "agentDirectory" | "logFile" | "maxChildrenMiB" | "listen" | "tlsCert" | "tlsKey"
        ? undefined
        : never);
};

/** What the objects are that have parts. */
const groups: Readonly<Record<string, string>> = { context: "Conversations that come from elsewhere." };

/** The configuration file's schema: every part is optional. */
export const ConfigurationFile = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: "For editors." })),
    ...parts(Object.entries<SettingRow>(settings).map(([name, { schema }]) => [name, Type.Optional(schema)])),
  },
  { additionalProperties: false },
);

/** Puts what has a dot in its name into the object that is named before it. */
function parts(rows: readonly (readonly [string, TSchema])[]): Record<string, TSchema> {
  const found: Record<string, TSchema> = {};
  const nested = new Map<string, Record<string, TSchema>>();
  for (const [name, schema] of rows) {
    const at = name.indexOf(".");
    if (at === -1) found[name] = schema;
    else {
      const group = nested.get(name.slice(0, at)) ?? {};
      nested.set(name.slice(0, at), { ...group, [name.slice(at + 1)]: schema });
    }
  }
  for (const [name, properties] of nested) {
    const description = groups[name] ?? "";
    found[name] = Type.Optional(Type.Object(properties, { additionalProperties: false, description }));
  }
  return found;
}

/** The same as a document, for editors. */
export function configurationSchema(): object {
  const { $schema } = ConfigurationFile.properties as Readonly<Record<string, TSchema>>;
  const rows = Object.entries<SettingRow>(settings).map(([name, { schema }]) => withDefault([name, schema]));
  const properties = parts(rows.map(([name, schema]) => [name, Type.Optional(schema as TSchema)]));
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    title: "The configuration of pi-rpcd: config.json",
    type: "object",
    properties: { $schema, ...properties },
    additionalProperties: false,
    allowTrailingCommas: true,
  };
}

function withDefault([name, schema]: [string, object]): [string, object] {
  const { default: value, defaultInWords }: SettingRow = settings[name as SettingName];
  return [name, { ...schema, ...(value !== undefined && defaultInWords === undefined && { default: value }) }];
}
