import { SessionFigures } from "../state/figures.ts";
import { Actions } from "./actions.tsx";
import { colourInView } from "./colours.ts";
import { CommandList } from "./command-list.tsx";
import { ContextActions } from "./context-actions.tsx";
import { ContextView } from "./context-view.tsx";
import { CostView } from "./cost.tsx";
import { DaemonView } from "./daemon.tsx";
import { ForkButton } from "./fork.tsx";
import { KeyList } from "./keys.tsx";
import { stepRequest } from "./lead.ts";
import { ModelFields } from "./model-fields.tsx";
import { NewSessionForm } from "./new-session.tsx";
import { PushesView } from "./pushes.tsx";
import { RequestDetails } from "./request-details.tsx";
import { RequestsView } from "./requests.tsx";
import { SearchSheet } from "./search.tsx";
import { SessionFacts, SessionFactsSheet } from "./session-facts.tsx";
import { SessionSheet } from "./session-sheet.tsx";
import { StoredSessionsList } from "./stored-sessions.tsx";
import { Tape } from "./tape.tsx";
import { TreeView } from "./tree.tsx";

/** What is not needed at first. The build makes a file of its own of it, which `later.tsx` loads. */
export const places = {
  Actions,
  CommandList,
  colourInView,
  ContextActions,
  ContextView,
  CostView,
  DaemonView,
  ForkButton,
  KeyList,
  ModelFields,
  NewSessionForm,
  PushesView,
  RequestDetails,
  RequestsView,
  SearchSheet,
  SessionFacts,
  SessionFactsSheet,
  SessionFigures,
  SessionSheet,
  StoredSessionsList,
  stepRequest,
  Tape,
  TreeView,
} as const;
