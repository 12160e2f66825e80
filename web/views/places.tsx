import { SessionFigures } from "../state/figures.ts";
import { CostView } from "./cost.tsx";
import { DaemonView } from "./daemon.tsx";
import { Keys } from "./keys.tsx";
import { stepRequest } from "./lead.ts";
import { NewSessionForm } from "./new-session.tsx";
import { PushesView } from "./pushes.tsx";
import { RequestDetails } from "./request-details.tsx";
import { RequestsView } from "./requests.tsx";
import { SessionFacts } from "./session-facts.tsx";
import { StoredSessionsList } from "./stored-sessions.tsx";
import { Tape } from "./tape.tsx";

/** What is not needed at first. The build makes a file of its own of it, which `later.tsx` loads. */
export const places = {
  CostView,
  DaemonView,
  Keys,
  NewSessionForm,
  PushesView,
  RequestDetails,
  RequestsView,
  SessionFacts,
  SessionFigures,
  StoredSessionsList,
  stepRequest,
  Tape,
} as const;
