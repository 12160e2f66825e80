import { expect, test } from "vitest";
import { Questions } from "../../../../cli/rpc/questions.ts";
import type { DialogMethod } from "../../../../protocol/dialog.ts";

const cancelled = { cancelled: true } as const;

function asked(method: DialogMethod): { readonly questions: Questions; readonly wait: (ms: number) => void } {
  let now = 1_000;
  const questions = new Questions(() => now);
  questions.asked({ type: "extension_ui_request", id: "q1", method })?.();
  questions.opened("q1", "d1", method);
  return {
    questions,
    wait: (ms) => {
      now += ms;
    },
  };
}

test.each(["input", "editor"] as const)(
  "an %s that is cancelled at once is left to others, later it is cancelled",
  (method) => {
    const { questions, wait } = asked(method);
    wait(499);
    expect(questions.answered({ id: "q1", ...cancelled })).toEqual({ dialogId: "d1", abstain: true });
    expect(questions.abstained).toEqual(["d1"]);
    wait(1);
    expect(questions.answered({ id: "q1", ...cancelled })).toEqual({ dialogId: "d1", answer: cancelled });
  },
);

test.each([
  ["input", { value: "typed" }],
  ["select", cancelled],
  ["confirm", { confirmed: false }],
] as const)("any other answer counts at once: %s %j", (method, answer) => {
  const { questions } = asked(method);
  expect(questions.answered({ id: "q1", ...answer })).toEqual({ dialogId: "d1", answer });
  expect(questions.abstained).toEqual([]);
});

test("the time counts from when the front end has got the question", () => {
  let now = 0;
  const questions = new Questions(() => now);
  questions.opened("q1", "d1", "input");
  now = 60_000;
  expect(questions.answered({ id: "q1", ...cancelled })).toEqual({ dialogId: "d1", abstain: true });
  questions.written("q1");
  now += 500;
  expect(questions.answered({ id: "q1", ...cancelled })).toEqual({ dialogId: "d1", answer: cancelled });
});

test("an answer that comes before the daemon's id waits for it", () => {
  const questions = new Questions();
  questions.asked({ type: "extension_ui_request", id: "q1", method: "input" });
  expect(questions.answered({ id: "q1", value: "typed" })).toBeUndefined();
  expect(questions.opened("q1", "d1", "input")).toEqual({ dialogId: "d1", answer: { value: "typed" } });
});

test("what only tells the user something is not a question", () => {
  const questions = new Questions();
  expect(questions.asked({ type: "extension_ui_request", id: "q1", method: "notify" })).toBeUndefined();
  expect(questions.answered({ id: "q1", ...cancelled })).toBeUndefined();
});

test("stray, late and malformed answers are none", () => {
  const { questions } = asked("input");
  for (const stray of [{ id: "q2", value: "x" }, { id: 7, value: "x" }, { id: "q1" }, { id: "q1", value: 7 }])
    expect(questions.answered(stray)).toBeUndefined();
  questions.resolved("q1");
  expect(questions.answered({ id: "q1", value: "x" })).toBeUndefined();
});
