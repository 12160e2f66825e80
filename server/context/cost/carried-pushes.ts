import type { MadeRequest } from "../../../context/cost/request-list.ts";
import type { Attempt, Delivery } from "../../../protocol/delivery.ts";
import type { MadeRequest as TracedRequest } from "../../../protocol/request-methods.ts";

type Carried = NonNullable<TracedRequest["carried"]>;

/**
 * Adds to each answer what deliveries know of its request. A session makes one request at a time, so an attempt belongs
 * to the first answer that ended after the attempt was prepared.
 */
export function withCarriedPushes(
  requests: readonly MadeRequest[],
  deliveries: readonly Delivery[],
): readonly TracedRequest[] {
  const answers = requests.filter(({ kind }) => kind === "answer");
  const carried = new Map<string, Carried>();
  for (const { deliveryId, attempts } of deliveries) {
    for (const attempt of attempts) {
      const answer = answers.find(({ endedAt }) => endedAt >= attempt.preparedAt);
      if (answer === undefined || isOfLater(answer, attempt, answers[0])) continue;
      const known = carried.get(answer.entryId);
      if (known === undefined) carried.set(answer.entryId, carriedBy(attempt, deliveryId));
      else if (known.requestId === attempt.requestId) known.deliveryIds.push(deliveryId);
    }
  }
  return requests.map((request) => {
    const found = carried.get(request.entryId);
    return found === undefined ? request : { ...request, carried: found };
  });
}

/** The attempt may be older than all of the listed answers: the oldest of them tells by its own beginning. */
function isOfLater(answer: MadeRequest, { endedAt }: Attempt, oldest: MadeRequest | undefined): boolean {
  const { startedAt } = answer;
  return answer === oldest && endedAt !== undefined && startedAt !== undefined && endedAt < startedAt;
}

function carriedBy({ requestId, preparedAt, status, evidence }: Attempt, deliveryId: string): Carried {
  return {
    requestId,
    preparedAt,
    ...(status === undefined ? {} : { status }),
    ...(evidence === undefined ? {} : { evidence }),
    deliveryIds: [deliveryId],
  };
}
