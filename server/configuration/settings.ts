import { availableParallelism } from "node:os";
import type { Static, TSchema } from "typebox";
import { defaultContextLimits, hardContextLimits } from "../../protocol/context-limits.ts";
import { Type } from "../../protocol/json-schema.ts";
import { OptimisationOptions } from "../../protocol/optimisation/options.ts";
import { PruningOptions } from "../../protocol/pruning/options.ts";
import { CustomUi, Profile } from "../../protocol/session-options.ts";
import { limits } from "./limits.ts";

interface SettingRow<S extends TSchema = TSchema> {
  /** The value's schema in the configuration file. Its description is the setting's description. */
  readonly schema: S;
  /** Undefined: no default; `defaultInWords` describes the behaviour. */
  readonly default: Static<S> | undefined;
  readonly defaultInWords?: string;
  /** The environment variable for it. */
  readonly env?: string;
  /** The option of `pi-rpcd start` for it. */
  readonly flag?: string;
}

function row<S extends TSchema>(
  schema: S,
  value: Static<S> | undefined,
  more: Omit<SettingRow, "schema" | "default"> = {},
): SettingRow<S> {
  return { schema, default: value, ...more };
}

/** A limit that a configuration can only lower. */
function contextLimit(name: keyof typeof hardContextLimits, description: string) {
  const schema = Type.Integer({ minimum: 1, maximum: hardContextLimits[name], description });
  return row(schema, defaultContextLimits[name] as number);
}

/**
 * Every setting, declared once. A name with a dot belongs to a part: `context.maxNodes` is `maxNodes` in the object
 * `context`. The file, the variables, the options, the schema and the help are derived from it.
 */
export const settings = {
  port: row(Type.Integer({ minimum: 0, maximum: 65_535, description: "TCP port on loopback. 0: any free port." }), 0, {
    env: "PI_RPCD_PORT",
    flag: "port",
  }),
  pi: row(Type.String({ minLength: 1, description: "Which pi: its cli.js or executable." }), undefined, {
    defaultInWords: "pi on PATH, otherwise the bundled one",
    env: "PI_RPCD_PI",
    flag: "pi",
  }),
  agentDirectory: row(
    Type.String({
      pattern: "^/[^\\u0000]{0,4095}$",
      description:
        "pi's configuration directory for this daemon's sessions alone, as `PI_CODING_AGENT_DIR`. The daemon writes to its `settings.json` if `optimisation.compaction.route` is `settings`.",
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
      description: "An additional address to listen on, with TLS: `192.168.1.5:8443`, `[::]:8443`.",
    }),
    undefined,
    { defaultInWords: "none", env: "PI_RPCD_LISTEN", flag: "listen" },
  ),
  tlsCert: row(
    Type.String({ minLength: 1, description: "The TLS certificate with its chain: a PEM file." }),
    undefined,
    {
      defaultInWords: "none; required by `listen`",
      env: "PI_RPCD_TLS_CERT",
      flag: "tls-cert",
    },
  ),
  tlsKey: row(Type.String({ minLength: 1, description: "The certificate's private key: a PEM file." }), undefined, {
    defaultInWords: "none; required by `listen`",
    env: "PI_RPCD_TLS_KEY",
    flag: "tls-key",
  }),
  allowedHosts: row(
    Type.Array(Type.String({ pattern: "^[^/?#@\\s,]{1,255}$" }), {
      maxItems: 64,
      description: "Additional accepted values of the `Host` header: with the port, compared exactly.",
    }),
    [],
    { env: "PI_RPCD_ALLOWED_HOSTS", flag: "allow-hosts" },
  ),
  logLevel: row(
    Type.Enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"], {
      description: "The lowest level that is logged.",
    }),
    "info",
    { env: "PI_RPCD_LOG_LEVEL", flag: "log-level" },
  ),
  logFile: row(Type.String({ minLength: 1, description: "The log file." }), undefined, {
    defaultInWords: "daemon.log in the state directory; stderr in the foreground",
    env: "PI_RPCD_LOG_FILE",
    flag: "log-file",
  }),
  idleAfterMs: row(
    Type.Integer({
      minimum: 0,
      maximum: 2_592_000_000,
      description:
        "How long a session's pi may be idle before it is stopped. It is started again when needed. 0: never stopped.",
    }),
    limits.idleAfterMs,
    { env: "PI_RPCD_IDLE_AFTER_MS" },
  ),
  dialogDelayMs: row(
    Type.Integer({
      minimum: 0,
      maximum: 86_400_000,
      description:
        "How long only the client whose prompt caused an extension's question may answer it, if it can. 0: all clients may answer immediately.",
    }),
    limits.dialogs.dialogDelayMs,
    { env: "PI_RPCD_DIALOG_DELAY_MS" },
  ),
  drainMs: row(
    Type.Integer({
      minimum: 0,
      maximum: 600_000,
      description: "How long runs may continue during a shutdown.",
    }),
    limits.drainMs,
    { env: "PI_RPCD_DRAIN_MS" },
  ),
  liveRestore: row(
    Type.Boolean({
      description:
        "Whether pi processes, with their runs, survive a crash and `pi-rpcd start --restart`; the next daemon continues them.",
    }),
    true,
    { env: "PI_RPCD_LIVE_RESTORE" },
  ),
  onDetach: row(
    Type.Enum(["keep", "abort", "close"], {
      description:
        "What happens to a session that a front end of pi began with `pi-rpcd-pi`, when the last connection that follows it has left. `keep`: its run goes on, and costs. `abort`: its run is aborted. `close`: its run is aborted and the session closed; its file stays.",
    }),
    "keep",
    { env: "PI_RPCD_ON_DETACH" },
  ),
  "web.letterKeys": row(
    Type.Boolean({
      description:
        "Whether single letters are commands in the web console. Each time it is opened, its pages have a new origin, for which a browser keeps no settings.",
    }),
    true,
  ),
  orphanIdleMs: row(
    Type.Integer({
      minimum: 1_000,
      maximum: 86_400_000,
      description: "How long an idle pi waits for the next daemon before it ends. With `liveRestore`.",
    }),
    limits.orphanIdleMs,
    { env: "PI_RPCD_ORPHAN_IDLE_MS" },
  ),
  orphanRunMs: row(
    Type.Integer({
      minimum: 1_000,
      maximum: 604_800_000,
      description: "How long a pi at work waits for the next daemon before it ends. With `liveRestore`.",
    }),
    limits.orphanRunMs,
    { env: "PI_RPCD_ORPHAN_RUN_MS" },
  ),
  maxChildren: row(
    Type.Integer({
      minimum: 1,
      maximum: 10_000,
      description: "Maximum number of pi processes; idle ones are stopped to make room.",
    }),
    limits.occupancy.maxChildren,
    { env: "PI_RPCD_MAX_CHILDREN" },
  ),
  maxChildrenMiB: row(
    Type.Integer({
      minimum: 1,
      maximum: 16_777_216,
      description: "Maximum memory of all pi processes; beyond it idle ones are stopped.",
    }),
    undefined,
    { defaultInWords: `${limits.occupancy.maxMemoryPercent} % of the machine's`, env: "PI_RPCD_MAX_CHILDREN_MIB" },
  ),
  maxParallelStarts: row(
    Type.Integer({
      minimum: 1,
      maximum: 1_024,
      description: "How many pi processes start at a time; further starts wait.",
    }),
    availableParallelism(),
    { defaultInWords: "one for each core", env: "PI_RPCD_MAX_PARALLEL_STARTS" },
  ),
  warmChildren: row(
    Type.Integer({
      minimum: 0,
      maximum: 9,
      description:
        "How many warm pi processes are kept for each combination of directory and options in use. Each takes 60 to 80 MiB, like an idle pi.",
    }),
    limits.warm.perKind,
    { env: "PI_RPCD_WARM_CHILDREN" },
  ),
  roots: row(
    Type.Array(Type.String({ pattern: "^/[^\\u0000]{0,4095}$" }), {
      maxItems: 64,
      description:
        "Working directories and files that clients name must be inside one of these directories, with links resolved. Empty: anywhere.",
    }),
    [],
    { env: "PI_RPCD_ROOTS" },
  ),
  "context.readRoots": row(
    Type.Array(Type.String({ pattern: "^/[^\\u0000]{0,4095}$" }), {
      maxItems: 64,
      description:
        "Documents and session files that clients name for contexts must be inside one of these directories, with links resolved. A client with `admin` on the Unix socket may name any file.",
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
    "Maximum bytes of a context document, or of a session file from which one is created.",
  ),
  "context.maxNodes": contextLimit("maxNodes", "Maximum nodes of a document."),
  "context.maxItems": contextLimit("maxItems", "Maximum nodes after selection."),
  "context.maxBlockBytes": contextLimit("maxBlockBytes", "Maximum bytes of one text in a document."),
  sessionEnv: row(
    Type.Array(Type.String({ pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}[*]?$" }), {
      description: "Environment variables that a client may set for its session's pi. A final `*` matches any suffix.",
    }),
    [],
  ),
  profiles: row(
    Type.Record(Type.String(), Profile, {
      propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$" },
      description: "Named sets of session options.",
    }),
    {},
  ),
  customUi: row(
    {
      ...CustomUi,
      description:
        "The result of an extension's `ctx.ui.custom()`, unless a session sets it: `undefined` resolves with `undefined`, `throw` rejects with a `CustomUiUnsupportedError`.",
    },
    "undefined",
    { env: "PI_RPCD_CUSTOM_UI" },
  ),
  optimisation: row(
    {
      ...OptimisationOptions,
      description: "Options that save tokens, for all sessions. Projects, profiles and calls override them.",
    },
    {},
  ),
  pruning: row(
    {
      ...PruningOptions,
      description: "Pruning options for all sessions. Projects, profiles and calls override them.",
    },
    {},
  ),
} as const satisfies Readonly<Record<string, SettingRow>>;

export type SettingName = keyof typeof settings;

/** The value of each setting. Settings without a default can be undefined. */
export type Values = {
  readonly [K in SettingName]:
    | Static<(typeof settings)[K]["schema"]>
    | (K extends "pi" | "agentDirectory" | "logFile" | "maxChildrenMiB" | "listen" | "tlsCert" | "tlsKey"
        ? undefined
        : never);
};

/** Descriptions of the objects that contain settings. */
const groups: Readonly<Record<string, string>> = { context: "Imported conversations." };

/** The configuration file's schema: every part is optional. */
export const ConfigurationFile = Type.Object(
  {
    $schema: Type.Optional(Type.String({ description: "For editors." })),
    ...parts(Object.entries<SettingRow>(settings).map(([name, { schema }]) => [name, Type.Optional(schema)])),
  },
  { additionalProperties: false },
);

/** Puts settings with a dot in their names into the object that the part before the dot names. */
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

/** The same as a JSON document, for editors. */
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
