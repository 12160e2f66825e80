import { Agent } from "../../acp/agent.ts";
import type { Peer } from "../rpc/call.ts";
import { type Conversation, type Dispatcher, defaultDispatcherLimits, type Give } from "../rpc/dispatcher.ts";
import type { Grant } from "../rpc/grant.ts";
import { parseJson } from "../rpc/parse.ts";
import type { Lane } from "../rpc/turns.ts";
import { AcpPort } from "./acp-port.ts";
import { messageOf } from "./frame-writer.ts";

export interface AcpDispatcherOptions {
  readonly dispatcher: Dispatcher;
  /** The version of the package. */
  readonly version: string;
}

/**
 * The Agent Client Protocol, for editors. What an editor asks for becomes calls of this protocol to the common dispatcher,
 * with the editor's grant.
 */
export function acpDispatcher({ dispatcher, version }: AcpDispatcherOptions): Dispatcher {
  return {
    converse: (peer, grant, isLocal) => new AcpConversation({ dispatcher, version, peer, grant, isLocal }),
    lane: (grant) => dispatcher.lane(grant),
  };
}

interface ConversationOptions extends AcpDispatcherOptions {
  readonly peer: Peer | undefined;
  readonly grant: Grant | undefined;
  readonly isLocal: boolean | undefined;
}

class AcpConversation implements Conversation {
  readonly #lane: Lane;
  readonly #calls: Conversation;
  readonly #port: AcpPort;
  readonly #agent: Agent;

  constructor({ dispatcher, version, peer, grant, isLocal }: ConversationOptions) {
    const lane = dispatcher.lane(grant);
    this.#lane = lane;
    const follower = peer && {
      id: peer.id,
      gone: peer.gone,
      drained: () => peer.drained?.(),
      inTurn: <T>(work: () => T) => lane.pass(work),
      send: (frame: Parameters<Peer["send"]>[0]) => lane.count(() => this.#port.receive(frame)),
    };
    this.#calls = dispatcher.converse(follower, grant, isLocal);
    this.#port = new AcpPort({ conversation: this.#calls, answersDialogs: grant?.allows("prompt") === true });
    this.#agent = new Agent({
      port: this.#port,
      version,
      parse: (text) => parseJson(text, defaultDispatcherLimits),
      sink: {
        // The agent waits for the next turn when the token has used this one.
        write: (text) => {
          lane.count(() => peer?.send(messageOf(text)));
          return peer?.drained?.() === undefined && !lane.isBusy;
        },
        drained: async () => {
          await peer?.drained?.();
          await lane.pass(() => {});
        },
        held: (length) => peer?.held?.(length),
      },
    });
  }

  /** The agent writes its answers itself, in the order of its other messages. */
  async receive(text: Buffer, give: Give = () => {}): Promise<undefined> {
    await this.#lane.pass(() => this.#agent.receive(text));
    give(undefined);
  }

  call(method: string, params: object, signal?: AbortSignal): ReturnType<Conversation["call"]> {
    return this.#calls.call(method, params, signal);
  }

  end(): void {
    this.#port.close();
    this.#agent.close();
    this.#calls.end();
  }
}
