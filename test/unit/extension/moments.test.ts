import { expect, test } from "vitest";
import type { Custody, HeldItem } from "../../../extension/delivery/held.ts";
import { actionsAfterRun, dueAt, type Moment, type RunEnd } from "../../../extension/delivery/moments.ts";
import { heldPush } from "./pushes.ts";

const waiting: Custody = { kind: "waiting" };
const parked: Custody = { kind: "parked" };
const item = (
  deliveryId: string,
  fields: Parameters<typeof heldPush>[1] = {},
  custody: Custody = waiting,
): HeldItem => ({
  push: heldPush(deliveryId, fields),
  custody,
  lostStarts: 0,
});
const all: readonly HeldItem[] = [
  item("steer"),
  item("steerQuiet", { triggerTurn: false }),
  item("followUp", { deliverAs: "followUp" }),
  item("nextTurn", { deliverAs: "nextTurn" }),
  item("parked", {}, parked),
  item("parkedFollowUp", { deliverAs: "followUp" }, parked),
  item("draft", {}, { kind: "offered", by: "draft" }),
  item("run", {}, { kind: "offered", by: "run" }),
];
const ids = (items: readonly HeldItem[]): string[] => items.map(({ push }) => push.deliveryId);

test.for<[Moment, readonly string[]]>([
  ["turnEnd", ["steer", "steerQuiet", "parked"]],
  ["beforeSettle", ["steer", "steerQuiet", "followUp", "parked", "parkedFollowUp"]],
  ["carry", ["steer", "steerQuiet", "followUp", "parked", "parkedFollowUp"]],
  ["idle", ["steer", "steerQuiet", "followUp", "parked", "parkedFollowUp"]],
  ["beforePrompt", ["steer", "steerQuiet", "followUp", "nextTurn", "parked", "parkedFollowUp"]],
])("at %s what is due is handed over in its order, and never what pi was given", ([moment, expected]) => {
  expect(ids(dueAt(moment, all))).toEqual(expected);
});

test("parked pushes start no run by themselves while idle", () => {
  const quiet = item("quiet", { triggerTurn: false });
  expect(ids(dueAt("idle", [item("parked", { deliverAs: "followUp" }, parked), quiet]))).toEqual(["quiet"]);
  expect(ids(dueAt("idle", [item("parked", {}, parked), quiet, item("last", {}, parked)]))).toEqual([
    "parked",
    "quiet",
  ]);
});

test.for<[RunEnd, readonly string[], readonly string[]]>([
  ["completed", [], []],
  ["failed", [], ["park", "drop"]],
  ["aborted", ["drop", "dropNextTurn"], ["park", "parkQuiet"]],
])("a run that is %s drops %j and parks %j", ([end, drop, park]) => {
  const items = [
    item("park"),
    item("parkQuiet", { triggerTurn: false }),
    item("parkNextTurn", { deliverAs: "nextTurn" }),
    item("drop", { onAbort: "drop" }),
    item("dropNextTurn", { onAbort: "drop", deliverAs: "nextTurn" }),
  ];
  expect(actionsAfterRun(end, items)).toEqual({ drop, park });
});
