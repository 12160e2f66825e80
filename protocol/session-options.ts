import type { Static } from "typebox";
import { Type } from "./json-schema.ts";
import { OptimisationOptions } from "./optimisation/options.ts";
import { params, sessionName, toolPattern } from "./params.ts";
import { PruningOptions } from "./pruning/options.ts";
import { ThinkingLevel } from "./session.ts";

const path = Type.String({ pattern: "^/[^\\u0000]{0,4095}$" });
const paths = (description: string) => Type.Optional(Type.Array(path, { minItems: 1, maxItems: 64, description }));
const host = "(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9.-]{0,253}";
const parts = "[A-Za-z0-9_~][A-Za-z0-9._~-]{0,127}(?:/[A-Za-z0-9_~][A-Za-z0-9._~-]{0,127}){0,15}";
/** A path, a package of npm or git, or an extension of pi's own. No part of a package's name begins with a dash or a dot. */
export const extensionPattern = `^(?:${[
  "/[^\\u0000]{0,4095}",
  "npm:(?:@[A-Za-z0-9][A-Za-z0-9._~-]{0,127}/)?[A-Za-z0-9][A-Za-z0-9._~-]{0,213}(?:@[A-Za-z0-9.^~<>=*][A-Za-z0-9.^~<>=*+_-]{0,127})?",
  `(?:(?:git:)?(?:https?|ssh)://${host}(?::[0-9]{1,5})?/|git:(?:git://)?${host}[/:])${parts}(?:[@#]${parts})?`,
  "builtin:[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
].join("|")})$`;
const text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 262_144, pattern: "^[^\\u0000]*$", description }));
const off = (description: string) => Type.Optional(Type.Boolean({ description }));

/** pi's own options, of all supported versions, without their dashes. An extension's flag cannot have these names. */
export const piOptions: readonly string[] = (
  "a api-key append-system-prompt approve c continue e exclude-tools export extension fork h help list-models" +
  " mode model models n na name nbt nc ne no-approve no-builtin-tools no-context-files no-extensions no-mcp" +
  " no-prompt-templates no-session no-skills no-themes no-tools np ns nt offline p print prompt-template provider r" +
  " resume session session-dir session-id skill system-prompt t theme thinking tools tui-mode use-theme v verbose" +
  " version xt"
).split(" ");
export const flagNamePattern = `^(?!(?:${piOptions.join("|")})$)[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$`;

/** The environment of a client, for the session's children. */
export const Environment = Type.Record(Type.String(), Type.String({ pattern: "^[^\\u0000]*$" }), {
  maxProperties: 4096,
  propertyNames: { pattern: "^[^=\\u0000]+$" },
  description:
    "The whole environment of the session's pi and its tools, instead of the daemon's; at most 4,096 names and 1 MiB. Variables that pi never inherits are left out (`NODE_OPTIONS`, `INIT_CWD`, `npm_*`, `PI_RPCD_*`), and `PI_CODING_AGENT_SESSION_DIR` stays the daemon's. An environment that leads to another directory of pi's configuration than the daemon's is `forbidden`. The daemon keeps it in memory alone: after a restart of the daemon, the next pi has the daemon's environment until `session/open` gives one again.",
});

export const WhenLeft = Type.Enum(["keep", "close"], {
  default: "keep",
  description:
    "`close`: the session is closed when its last subscriber has left, if it has no message yet or is ephemeral: within a second if it unsubscribed, a minute after a lost connection. What happens to others, and to their runs, says `onDetach` of the daemon's configuration. Holds for sessions that take over its pi, and until the daemon ends.",
});

/** Labels by name, for lists of sessions. */
export const Labels = Type.Record(Type.String(), Type.String({ maxLength: 256 }), {
  maxProperties: 32,
  propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9._/-]{0,63}$" },
  description: "Names (letters, digits and . _ / -) with texts of at most 256 characters; at most 32.",
});
export type Labels = Static<typeof Labels>;

export const CustomUi = Type.Enum(["undefined", "throw"], {
  description:
    "The result of an extension's `ctx.ui.custom()`, which needs a terminal: `undefined` resolves with `undefined`, like every pi in RPC mode; `throw` rejects with a `CustomUiUnsupportedError`. Default: the daemon's configuration.",
});

/** Options of pi's command line for each start of a session's pi. */
const ofStart = {
  model: Type.Optional(
    Type.String({
      pattern: "^[^-\\s\\u0000-\\u001f][^\\s\\u0000-\\u001f]{0,255}$",
      description: "`provider/id`, or a pattern in the format of pi's `--model`. Default: pi's own choice.",
    }),
  ),
  provider: Type.Optional(
    Type.String({
      pattern: "^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$",
      description: "The model's provider, if `model` does not include it. Requires `model`.",
    }),
  ),
  models: Type.Optional(
    Type.Array(Type.String({ pattern: "^[^-,\\s\\u0000-\\u001f][^,\\s\\u0000-\\u001f]{0,255}$" }), {
      minItems: 1,
      maxItems: 64,
      description:
        "The models that `session/cycleModel` goes through, as patterns in the format of pi's `--models`. Without `model`, a new session begins with one of them. Default: those of pi's settings.",
    }),
  ),
  thinking: Type.Optional(ThinkingLevel),
  name: Type.Optional(sessionName),
  tools: Type.Optional(
    Type.Array(toolPattern(), { minItems: 1, maxItems: 256, description: "The tools the model may call." }),
  ),
  excludeTools: Type.Optional(
    Type.Array(toolPattern(), { minItems: 1, maxItems: 256, description: "Tools the model may not call." }),
  ),
  noTools: Type.Optional(
    Type.Enum(["all", "builtin"], { description: "Turns off all tools, or pi's own, except those in `tools`." }),
  ),
  extensions: Type.Optional(
    Type.Array(Type.String({ pattern: extensionPattern }), {
      minItems: 1,
      maxItems: 64,
      description:
        "Extensions to load in addition to those that pi finds: files or directories, and packages as pi has them (`npm:NAME`, `git:HOST/PATH`, an address with https, http or ssh), which pi downloads at its start if it does not have them. `builtin:NAME` is pi's own, and `unsupported_by_pi` before pi 0.99.",
    }),
  ),
  skills: paths("Files or directories of further skills."),
  promptTemplates: paths("Files or directories of further prompt templates."),
  noExtensions: off("Loads only the extensions in `extensions`."),
  noMcp: off("Turns off pi's own support of MCP. It is `unsupported_by_pi` before pi 1.0.4."),
  flags: Type.Optional(
    Type.Record(
      Type.String(),
      Type.Union([Type.Literal(true), Type.String({ maxLength: 4096, pattern: "^[^\\u0000]*$" })]),
      {
        maxProperties: 64,
        propertyNames: { pattern: flagNamePattern },
        description:
          "Flags of extensions, by their names without dashes, with a text or true; at most 64. Names of pi's own options are refused, and pi refuses those that no extension has. They are stored, and others on the machine can see them in the list of processes: a secret belongs in `env`.",
      },
    ),
  ),
  noSkills: off("Loads only the skills in `skills`."),
  noPromptTemplates: off("Loads only the prompt templates in `promptTemplates`."),
  noContextFiles: off("Ignores AGENTS.md and similar context files."),
  systemPrompt: text("Replaces pi's system prompt."),
  appendSystemPrompt: text("Appended to the system prompt, instead of pi's APPEND_SYSTEM.md."),
  approve: Type.Optional(
    Type.Boolean({
      description:
        "Whether pi loads the project's own settings and extensions. Default: only if the user's settings say so.",
    }),
  ),
};

/** Options of pi's command line, and options that the daemon stores with a session. */
export const sessionOptions = {
  ...ofStart,
  sessionDir: Type.Optional({
    ...path,
    description: "Directory of the session's file. A missing one is created, with mode 0700. Default: pi's own.",
  }),
  ephemeral: Type.Optional(
    Type.Boolean({ default: false, description: "Keeps the conversation only in pi's memory: it ends with its pi." }),
  ),
  env: Type.Optional(
    Type.Record(Type.String(), Type.String({ maxLength: 32_768, pattern: "^[^\\u0000]*$" }), {
      maxProperties: 64,
      propertyNames: { pattern: "^[A-Za-z_][A-Za-z0-9_]{0,127}$" },
      description:
        "Additional environment variables of pi and its tools; the daemon's configuration lists the allowed names.",
    }),
  ),
  labels: Type.Optional(Labels),
  customUi: Type.Optional(CustomUi),
  optimisation: Type.Optional({
    ...OptimisationOptions,
    description: "Options to use fewer tokens and to track costs. Parts that are not named are off.",
  }),
  pruning: Type.Optional({
    ...PruningOptions,
    description: "How the model and strategies keep the session's context small. Off unless `enabled` is true.",
  }),
};

/** Options of pi's command line that another start of the same session's pi can have. */
export const StartOptions = Type.Object(ofStart, { additionalProperties: false });
export type StartOptions = Static<typeof StartOptions>;

/** The {@link StartOptions} among a session's options. */
export function startOptionsOf(options: Profile): StartOptions {
  return Object.fromEntries(Object.entries(options).filter(([name]) => Object.hasOwn(StartOptions.properties, name)));
}

/** A named set of options in the daemon's configuration. */
export const Profile = params(sessionOptions);
export type Profile = Static<typeof Profile>;
