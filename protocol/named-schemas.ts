import type { TSchema } from "typebox";
import { AsleepReason } from "./cached.ts";
import { By, ClientId } from "./client-identity.ts";
import { Content, ImageBlock, TextBlock } from "./content.ts";
import { ContextError, ContextOption, ContextSummary } from "./context-option.ts";
import { Control, ControlChange, ControlPolicy } from "./control.ts";
import { Budget, CostPhase } from "./cost-methods.ts";
import { ForeignWrite, ForeignWriteAction, OnForeignWrite, SessionFileReason } from "./custody.ts";
import { DaemonInfo, PiCapabilities, PiInfo, StoreDamage, StoreInfo } from "./daemon.ts";
import { Attempt, Delivery, DeliveryEffect, DeliveryState, Evidence, HistoryStep, Reason } from "./delivery.ts";
import {
  Dialog,
  DialogAnswer,
  DialogId,
  DialogMethod,
  DialogPolicy,
  DialogResolution,
  DialogSummary,
} from "./dialog.ts";
import { Envelope, Gap } from "./event.ts";
import { DeliveryId, PromptId, SessionId } from "./ids.ts";
import { McpServer } from "./mcp-servers.ts";
import { CacheBroken, CostCheckpointDetail, CostCheckpointEvent, CostUsage } from "./optimisation/notices.ts";
import { OptimisationOptions, ToolResultPolicy } from "./optimisation/options.ts";
import { PartReport } from "./optimisation/report.ts";
import { PendingItem } from "./pending.ts";
import { PiCompaction, PiModel, PiState, PiStats } from "./pi-data.ts";
import { Disposition, Prompt, PromptResult, PromptState, RunOutcome } from "./prompt.ts";
import { PruningOptions } from "./pruning/options.ts";
import { BlockReport, PruningChange, PruningExport, PruningInspection, PruningStats } from "./pruning/report.ts";
import { ChildExit, LostPrompt, ModelRef, SessionInfo, SessionState } from "./session.ts";
import { StoredSessionInfo } from "./stored-session.ts";
import { TokenInfo } from "./token-methods.ts";

/** Schemas of objects that have names in documents. */
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
  BlockReport,
  CacheBroken,
  CacheOptions: OptimisationOptions.properties.cache,
  CompactionOptions: OptimisationOptions.properties.compaction,
  ContextError,
  ContextFilesOptions: OptimisationOptions.properties.contextFiles,
  ContextOption,
  ContextSummary,
  CostOptions: OptimisationOptions.properties.cost,
  DeliveryEffect,
  DialogSummary,
  DynamicToolsOptions: OptimisationOptions.properties.dynamicTools,
  EstimatorOptions: OptimisationOptions.properties.estimator,
  FormatOptions: OptimisationOptions.properties.format,
  MaskingOptions: OptimisationOptions.properties.masking,
  McpServer,
  OptimisationOptions,
  PartReport,
  PiCapabilities,
  PiCompaction,
  PiModel,
  PiState,
  PiStats,
  PruningChange,
  PruningCompressOptions: PruningOptions.properties.compress,
  PruningExport,
  PruningInspection,
  PruningOptions,
  PruningStats,
  PruningStrategiesOptions: PruningOptions.properties.strategies,
  SkillsOptions: OptimisationOptions.properties.skills,
  StoreDamage,
  StoreInfo,
  TokenInfo,
  ToolResultPolicy,
  ToolResultsOptions: OptimisationOptions.properties.toolResults,
};

/** Other named schemas. */
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
  AsleepReason,
  DialogId,
  DialogMethod,
  DialogAnswer,
  DialogPolicy,
  DeliveryState,
  Evidence,
  Content,
};
