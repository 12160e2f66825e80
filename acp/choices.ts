import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk";
import type { Port } from "./port.ts";

/** What a client can choose in a session: the model, and how long it thinks. */
export interface Choices {
  readonly configOptions: SessionConfigOption[];
  /** The thinking levels once more, for clients without config options. */
  readonly modes: SessionModeState;
  /** The models once more, for older clients. The schema has no such field any more. */
  readonly models: {
    readonly currentModelId: string;
    readonly availableModels: readonly { readonly modelId: string; readonly name: string }[];
  };
}

export interface Model {
  readonly provider: string;
  readonly id: string;
  readonly name?: string;
  readonly contextWindow?: number;
}

/** What a session has chosen, and what it can choose from. */
export interface Chosen {
  readonly models: readonly Model[];
  readonly levels: readonly string[];
  readonly model: Model | undefined;
  readonly level: string;
}

export async function readChosen(port: Port, sessionId: string): Promise<Chosen> {
  const [{ models }, { levels }, { model, thinkingLevel = "off" }] = await Promise.all([
    port.call("model/list", { sessionId }),
    port.call("session/getThinkingLevels", { sessionId }),
    port.call("session/getState", { sessionId }),
  ]);
  return { models, levels, model, level: thinkingLevel };
}

export function choicesOf({ models, levels, model, level }: Chosen): Choices {
  const modelId = model === undefined ? "" : modelIdOf(model);
  // A model that is not listed any more is still the session's.
  const known = model === undefined || models.some((each) => modelIdOf(each) === modelId) ? models : [model, ...models];
  const knownLevels = levels.includes(level) ? levels : [level, ...levels];
  const availableModels = known.map((each) => ({ modelId: modelIdOf(each), name: nameOf(each) }));
  const availableModes = knownLevels.map((id) => ({ id, name: `Thinking: ${id}` }));
  return {
    configOptions: [
      {
        type: "select",
        id: "model",
        name: "Model",
        category: "model",
        currentValue: modelId,
        options: availableModels.map(({ modelId: value, name }) => ({ value, name })),
      },
      {
        type: "select",
        id: "thought_level",
        name: "Thinking",
        category: "thought_level",
        currentValue: level,
        options: knownLevels.map((value) => ({ value, name: value })),
      },
    ],
    modes: { currentModeId: level, availableModes },
    models: { currentModelId: modelId, availableModels },
  };
}

function modelIdOf({ provider, id }: Pick<Model, "provider" | "id">): string {
  return `${provider}/${id}`;
}

/** Names are not unique among providers. */
function nameOf(model: Model): string {
  return model.name === undefined || model.name === model.id ? modelIdOf(model) : `${model.name} (${model.provider})`;
}
