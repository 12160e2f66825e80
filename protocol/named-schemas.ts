import type { TSchema } from "typebox";
import { By, ClientId } from "./client-identity.ts";
import { Content, ImageBlock, TextBlock } from "./content.ts";
import { Control, ControlChange, ControlPolicy } from "./control.ts";
import { Budget, CostPhase } from "./cost-methods.ts";
import { ForeignWrite, ForeignWriteAction, OnForeignWrite, SessionFileReason } from "./custody.ts";
import { DaemonInfo, PiInfo } from "./daemon.ts";
import { Attempt, Delivery, DeliveryState, Evidence, HistoryStep, Reason } from "./delivery.ts";
import { Dialog, DialogAnswer, DialogId, DialogMethod, DialogPolicy, DialogResolution } from "./dialog.ts";
import { Envelope, Gap } from "./event.ts";
import { DeliveryId, PromptId, SessionId } from "./ids.ts";
import { CostCheckpointDetail, CostCheckpointEvent, CostUsage } from "./optimisation/notices.ts";
import { PendingItem } from "./pending.ts";
import { Disposition, Prompt, PromptResult, PromptState, RunOutcome } from "./prompt.ts";
import { ChildExit, LostPrompt, ModelRef, SessionInfo, SessionState } from "./session.ts";
import { StoredSessionInfo } from "./stored-session.ts";

/** The schemas of the wire that have a name of their own in documents: objects, */
export const namedObjects: Readonly<Record<string, TSchema>> = {
  SessionInfo,
  PromptResult,
  Prompt,
  By,
  Control,
  StoredSessionInfo,
  ForeignWrite,
  LostPrompt,
  Dialog,
  DialogResolution,
  PendingItem,
  ChildExit,
  ModelRef,
  Delivery,
  Attempt,
  HistoryStep,
  Reason,
  Envelope,
  Gap,
  DaemonInfo,
  PiInfo,
  TextBlock,
  ImageBlock,
  CostUsage,
  CostCheckpointEvent,
  CostCheckpointDetail,
  CostPhase,
  Budget,
};

/** and others. */
export const namedTypes: Readonly<Record<string, TSchema>> = {
  SessionId,
  DeliveryId,
  PromptId,
  ClientId,
  SessionState,
  PromptState,
  Disposition,
  RunOutcome,
  ControlPolicy,
  ControlChange,
  OnForeignWrite,
  ForeignWriteAction,
  SessionFileReason,
  DialogId,
  DialogMethod,
  DialogAnswer,
  DialogPolicy,
  DeliveryState,
  Evidence,
  Content,
};
