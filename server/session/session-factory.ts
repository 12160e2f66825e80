import { lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import { createWithContext, type WithContext } from "../context/context-creation.ts";
import type { Contexts } from "../context/contexts.ts";
import { createOptions, pathInvalid } from "../context/create-options.ts";
import type { SessionConfiguration } from "../context/part-layers.ts";
import { tellProjectProblem } from "../context/part-layers.ts";
import type { ContextCaller } from "../context/read-path.ts";
import { liesUnder } from "../core/roots.ts";
import type { SessionScope } from "../core/session-scope.ts";
import { admittedDirectory } from "../core/working-directory.ts";
import { type CreatedFiles, createFile, fileExists, sumOf } from "../custody/created-files.ts";
import { makeDirectory, removeDirectory } from "../lib/make-directory.ts";
import { withoutLinks } from "../lib/real-path.ts";
import type { ChildEnvironments } from "../pi/child-environment.ts";
import { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import { diskFull, exhaustion } from "../pi/exhaustion.ts";
import { unusable } from "../pi/open-file.ts";
import { sessionFilePath } from "../pi/session-file.ts";
import { requireOwnFile } from "../pi/session-paths.ts";
import type { StoredSession } from "../store/stored-session.ts";
import type { LeftSessions } from "./left-sessions.ts";
import type { Session } from "./session.ts";
import type { SessionDirectory } from "./session-directory.ts";
import type { Beginning, SessionLifecycle } from "./session-lifecycle.ts";

/** The params of a call that are kept in memory alone. */
export interface GivenSecrets {
  readonly environment?: Params<"session/create">["environment"] | undefined;
  readonly mcpServers?: Params<"session/create">["mcpServers"] | undefined;
}

/** One call of `session/create`. */
export interface Creation {
  readonly params: Params<"session/create">;
  readonly sessionId: string;
  /** Throws where no session may be created. */
  readonly admit: (scope: SessionScope) => void;
  readonly caller: ContextCaller;
}

export interface SessionFactoryOptions {
  readonly configuration: SessionConfiguration;
  readonly env: NodeJS.ProcessEnv;
  readonly runDirectory: string;
  readonly created: CreatedFiles;
  readonly directory: Pick<SessionDirectory, "withCreating">;
  readonly environments: Pick<ChildEnvironments, "ofClient">;
  readonly contexts: Contexts;
  readonly left: Pick<LeftSessions, "watch">;
  readonly lifecycle: Pick<SessionLifecycle, "begin">;
}

/** Creates sessions for clients. */
export class SessionFactory {
  readonly #options: SessionFactoryOptions;

  constructor(options: SessionFactoryOptions) {
    this.#options = options;
  }

  /** The secrets that a call gives, for children. Throws `invalid_params` and `forbidden`. */
  secretsOf({ environment, mcpServers }: GivenSecrets): Pick<Beginning, "environment" | "mcpServers"> {
    return {
      environment: environment && this.#options.environments.ofClient(environment),
      mcpServers: mcpServers && new ChildMcpServers(mcpServers),
    };
  }

  /** Leaves nothing if it throws. A full disk is `store_failed`. */
  async create(creation: Creation): Promise<Session> {
    return await this.#create(creation).catch((error: unknown) => {
      throw diskFull(error) ?? error;
    });
  }

  async #create({ params, sessionId, admit, caller }: Creation): Promise<Session> {
    const { configuration, contexts, env, runDirectory } = this.#options;
    const secrets = this.secretsOf(params);
    const cwd = await admittedDirectory(params.cwd, admit);
    const now = new Date();
    const wanted = await createOptions(params, configuration);
    const { options, ephemeral, profile, labels, projectProblem, ownOptimisation, ownPruning } = wanted;
    const { dialogPolicy, onForeignWrite, idleAfterMs, delegatedBy } = params;
    const { name, sessionDir: directory } = options;
    const stored = (file: string, given: WithContext | undefined): StoredSession => ({
      sessionId,
      cwd,
      file,
      ...(name === undefined ? {} : { name }),
      generation: 0,
      reservedSeq: 0,
      options: given?.options ?? options,
      ...(ephemeral && { ephemeral }),
      ...(profile === undefined ? {} : { profile }),
      ...(labels === undefined ? {} : { labels }),
      ...(ownPruning === undefined ? {} : { ownPruning }),
      ...(delegatedBy === undefined ? {} : { delegatedBy }),
      ...(given === undefined ? {} : { context: given.context }),
      ...(dialogPolicy === undefined ? {} : { dialogPolicy }),
      ...(onForeignWrite === undefined ? {} : { onForeignWrite }),
      ...(idleAfterMs === undefined ? {} : { idleAfterMs }),
      createdAt: now.getTime(),
      updatedAt: now.getTime(),
    });
    const { lifecycle, created } = this.#options;
    const chosen = params.file === undefined ? undefined : await this.#newFile(params.file, sessionId, ephemeral);
    const source = params.forkFrom === undefined ? undefined : await this.#source(params.forkFrom, params);
    const request = { sessionId, cwd, env, now, directory, file: chosen, parentSession: source };
    const order = { sessionId, cwd, ephemeral, options, now };
    const session = await createWithContext({
      ...{ contexts, option: params.context, order, caller },
      begin: async (given) => {
        const signal = given === undefined ? undefined : caller.signal;
        const how = { signal, ownOptimisation, ...secrets };
        if (ephemeral) return await lifecycle.begin(stored(join(runDirectory, `${sessionId}.jsonl`), given), how);
        const initial = given?.content;
        const path = sessionFilePath(request);
        const option = chosen !== undefined ? "file" : directory !== undefined ? "sessionDir" : undefined;
        const topmost = option && madeDirectory(dirname(path), option);
        let content = initial && sumOf(initial);
        await created.begin(sessionId, path, content);
        try {
          if (source === undefined) await createFile(request, initial);
          else content = await created.fork(request, source);
          const session = await lifecycle.begin(stored(path, given), { ...how, content });
          void created.end(sessionId);
          return session;
        } catch (error) {
          removeDirectory(dirname(path), topmost);
          // After this error another session can get the same path: a note that is left could delete its file.
          await created.end(sessionId);
          throw error;
        }
      },
    });
    tellProjectProblem(session, projectProblem);
    if (params.whenLeft === "close") this.#options.left.watch(session);
    return session;
  }

  /** The path of a session to fork. Throws `invalid_params` and `session_file_unusable`. */
  async #source(path: string, { ephemeral, context }: Params<"session/create">): Promise<string> {
    const other = ephemeral === true ? "ephemeral" : context === undefined ? undefined : "context";
    if (other !== undefined) {
      const message = `cannot be given with ${other}`;
      throw new WireError("invalid_params", `forkFrom ${message}.`, { findings: [{ path: "/forkFrom", message }] });
    }
    const file = resolve(path);
    if (await liesUnder(await withoutLinks(file), this.#options.configuration.roots)) return file;
    throw unusable(file, "outside", "is outside the roots of the daemon's configuration");
  }

  /** The real path of a file that does not exist yet. Throws `invalid_params`, `path_invalid` and `conflict`. */
  async #newFile(path: string, sessionId: string, ephemeral: boolean): Promise<string> {
    const option = "file";
    if (ephemeral) {
      const message = "an ephemeral session has no file";
      throw new WireError("invalid_params", `${message}.`, { findings: [{ path: "/file", message }] });
    }
    const file = await withoutLinks(resolve(path));
    if (!(await liesUnder(file, this.#options.configuration.roots))) {
      const why = "is outside the roots of the daemon's configuration";
      throw pathInvalid({ option, path, why, reason: "outside" });
    }
    if (exists(file)) throw fileExists(file);
    // Another session may have a file there that was removed.
    requireOwnFile({ sessionId, file }, this.#options.directory.withCreating());
    return file;
  }
}

/** Whether there is anything at a path that a client chose, also a link to nothing. Throws `path_invalid`. */
function exists(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch (cause) {
    throw uncreatable("file", path, cause);
  }
}

/** Creates the directory of a session's file. Returns the topmost created one. Throws `path_invalid`. */
function madeDirectory(path: string, option: "file" | "sessionDir"): string | undefined {
  try {
    return makeDirectory(path, 0o700);
  } catch (cause) {
    throw exhaustion(cause) ?? uncreatable(option, path, cause);
  }
}

function uncreatable(option: "file" | "sessionDir", path: string, cause: unknown): WireError {
  const why = `cannot be created (${(cause as NodeJS.ErrnoException).code})`;
  return pathInvalid({ option, path, why, reason: "unwritable" }, cause);
}
