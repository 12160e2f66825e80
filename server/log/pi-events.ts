import type { ReadyState } from "../pi/ready-state.ts";
import type { PiEvent } from "../pi/records.ts";

/** Parts that react to pi's events. */
export interface EventReaders {
  runStarted(): void;
  agentEnded(): void;
  runSettled(event: PiEvent): void;
  /** A compaction begins or ends. */
  compacting(isOn: boolean): void;
  messageEnded(event: PiEvent): void;
  /** pi's queue of user messages changed. */
  queueChanged(event: PiEvent): void;
  /** pi reported part of its own state. */
  learned(said: Partial<ReadyState>): void;
  /** pi wrote an entry other than the end of a message. */
  entryAppended(event: PiEvent): void;
  /** An extension displays something or asks a question. */
  asked(event: PiEvent): void;
}

/** Passes pi's events to the parts that need them. High-rate events are filtered out before. */
export function lookAt(event: PiEvent, readers: EventReaders): void {
  switch (event.type) {
    case "agent_start":
      readers.runStarted();
      break;
    case "agent_end":
      readers.agentEnded();
      break;
    case "compaction_start":
    case "compaction_end":
      readers.compacting(event.type === "compaction_start");
      break;
    case "message_end":
      readers.messageEnded(event);
      break;
    case "queue_update":
      readers.queueChanged(event);
      break;
    case "entry_appended":
      readers.entryAppended(event);
      break;
    case "agent_settled":
      readers.runSettled(event);
      break;
    case "session_info_changed":
      readers.learned({ sessionName: textOf(event["name"]) });
      break;
    case "thinking_level_changed":
      readers.learned({ thinkingLevel: textOf(event["level"]) });
      break;
    case "extension_ui_request":
      readers.asked(event);
      break;
    default:
  }
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
