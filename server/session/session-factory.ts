import { join } from "node:path";
import type { Params } from "../../protocol/methods.ts";
import { createWithContext, type WithContext } from "../context/context-creation.ts";
import type { Contexts } from "../context/contexts.ts";
import { createOptions } from "../context/create-options.ts";
import type { SessionConfiguration } from "../context/part-layers.ts";
import { tellProjectProblem } from "../context/part-layers.ts";
import type { ContextCaller } from "../context/read-path.ts";
import type { SessionScope } from "../core/session-scope.ts";
import { admittedDirectory } from "../core/working-directory.ts";
import { type CreatedFiles, createFile } from "../custody/created-files.ts";
import { diskFull } from "../pi/exhaustion.ts";
import { sessionFilePath } from "../pi/session-file.ts";
import type { StoredSession } from "../store/stored-session.ts";
import type { Session } from "./session.ts";
import type { SessionLifecycle } from "./session-lifecycle.ts";

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
  readonly contexts: Contexts;
  readonly lifecycle: Pick<SessionLifecycle, "begin">;
}

/** Creates sessions for clients. */
export class SessionFactory {
  readonly #options: SessionFactoryOptions;

  constructor(options: SessionFactoryOptions) {
    this.#options = options;
  }

  /** Leaves nothing if it throws. A full disk is `store_failed`. */
  async create(creation: Creation): Promise<Session> {
    return await this.#create(creation).catch((error: unknown) => {
      throw diskFull(error) ?? error;
    });
  }

  async #create({ params, sessionId, admit, caller }: Creation): Promise<Session> {
    const { configuration, contexts, env, runDirectory } = this.#options;
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
    const request = { sessionId, cwd, env, now, directory };
    const order = { sessionId, cwd, ephemeral, options, now };
    const session = await createWithContext({
      ...{ contexts, option: params.context, order, caller },
      begin: async (given) => {
        const signal = given === undefined ? undefined : caller.signal;
        const how = { signal, ownOptimisation };
        if (ephemeral) return await lifecycle.begin(stored(join(runDirectory, `${sessionId}.jsonl`), given), how);
        const { content } = given ?? {};
        await created.begin(sessionId, sessionFilePath(request), content);
        try {
          return await lifecycle.begin(stored(await createFile(request, content), given), { ...how, content });
        } finally {
          await created.end(sessionId);
        }
      },
    });
    tellProjectProblem(session, projectProblem);
    return session;
  }
}
